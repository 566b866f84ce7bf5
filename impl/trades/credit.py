"""What a closed trade leaves behind: its profit per lot, credited to the horizon that led it."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.trades.layout import KEPT_HORIZONS, STRIDE
from trivet.impl.trades.record import cleared, load_record, store_record


class Edges(NamedTuple):
    """Running moments of net profit per closed lot by horizon, tiles (BLOCK, COLUMNS).

    closed int64, mean float32, square float32: the sum of squared distances from the mean.
    """

    closed: tl.tensor
    mean: tl.tensor
    square: tl.tensor


@triton.jit
def variance(edges: Edges) -> tl.tensor:
    """Return the population variance, 0 before the first close."""
    count = tl.maximum(edges.closed, 1).to(tl.float32)
    return tl.div_rn(edges.square, count)


@triton.jit
def observe_value(edges: Edges, x: tl.tensor, counts: tl.tensor) -> Edges:
    """Return the moments after one more x where it counts (Welford)."""
    closed = edges.closed + counts.to(tl.int64)
    gap = x - edges.mean
    mean = edges.mean + tl.div_rn(gap, tl.maximum(closed, 1).to(tl.float32))
    square = edges.square + gap * (x - mean)
    return Edges(closed, tl.where(counts, mean, edges.mean), tl.where(counts, square, edges.square))


@triton.jit
def credited(
    edges: Edges,
    dominant: tl.tensor,
    profit: tl.tensor,
    lots: tl.tensor,
    closes: tl.tensor,
    column: tl.tensor,
) -> Edges:
    """Credit net profit per closed lot to the dominant horizon where a trade closes."""
    each = tl.div_rn(profit, tl.maximum(lots, 1).to(tl.float32))
    counts = closes[:, None] & (column[None, :] == dominant[:, None])
    after: Edges = observe_value(edges, each[:, None] + tl.zeros_like(edges.mean), counts)
    return after


@triton.jit
def load_edges(
    closed: tl.tensor, mean: tl.tensor, square: tl.tensor, place: tl.tensor, inside: tl.tensor
) -> Edges:
    """Read the moments at `place` (BLOCK, COLUMNS); zeros where not inside."""
    return Edges(
        tl.load(closed + place, mask=inside, other=0),
        tl.load(mean + place, mask=inside, other=0.0),
        tl.load(square + place, mask=inside, other=0.0),
    )


@triton.jit
def store_edges(
    closed: tl.tensor,
    mean: tl.tensor,
    square: tl.tensor,
    place: tl.tensor,
    edges: Edges,
    inside: tl.tensor,
) -> None:
    """Write the moments at `place` (BLOCK, COLUMNS), where inside."""
    tl.store(closed + place, edges.closed, mask=inside)
    tl.store(mean + place, edges.mean, mask=inside)
    tl.store(square + place, edges.square, mask=inside)


@triton.jit
def _credit_kernel(
    words: tl.tensor,
    profit: tl.tensor,
    lots: tl.tensor,
    closes: tl.tensor,
    closed: tl.tensor,
    mean: tl.tensor,
    square: tl.tensor,
    S: int,
    N: int,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    simulation = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, COLUMNS)
    live = simulation < S
    inside = live[:, None] & (column < N)[None, :]
    place = column[None, :] * S + simulation[:, None]
    record = load_record(words, simulation, column, live)
    ends = tl.load(closes + simulation, mask=live, other=0) != 0
    edges = credited(
        load_edges(closed, mean, square, place, inside),
        record.dominant,
        tl.load(profit + simulation, mask=live, other=0.0),
        tl.load(lots + simulation, mask=live, other=1),
        ends,
        column,
    )
    store_edges(closed, mean, square, place, edges, inside)
    store_record(words, simulation, column, cleared(record, ends), live)


def credit(
    record: torch.Tensor,
    profit: torch.Tensor,
    lots: torch.Tensor,
    closes: torch.Tensor,
    closed: torch.Tensor,
    mean: torch.Tensor,
    square: torch.Tensor,
    *,
    block: int = 32,
) -> None:
    """Close trades, in place: credit net profit per lot to the horizon of byte 60, clear records.

    record (S, 16) int32; profit (S,) float32 net; lots (S,) int64 closed, at least 1; closes (S,)
    int32, 0 where the trade goes on; closed (N, S) int64, mean and square (N, S) float32 are the
    running moments by horizon (backtest.md, 2 and 4). One launch.
    """
    arguments = _checks.Arguments(R=STRIDE // 4)
    arguments.tensor("record", record, "S R", torch.int32)
    arguments.tensor("profit", profit, "S", torch.float32)
    arguments.tensor("lots", lots, "S", torch.int64)
    arguments.tensor("closes", closes, "S", torch.int32)
    arguments.tensor("closed", closed, "N S", torch.int64)
    arguments.tensor("mean", mean, "N S", torch.float32)
    arguments.tensor("square", square, "N S", torch.float32)
    _checks.blocks(block=block)
    _checks.every("lots", lots, lots >= 1, "at least 1")
    horizons, simulations = mean.shape
    if simulations:
        given = (record, profit, lots, closes, closed, mean, square)
        columns = max(KEPT_HORIZONS, triton.next_power_of_2(horizons))
        sizes = (simulations, horizons, block, columns)
        _credit_kernel[(triton.cdiv(simulations, block),)](
            *given, *sizes, num_warps=1, enable_fp_fusion=False
        )
