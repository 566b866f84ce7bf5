"""The accuracy of the stable device functions, on Triton's interpreter in a child."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from trivet.impl import _elementwise

BLOCK = 4096
# Two roundings, and two more because the interpreter's exp is NumPy's, not correctly rounded.
RELATIVE = 2.0**-22


@triton.jit
def _all_kernel(x: tl.tensor, out: tl.tensor, size: int, BLOCK: tl.constexpr) -> None:
    place = tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < size, other=0.0)
    tl.store(out + place, _elementwise.tanh(value), mask=place < size)
    tl.store(out + size + place, _elementwise.tanh_slope(value), mask=place < size)
    tl.store(out + 2 * size + place, _elementwise.expm1(value), mask=place < size)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    file = tmp_path_factory.mktemp("elementwise") / "results.npz"
    environment = dict(os.environ, TRITON_INTERPRET="1")
    child = subprocess.run(
        [sys.executable, __file__, str(file)], capture_output=True, text=True, env=environment
    )
    assert child.returncode == 0, child.stderr
    with np.load(file) as arrays:
        return dict(arrays)


def test_functions_are_accurate_relative_to_themselves(results):
    x = results["ordinary_x"].astype(np.float64)
    tanh, slope, expm1 = results["ordinary"].astype(np.float64)
    assert (np.abs(tanh / np.tanh(x) - 1) <= RELATIVE).all()
    assert (np.abs(expm1 / np.expm1(x) - 1) <= RELATIVE).all()
    # exp(-2|x|) passes the rounding of its argument on.
    assert (np.abs(slope * np.cosh(x) ** 2 - 1) <= RELATIVE * (2 + np.abs(x))).all()


def test_functions_keep_their_limits(results):
    tanh, slope, expm1 = results["special"]
    np.testing.assert_array_equal(tanh, np.float32([0, -0.0, 1, -1, 1, -1, np.nan]))
    np.testing.assert_array_equal(slope, np.float32([1, 1, 0, 0, 0, 0, np.nan]))
    np.testing.assert_array_equal(expm1[:5], np.float32([0, -0.0, np.inf, -1, np.inf]))
    assert expm1[5] == -1
    assert np.isnan(expm1[6])


def _run(x):
    out = torch.empty(3, x.size)
    _all_kernel[(1,)](torch.from_numpy(x), out, x.size, BLOCK)
    return out.numpy()


def _main(file):
    size = np.geomspace(1e-30, 40, BLOCK // 2)
    x = np.concatenate([size, -size]).astype(np.float32)
    special = np.float32([0, -0.0, np.inf, -np.inf, 3e38, -3e38, np.nan])
    np.savez(file, ordinary_x=x, ordinary=_run(x), special=_run(special))


if __name__ == "__main__":
    _main(sys.argv[1])
