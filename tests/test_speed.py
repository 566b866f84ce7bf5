"""The benchmarks of `make bench` and `make bench-gpu` run, with a clock of the test's own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.fakes.devices import FakeDevice
from tests.speed.bench_kernels import timed_on

from trivet.properties._collect import find

SPEED = Path(__file__).parent / "speed"


def test_a_kernel_is_stored_with_the_seconds_of_the_device(benchmark):
    if benchmark.disabled:
        pytest.skip("benchmarks are switched off")
    (found,) = find(["decision.smooth"])
    device = FakeDevice(lambda launch, call: 3e-5)
    timed_on(device, benchmark, found)
    assert round(benchmark.stats.stats.median, 9) == 3e-5
    assert benchmark.stats.stats.rounds == 60
    assert device.flushed == 65


@pytest.mark.night
def test_both_files_run_imports_are_timed_and_a_gpu_that_is_missing_is_said(tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    path = tmp_path / "figures.json"
    files = [str(SPEED / f"bench_{name}.py") for name in ("ourselves", "kernels")]
    command = [sys.executable, "-m", "pytest", *files, "-q", "-rs", "-p", "no:cacheprovider"]
    command += ["-k", "test_import and not ci or tau_sort", f"--benchmark-json={path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "sees no device" in done.stdout
    (figures,) = json.loads(path.read_text())["benchmarks"]
    assert figures["group"] == "import"
    assert figures["stats"]["median"] > 0
