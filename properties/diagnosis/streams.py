"""Runs of directions, and histograms."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, integers, reals, sizes
from trivet.impl import diagnosis as kernels
from trivet.oracles import diagnosis as oracles
from trivet.properties._expect import same_bits, same_values
from trivet.properties.decision.inputs import (
    BLOCK,
    PINNED,
    SIMULATIONS,
    Array,
    Rerun,
    filled,
    widened,
)
from trivet.properties.orders.inputs import COUNTS, NANOSECONDS


def with_rests(values: Array) -> Array:
    """Numbers whose sign changes seldom, and which are 0 here and there and at the start."""
    place = np.arange(values.size).reshape(values.shape)
    rests = (np.abs(values) < 0.1) | (place % 7 == 3)
    rests[:1] |= values[:1] < 0
    return np.where(rests, 0.0, values)


def on_edges(values: Array) -> Array:
    """Convictions, every third of them a tenth: the edges of the bins, 0 and 1 included."""
    place = np.arange(values.size).reshape(values.shape)
    return np.where(place % 3 == 0, np.round(values * 10) / 10, values)


def zeros(dims: str) -> Tensor:
    """A state before its first event."""
    return Tensor(dims, dtypes=NANOSECONDS, domain=integers(0, 0), role="inout")


diagnosis_count = Contract(
    kernel=kernels.count,
    oracles=[oracles.count],
    dims=SIMULATIONS | {"E": sizes(0, 30), "N": sizes(1, 5, production=5)},
    args={
        "raw": Tensor("E S N", domain=reals(-0.5, 0.5).map(with_rests)),
        "smoothed": Tensor("E S N", domain=reals(-0.5, 0.5).map(with_rests)),
        "conviction": Tensor("E S", domain=reals(0, 1).map(on_edges)),
        "runs": zeros("2 4 N S"),
        "run_bins": zeros("2 5 N S"),
        "bins": zeros("10 S"),
        "block": BLOCK,
    },
    raises=(
        (ValueError, "conviction", filled("conviction", 1.25)),
        (TypeError, "conviction", widened("conviction")),
    ),
)


@diagnosis_count.law
def run_lengths_add_up_to_the_events(out: Any, raw: Array, smoothed: Array, E: int) -> None:
    """Ended runs, the open one and the zeros before the first are all of the events."""
    for stream, values in enumerate((raw, smoothed)):
        direction, length, flips, total = out.runs[stream]
        leading = np.cumprod(values == 0, axis=0).sum(axis=0).T
        same_values(total + length + leading, np.full_like(total, E), "events in runs")
        same_values(out.run_bins[stream].sum(axis=0), flips, "runs in bins")
        same_values(direction == 0, leading == E, "streams without a direction")


@diagnosis_count.law
def flips_are_changes_of_sign(out: Any, raw: Array) -> None:
    """Zeros left out, the sign changes as often as runs end."""
    _, simulations, horizons = raw.shape
    for s in range(min(simulations, 3)):
        for h in range(horizons):
            signs = np.sign(raw[:, s, h])
            signs = signs[signs != 0]
            changes = np.count_nonzero(signs[1:] != signs[:-1])
            same_values(out.runs[0, 2, h, s], np.asarray(changes), f"flips of {s}, {h}")


@diagnosis_count.law
def convictions_fall_in_their_tenth(out: Any, E: int, conviction: Array) -> None:
    """Every event is in one bin; an edge belongs to the upper one, 1 to the last."""
    same_values(out.bins.sum(axis=0), np.full(conviction.shape[1], E), "events in bins")
    top = (conviction.astype(np.float32) * np.float32(10) >= 9).sum(axis=0)
    same_values(out.bins[9], top, "events in the last bin")


@diagnosis_count.law
def streams_are_told_apart(out: Any, raw: Array, smoothed: Array, rerun: Rerun) -> None:
    """Swapping the streams swaps their counters: on noise they differ."""
    again = rerun(raw=smoothed, smoothed=raw)
    same_values(again.runs, out.runs[::-1], "runs of swapped streams")
    same_values(again.run_bins, out.run_bins[::-1], "run_bins of swapped streams")


@diagnosis_count.law
def long_runs_reach_their_bins(raw: Array, runs: Array, rerun: Rerun) -> None:
    """A run that ends with 9, 10, 99, 100, 999, 1000, 9999 or 10000 events is in the right bin."""
    if not len(raw):
        return
    lengths = np.array([9, 10, 99, 100, 999, 1000, 9999, 10000])
    bins = np.array([0, 1, 1, 2, 2, 3, 3, 4])
    which = np.arange(runs.shape[-1]) % len(lengths)
    before = np.zeros_like(runs)
    before[:, 0], before[:, 1] = 1, lengths[which]
    down = np.full_like(raw, -0.5)
    out = rerun(runs=before, raw=down, smoothed=down)
    wanted = (np.arange(5)[:, None] == bins[which]).astype(np.int64)
    shape = out.run_bins[0].shape
    for stream in range(2):
        same_values(out.run_bins[stream], np.broadcast_to(wanted[:, None], shape), "run_bins")


@diagnosis_count.law
def streams_can_be_cut_anywhere(
    out: Any, raw: Array, smoothed: Array, conviction: Array, rerun: Rerun
) -> None:
    """Two launches with the counters carried over give what one gives."""
    cut = len(raw) // 2
    first = rerun(raw=raw[:cut], smoothed=smoothed[:cut], conviction=conviction[:cut])
    carried = {"runs": first.runs, "run_bins": first.run_bins, "bins": first.bins}
    rest = {"raw": raw[cut:], "smoothed": smoothed[cut:], "conviction": conviction[cut:]}
    second = rerun(**rest, **carried)
    for name in ("runs", "run_bins", "bins"):
        same_values(getattr(second, name), getattr(out, name), f"{name} of two launches")


SECOND = 1_000_000_000
HOLD_EDGES = np.array([0, 1, 10, 60, 600, 3600]) * SECOND


def near_edges(values: Array) -> Array:
    """Hold times of which two in three lie at an edge of the bins, or a nanosecond before one."""
    place = np.arange(values.size).reshape(values.shape)
    edge = HOLD_EDGES[values % len(HOLD_EDGES)]
    return np.asarray(np.select([place % 3 == 0, place % 3 == 1], [edge, edge - 1], values)).clip(0)


diagnosis_settle = Contract(
    kernel=kernels.settle,
    oracles=[oracles.settle],
    dims=SIMULATIONS | {"K": sizes(0, 20)},
    args={
        "closes": Tensor("K S", dtypes=COUNTS, domain=integers(0, 1)),
        "held": Tensor(
            "K S", dtypes=NANOSECONDS, domain=integers(0, 4000 * SECOND).map(near_edges)
        ),
        "at_entry": Tensor("K S", domain=reals(0, 1).map(on_edges)),
        "profit": Tensor("K S", domain=reals(-1e4, 1e4)),
        "bins": zeros("26 S"),
        "outcome_profit": Tensor("10 S", domain=reals(-100, 100), role="inout"),
        "block": BLOCK,
    },
    raises=(
        (ValueError, "at_entry", filled("at_entry", -0.25)),
        (TypeError, "held", {"held": None}),
    ),
)
diagnosis_settle.without("logic_matches", PINNED)


@diagnosis_settle.law
def closed_trades_are_counted_once(out: Any, closes: Array, profit: Array) -> None:
    """Hold times and outcomes count the closed trades, wins those with a profit."""
    trades = (closes == 1).sum(axis=0)
    same_values(out.bins[:6].sum(axis=0), trades, "hold times")
    same_values(out.bins[6:16].sum(axis=0), trades, "outcomes")
    wins = ((closes == 1) & (profit > 0)).sum(axis=0)
    same_values(out.bins[16:].sum(axis=0), wins, "wins")


@diagnosis_settle.law
def hold_edges_belong_to_the_upper_bin(closes: Array, held: Array, rerun: Rerun) -> None:
    """A trade of just 1 s, 10 s, 1 min, 10 min or 1 h is in the bin that begins there."""
    for number, edge in enumerate(HOLD_EDGES):
        out = rerun(held=np.full_like(held, edge), closes=np.ones_like(closes))
        wanted = len(closes) * (np.arange(6)[:, None] == number)
        shape = out.bins[:6].shape
        same_values(out.bins[:6], np.broadcast_to(wanted, shape), f"hold times of {edge} ns")


@diagnosis_settle.law
def open_trades_change_nothing(
    closes: Array, bins: Array, outcome_profit: Array, rerun: Rerun
) -> None:
    """Without a close every counter keeps its bits."""
    out = rerun(closes=np.zeros_like(closes))
    same_values(out.bins, bins, "bins without a close")
    same_bits(out.outcome_profit, outcome_profit, "outcome_profit without a close")
