"""Streams of directions, convictions and closed trades counted, many events a launch."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.decision.signals import columns_of
from trivet.impl.diagnosis.counters import (
    HOLD_BINS,
    RUN_BINS,
    UNIT_BINS,
    advance,
    bump,
    count_close,
    load_runs,
    store_runs,
    unit_bin,
)

RUN_FIELDS = ("direction", "length", "flips", "total")
_STREAM_BINS = tl.constexpr(RUN_BINS)
_OUTCOMES = tl.constexpr(HOLD_BINS)


@triton.jit(do_not_specialize=["E", "N"])
def _count_kernel(
    raw: tl.tensor,
    smoothed: tl.tensor,
    conviction: tl.tensor,
    runs: tl.tensor,
    run_bins: tl.tensor,
    bins: tl.tensor,
    S: int,
    E: int,
    N: int,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    simulation = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, COLUMNS)
    live = simulation < S
    inside = live[:, None] & (column < N)[None, :]
    place = column[None, :] * S + simulation[:, None]
    each = simulation[:, None] * N + column[None, :]
    step = N * S
    raw_runs = load_runs(runs, place, step, inside)
    smooth_runs = load_runs(runs + 4 * step, place, step, inside)
    smooth_bins = run_bins + _STREAM_BINS * step
    for event in range(E):
        row = tl.cast(event, tl.int64) * S
        first = tl.load(raw + row * N + each, mask=inside, other=0.0)
        second = tl.load(smoothed + row * N + each, mask=inside, other=0.0)
        raw_runs = advance(raw_runs, first, run_bins, place, step, inside)
        smooth_runs = advance(smooth_runs, second, smooth_bins, place, step, inside)
        level = tl.load(conviction + row + simulation, mask=live, other=0.0)
        bump(bins + unit_bin(level) * S + simulation, live)
    store_runs(runs, place, step, raw_runs, inside)
    store_runs(runs + 4 * step, place, step, smooth_runs, inside)


def count(
    raw: torch.Tensor,
    smoothed: torch.Tensor,
    conviction: torch.Tensor,
    runs: torch.Tensor,
    run_bins: torch.Tensor,
    bins: torch.Tensor,
    *,
    block: int = 32,
) -> None:
    """Count E events, in place: runs of two streams' directions, and convictions.

    raw and smoothed (E, S, N) float32, whose signs are directions; conviction (E, S) float32 in
    [0, 1]; runs (2, 4, N, S) int64: direction, length of the open run, flips and total of the
    ended ones; run_bins (2, 5, N, S) int64, 1-9, 10-99, 100-999, 1k-9999, 10k+; bins (10, S) int64
    (backtest.md, 7). One launch. Raises ValueError for a conviction outside [0, 1].
    """
    arguments = _checks.Arguments(A=2, F=len(RUN_FIELDS), R=RUN_BINS, U=UNIT_BINS)
    arguments.tensor("raw", raw, "E S N", torch.float32)
    arguments.tensor("smoothed", smoothed, "E S N", torch.float32)
    arguments.tensor("conviction", conviction, "E S", torch.float32)
    arguments.tensor("runs", runs, "A F N S", torch.int64)
    arguments.tensor("run_bins", run_bins, "A R N S", torch.int64)
    arguments.tensor("bins", bins, "U S", torch.int64)
    _checks.blocks(block=block)
    events, simulations, horizons = raw.shape
    _checks.count("N", horizons, 1)
    good = (conviction >= 0) & (conviction <= 1)
    _checks.every("conviction", conviction, good, "from 0 to 1")
    if simulations:
        given = (raw, smoothed, conviction, runs, run_bins, bins)
        sizes = (simulations, events, horizons, block, columns_of(horizons))
        _count_kernel[(triton.cdiv(simulations, block),)](
            *given, *sizes, num_warps=1, enable_fp_fusion=False
        )


@triton.jit
def _settle_kernel(
    closes: tl.tensor,
    held: tl.tensor,
    at_entry: tl.tensor,
    profit: tl.tensor,
    bins: tl.tensor,
    outcome_profit: tl.tensor,
    S: int,
    K: int,
    BLOCK: tl.constexpr,
) -> None:
    simulation = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = simulation < S
    for step in range(K):
        row = tl.cast(step, tl.int64) * S + simulation
        count_close(
            tl.load(closes + row, mask=live, other=0) != 0,
            tl.load(held + row, mask=live, other=0),
            tl.load(at_entry + row, mask=live, other=0.0),
            tl.load(profit + row, mask=live, other=0.0),
            bins,
            bins + _OUTCOMES * S,
            outcome_profit,
            simulation,
            S,
        )


def settle(
    closes: torch.Tensor,
    held: torch.Tensor,
    at_entry: torch.Tensor,
    profit: torch.Tensor,
    bins: torch.Tensor,
    outcome_profit: torch.Tensor,
    *,
    block: int = 32,
) -> None:
    """Count closed trades, in place: hold times, and outcomes by entry conviction.

    closes (K, S) int32, 0 where no trade closes; held (K, S) int64 ns; at_entry in [0, 1] and
    profit (K, S) float32; bins (26, S) int64: hold time 6, trades 10, wins 10; outcome_profit
    (10, S) float32, summed in order (backtest.md, 7). One launch. Raises ValueError.
    """
    arguments = _checks.Arguments(B=HOLD_BINS + 2 * UNIT_BINS, U=UNIT_BINS)
    arguments.tensor("closes", closes, "K S", torch.int32)
    arguments.tensor("held", held, "K S", torch.int64)
    arguments.tensor("at_entry", at_entry, "K S", torch.float32)
    arguments.tensor("profit", profit, "K S", torch.float32)
    arguments.tensor("bins", bins, "B S", torch.int64)
    arguments.tensor("outcome_profit", outcome_profit, "U S", torch.float32)
    _checks.blocks(block=block)
    good = (at_entry >= 0) & (at_entry <= 1)
    _checks.every("at_entry", at_entry, good, "from 0 to 1")
    steps, simulations = closes.shape
    if simulations:
        given = (closes, held, at_entry, profit, bins, outcome_profit)
        _settle_kernel[(triton.cdiv(simulations, block),)](
            *given, simulations, steps, block, num_warps=1, enable_fp_fusion=False
        )
