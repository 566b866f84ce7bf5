"""The device's timer refuses, and says so, where there is no device."""

import subprocess
import sys

import pytest
import torch


def test_without_a_gpu_nothing_is_timed():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    command = [sys.executable, "-m", "trivet.ci.device_times", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no GPU here: run it on a machine with one" in done.stderr
