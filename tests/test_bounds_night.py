"""The tests of stable forms again, on fresh inputs, until a million results have been judged."""

import inspect

import pytest
from tests import test_bounds_moments, test_bounds_orders, test_bounds_softmax
from tests.forms import float32

MODULES = (test_bounds_moments, test_bounds_orders, test_bounds_softmax)
VALUES = {
    "kind": float32.KINDS,
    "count": (2, 3, 4),
    "name": ("argmax", "argmin", "argsort"),
}
RESULTS = 10**6
WORKERS = 4


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
