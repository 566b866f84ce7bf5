"""A million cases of right kernels, and the tests of stable forms again on fresh inputs."""

import inspect
import json

import pytest
from tests import test_bounds_moments, test_bounds_orders, test_bounds_softmax
from tests.forms import float32

from trivet.ci import power

MODULES = (test_bounds_moments, test_bounds_orders, test_bounds_softmax)
VALUES = {
    "kind": float32.KINDS,
    "count": (2, 3, 4),
    "name": ("argmax", "argmin", "argsort"),
}
RESULTS = 10**6
WORKERS = 4
# `make power` judges 2 * 10^5 cases of right kernels, on other inputs with each seed.
SHARE = "4.6"


def settings(function):
    """Every combination of a test's parameters."""
    combined = [{}]
    for name in inspect.signature(function).parameters:
        combined = [known | {name: value} for known in combined for value in VALUES[name]]
    return combined


@pytest.mark.night
@pytest.mark.parametrize("worker", range(WORKERS))
def test_no_right_form_is_refused_in_a_million_results(worker, monkeypatch):
    tests = [
        function
        for module in MODULES
        for name, function in vars(module).items()
        if name.startswith("test_")
    ]
    start = float32.JUDGED["elements"]
    seed = 1000 * worker
    while float32.JUDGED["elements"] - start < RESULTS // WORKERS:
        seed += 1
        monkeypatch.setattr(float32, "SEED", [seed])
        for function in tests:
            for setting in settings(function):
                function(**setting)
    assert float32.JUDGED["worst"] <= 1.0


@pytest.mark.night
def test_no_right_kernel_is_refused_in_a_million_cases(capsys):
    power.main(["--json", "--share", SHARE, "--seed", "1"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["cases"] >= 10**6
    assert printed["false_alarms"] == 0
