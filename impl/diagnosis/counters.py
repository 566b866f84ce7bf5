"""Counters with a single writer: runs of a direction, and bins that are bumped in memory."""

from typing import NamedTuple

import triton
import triton.language as tl

RUN_BINS = 5
UNIT_BINS = 10
HOLD_BINS = 6


class Runs(NamedTuple):
    """Runs of one direction, tiles (BLOCK, COLUMNS) of int64.

    direction is -1, 1, or 0 before the first; length is that of the open run; flips counts the
    runs that ended, total their lengths.
    """

    direction: tl.tensor
    length: tl.tensor
    flips: tl.tensor
    total: tl.tensor


@triton.jit
def bump(pointer: tl.tensor, counts: tl.tensor) -> None:
    """Add 1 in memory where it counts: no other program, and no other lane, has this element."""
    tl.store(pointer, tl.load(pointer, mask=counts, other=0) + 1, mask=counts)


@triton.jit
def run_bin(length: tl.tensor) -> tl.tensor:
    """Return the bin of a run's length: 1-9, 10-99, 100-999, 1k-9999, 10k and more."""
    over = (length >= 10).to(tl.int64) + (length >= 100).to(tl.int64)
    return over + (length >= 1000).to(tl.int64) + (length >= 10000).to(tl.int64)


@triton.jit
def unit_bin(x: tl.tensor) -> tl.tensor:
    """Return the bin of a number in [0, 1], tenths, 1 in the last; int64."""
    return tl.minimum(tl.floor(x * 10.0).to(tl.int64), 9)


@triton.jit
def hold_bin(held: tl.tensor) -> tl.tensor:
    """Return the bin of a hold time in ns; an edge belongs to the upper bin."""
    short = (held >= 1_000_000_000).to(tl.int64) + (held >= 10_000_000_000).to(tl.int64)
    middle = (held >= 60_000_000_000).to(tl.int64) + (held >= 600_000_000_000).to(tl.int64)
    return short + middle + (held >= 3_600_000_000_000).to(tl.int64)


@triton.jit
def advance(
    runs: Runs,
    x: tl.tensor,
    bins: tl.tensor,
    place: tl.tensor,
    stride: tl.tensor,
    inside: tl.tensor,
) -> Runs:
    """Return the runs after one more x, whose sign is the direction; bins get the ended ones.

    A direction of 0 continues the run; zeros before the first direction belong to none. Bins lie
    `stride` elements apart.
    """
    direction = (x > 0.0).to(tl.int64) - (x < 0.0).to(tl.int64)
    known = runs.direction != 0
    flips = known & (direction != 0) & (direction != runs.direction)
    bump(bins + run_bin(runs.length) * stride + place, flips & inside)
    begins = flips | ((direction != 0) & (runs.direction == 0))
    return Runs(
        tl.where(direction != 0, direction, runs.direction),
        tl.where(begins, 1, tl.where(known, runs.length + 1, 0)),
        runs.flips + flips.to(tl.int64),
        runs.total + tl.where(flips, runs.length, 0),
    )


@triton.jit
def count_close(
    closes: tl.tensor,
    held: tl.tensor,
    at_entry: tl.tensor,
    profit: tl.tensor,
    hold_bins: tl.tensor,
    outcome_bins: tl.tensor,
    outcome_profit: tl.tensor,
    simulation: tl.tensor,
    S: tl.tensor,
) -> None:
    """Count closed trades: hold time (6, S), and by entry conviction trades and wins (2, 10, S)
    int64 and summed net profit (10, S) float32."""
    bump(hold_bins + hold_bin(held) * S + simulation, closes)
    place = unit_bin(at_entry) * S + simulation
    bump(outcome_bins + place, closes)
    bump(outcome_bins + 10 * S + place, closes & (profit > 0.0))
    before = tl.load(outcome_profit + place, mask=closes, other=0.0)
    tl.store(outcome_profit + place, before + profit, mask=closes)


@triton.jit
def load_runs(pointer: tl.tensor, place: tl.tensor, stride: tl.tensor, inside: tl.tensor) -> Runs:
    """Read runs whose fields lie `stride` elements apart; zeros where not inside."""
    return Runs(
        tl.load(pointer + place, mask=inside, other=0),
        tl.load(pointer + stride + place, mask=inside, other=0),
        tl.load(pointer + 2 * stride + place, mask=inside, other=0),
        tl.load(pointer + 3 * stride + place, mask=inside, other=0),
    )


@triton.jit
def store_runs(
    pointer: tl.tensor, place: tl.tensor, stride: tl.tensor, runs: Runs, inside: tl.tensor
) -> None:
    """Write runs whose fields lie `stride` elements apart, where inside."""
    tl.store(pointer + place, runs.direction, mask=inside)
    tl.store(pointer + stride + place, runs.length, mask=inside)
    tl.store(pointer + 2 * stride + place, runs.flips, mask=inside)
    tl.store(pointer + 3 * stride + place, runs.total, mask=inside)
