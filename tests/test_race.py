"""The race reports ratios and medians and fails below its goals."""

import json

import pytest

from trivet.ci import _race_kernels, race


def sides(interpreter, ours):
    def side(name, programs):
        return (
            {"add": interpreter[programs], "matmul": 3 * interpreter[programs]}
            if (name == "interpreter")
            else {"add": ours, "matmul": ours}
        )

    return side


def test_medians_are_those_of_the_ratios(monkeypatch, capsys):
    monkeypatch.setattr(race, "_side", sides({20: 40.0, 500: 400.0}, 2.0))
    assert race.main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["median_20"], found["median_500"]) == (40, 400)
    assert [kernel["ratio"] for kernel in found["kernels"]] == [20, 60, 200, 600]


def test_a_median_below_its_goal_fails(monkeypatch, capsys):
    monkeypatch.setattr(race, "_side", sides({20: 40.0, 500: 400.0}, 10.0))
    assert race.main([]) == 1
    assert "median at 20 programs: 8x (wanted: 30x)" in capsys.readouterr().out


@pytest.mark.parametrize("name", _race_kernels.NAMES)
def test_our_side_is_timed_without_faults_on_fresh_inputs(name):
    first, second = (_race_kernels.build(name, 20, seed) for seed in (1, 2))
    assert set(first.arguments) == set(second.arguments)
    assert race._ours()(first) > 0
