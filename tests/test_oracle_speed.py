"""The printed speed of oracles, and that mpmath computes what they do."""

import json

import numpy as np

from trivet.ci import oracle_speed
from trivet.ci.oracle_speed import FORMULAS, main
from trivet.oracles._evaluate import evaluate
from trivet.oracles._multiprecision import evaluate_mpmath


def test_speeds_are_printed_side_by_side(capsys, monkeypatch):
    monkeypatch.setattr(oracle_speed, "_SHAPE", (16, 256))
    monkeypatch.setattr(oracle_speed, "_RUNS", 1)
    assert main(["--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == [oracle.__name__ for oracle in FORMULAS]
    for rates in printed.values():
        assert rates["float64"] > rates["mpmath"] > 0
        assert rates["bounded"] > rates["mpmath"]
    assert main([]) == 0
    assert "| million elements a second | bounded | float64 | mpmath |" in capsys.readouterr().out


def test_all_systems_compute_the_same():
    x = np.random.default_rng(1).standard_normal((1, 40)).astype(np.float32).astype(float)
    for oracle in FORMULAS:
        [value], [wanted] = evaluate(oracle, {"x": x}), evaluate_mpmath(oracle, {"x": x})
        assert (np.abs(value.value - wanted) <= value.error).all()
