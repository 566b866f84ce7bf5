"""The race reports ratios and medians and fails below its goals."""

import json

import numpy as np
import pytest

from trivet.ci import _race_figures, race

SCALE = {"add": {"slope": 0.9, "memory": 0.2}, "matmul": {"slope": 1.0, "memory": 0.1}}


def sides(interpreter, ours, scale=SCALE, **figures):
    mine = {"ms": ours, "sanitizers": 1.5, "prepare": 0.3, **figures}

    def side(name, programs):
        if name == "scale":
            return scale
        if name == "ours":
            return {"add": mine, "matmul": mine}
        return {"add": interpreter[programs], "matmul": 3 * interpreter[programs]}

    return side


def test_medians_are_those_of_the_ratios(monkeypatch, capsys):
    monkeypatch.setattr(race, "_side", sides({20: 40.0, 500: 400.0}, 2.0))
    assert race.main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["median_20"], found["median_500"]) == (40, 400)
    assert [kernel["ratio"] for kernel in found["kernels"]] == [20, 60, 200, 600]
    assert (found["slope"], found["memory"], found["missed"]) == (1.0, 0.2, [])


def test_a_median_below_its_goal_fails(monkeypatch, capsys):
    monkeypatch.setattr(race, "_side", sides({20: 40.0, 500: 400.0}, 10.0))
    assert race.main([]) == 1
    told = capsys.readouterr().out
    assert "median at 20 programs: 8x (wanted: 30x)" in told
    assert "MISSED: median at 20 programs at least 30x" in told


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sanitizers": 2.5}, "sanitizers at most 2x"),
        ({"prepare": 1.5}, "parse and prepare at most 1x the frontend"),
        ({"scale": {"add": {"slope": 1.3, "memory": 0.1}}}, "slope at most 1.1"),
        ({"scale": {"add": {"slope": 0.9, "memory": 1.1}}}, "memory within its bound"),
    ],
)
def test_every_other_figure_has_its_goal(monkeypatch, capsys, changes, words):
    monkeypatch.setattr(race, "_side", sides({20: 400.0, 500: 4000.0}, 2.0, **changes))
    assert race.main([]) == 1
    assert f"MISSED: {words}" in capsys.readouterr().out


def test_the_peak_of_memory_is_seen():
    taken = _race_figures._peak(lambda: np.ones(2**24).sum())
    assert 2**26 < taken < 2**28


@pytest.mark.parametrize("name", race.NAMES)
def test_our_side_is_timed_without_faults_on_fresh_inputs(name):
    first, second = (race.build(name, 20, seed) for seed in (1, 2))
    assert set(first.arguments) == set(second.arguments)
    assert race._ours()(first) > 0
