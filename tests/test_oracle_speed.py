"""The printed speed of oracles, and that mpmath computes what they do."""

import json

import mpmath
import numpy as np

from trivet.ci import oracle_speed
from trivet.ci.oracle_speed import FORMULAS, main
from trivet.oracles._evaluate import evaluate


def test_speeds_are_printed_side_by_side(capsys, monkeypatch):
    monkeypatch.setattr(oracle_speed, "_SHAPE", (16, 256))
    monkeypatch.setattr(oracle_speed, "_RUNS", 1)
    assert main(["--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == set(FORMULAS)
    for rates in printed.values():
        assert rates["float64"] > rates["mpmath"] > 0
        assert rates["bounded"] > rates["mpmath"]
    assert main([]) == 0
    assert "| million elements a second | bounded | float64 | mpmath |" in capsys.readouterr().out


def test_all_systems_compute_the_same():
    x = np.random.default_rng(1).standard_normal((1, 40)).astype(np.float32).astype(float)
    for oracle, exact in FORMULAS.values():
        [value] = evaluate(oracle, {"x": x})
        with mpmath.workprec(113):
            wanted = np.array([float(v) for v in exact([mpmath.mpf(v) for v in x[0]])])
        assert (np.abs(value.value[0] - wanted) <= value.error[0]).all()
