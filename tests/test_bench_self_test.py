"""The bench's own test: a sample in CI, every pair at night, and what it does when rates fall."""

import json

import pytest

from trivet.ci import _pairs, bench_self_test
from trivet.ci._pairs import Judged, all_pairs, judge, named
from trivet.simulator.compiled import Change
from trivet.simulator.traffic import LineTraffic, Traffic
from trivet.simulator.traffic_rules import compare_traffic

# Pairs that compile in a second; the rest waits for the night.
QUICK = ("add_wide_index", "add_renamed", "softmax_row_read_twice")
WORSE = Change("load_bits", 128, 32, "HARD", "", "")


def judged(name, target="sm_90", *changes):
    return Judged(named(name), target, changes)


def everything(target, missed, alarms):
    """All pairs judged as a bench would that misses and falsely alarms so often."""
    found = []
    for pair in all_pairs():
        if pair.pair.kind == "neutral":
            flagged = (alarms := alarms - 1) >= 0
        else:
            flagged = pair.pair.kind == "held_out" or (missed := missed - 1) < 0
        found.append(Judged(pair, target, (WORSE,) if flagged else ()))
    return found


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_a_few_pairs_are_told_apart(target, capsys):
    assert bench_self_test.main([*QUICK, "--target", target]) == 0
    printed = capsys.readouterr().out
    assert f"{target}: planted caught 2 of 2, alarms 0 of 1" in printed


@pytest.mark.parametrize(
    ("name", "metric"),
    [("matmul_ungrouped_tiles", "wave_sectors"), ("softmax_column", "read_sectors")],
)
def test_tile_order_and_columns_show_in_the_traffic(name, metric):
    changes = list(_pairs._traffic_changes(named(name).pair))
    assert metric in {change.metric for change in changes}
    assert {change.kind for change in changes} == {"HARD"}


@pytest.mark.night
def test_the_rates_of_all_pairs_are_kept(tmp_path, capsys):
    path = tmp_path / "rates.json"
    assert bench_self_test.main(["--json", str(path)]) == 0, capsys.readouterr().out
    rates = json.loads(path.read_text())["rates"]
    assert rates["sm_90"]["regression"][0] >= 34
    assert rates["gfx942"]["regression"][0] >= 32
    for target in ("sm_90", "gfx942"):
        alarms, neutral = rates[target]["neutral"]
        assert 30 * alarms <= neutral


def test_a_side_that_gains_a_launch_is_refused(monkeypatch):
    counts = iter((1, 2))
    monkeypatch.setattr(_pairs, "measure", lambda launches, target: [_Measured()] * next(counts))
    with pytest.raises(ValueError, match="add_renamed: 1 launches became 2"):
        judge(named("add_renamed"), "sm_90")


class _Measured:
    error = ""


@pytest.mark.parametrize(
    ("target", "missed", "alarms", "words"),
    [
        ("sm_90", 2, 1, []),
        ("sm_90", 3, 0, ["sm_90: 3 regressions missed, 2 allowed"]),
        ("gfx942", 4, 0, []),
        ("gfx942", 5, 2, ["gfx942: 5 regressions missed, 4 allowed", "2 false alarms among 37"]),
    ],
)
def test_rates_below_the_goal_are_said(target, missed, alarms, words):
    texts = bench_self_test.missed(everything(target, missed, alarms))
    assert len(texts) == len(words)
    assert all(word in text for word, text in zip(words, texts, strict=True))


def test_what_was_missed_and_what_was_a_false_alarm_is_named():
    found = [judged("matmul_few_registers", "gfx942"), judged("add_renamed", "gfx942", WORSE)]
    assert bench_self_test.rates_text(found).splitlines() == [
        "gfx942: planted caught 0 of 1, alarms 1 of 1",
        "  missed matmul_few_registers: the option does not exist there",
        "  false alarm add_renamed: load_bits 128 -> 32 (gfx942)",
    ]


def test_an_unknown_pair_is_refused_with_the_names_there_are(capsys):
    assert bench_self_test.main(["add_renamd"]) == 2
    assert "no pair is called 'add_renamd'; there are: adamw_" in capsys.readouterr().err


def test_a_sample_is_drawn_by_its_seed():
    names = [[p.name for p in bench_self_test._sampled(5, seed)] for seed in (1, 1, 2)]
    assert names[0] == names[1] != names[2]


def test_traffic_that_got_worse_names_its_line():
    lines = {"k.py:3": LineTraffic(1000, 40), "k.py:4": LineTraffic(400, 100)}
    now = Traffic("k", read_bytes=1400, read_sectors=140, lines=lines)
    was = {**now.metrics(), "read_bytes": 1000, "read_sectors": 60, "lanes": 9}
    assert [(c.metric, c.was, c.now, c.kind, c.line) for c in compare_traffic(was, now)] == [
        ("read_bytes", 1000, 1400, "HARD", "k.py:3"),
        ("read_sectors", 60, 140, "HARD", "k.py:4"),
    ]
    assert compare_traffic(now.metrics(), now) == []
    assert compare_traffic({}, now) == []
