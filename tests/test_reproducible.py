"""Native results have the same bits whatever the CPU offers and whichever BLAS kernels run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

DIGEST = Path(__file__).parent / "kernels" / "digest.py"


def digests(**environment):
    done = subprocess.run(
        [sys.executable, str(DIGEST)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TRITON_DEFAULT_FP_FUSION": "1", **environment},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def usual():
    return digests()


def test_bits_do_not_depend_on_vector_instructions(usual):
    features = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    assert features, "this CPU offers nothing that could be switched off"
    assert digests(NPY_DISABLE_CPU_FEATURES=" ".join(features)) == usual


@pytest.mark.parametrize("core", ["Prescott", "Haswell"])
def test_bits_do_not_depend_on_the_blas_kernel(usual, core):
    assert digests(OPENBLAS_CORETYPE=core) == usual
