"""Spread of each horizon's labels: mean and squares of each part, then merged; no atomics."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._sums import parts_of


@triton.jit(do_not_specialize=["rows", "rows_per_part"])
def _spread_partials_kernel(
    labels: tl.tensor,
    counts: tl.tensor,
    means: tl.tensor,
    squares: tl.tensor,
    rows: int,
    N: int,
    rows_per_part: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    """One part's number of present labels, their mean, and the squares of what they differ by."""
    part = tl.program_id(0).to(tl.int64)
    horizon = tl.arange(0, BLOCK_N)
    first = part * rows_per_part
    last = tl.minimum(first + rows_per_part, rows)
    total = tl.zeros([BLOCK_ROWS, BLOCK_N], tl.float32)
    count = tl.zeros([BLOCK_ROWS, BLOCK_N], tl.int64)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)[:, None]
        live = (row < last) & (horizon < N)[None, :]
        label = tl.load(labels + row * N + horizon[None, :], mask=live, other=float("nan"))
        total += tl.where(label == label, label, 0.0)
        count += (label == label).to(tl.int64)
    present = tl.sum(count, axis=0)
    mean = tl.sum(total, axis=0) / tl.maximum(present, 1).to(tl.float32)
    square = tl.zeros([BLOCK_ROWS, BLOCK_N], tl.float32)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)[:, None]
        live = (row < last) & (horizon < N)[None, :]
        label = tl.load(labels + row * N + horizon[None, :], mask=live, other=float("nan"))
        off = tl.where(label == label, label - mean[None, :], 0.0)
        square += off * off
    place = part * N + horizon
    tl.store(counts + place, present, mask=horizon < N)
    tl.store(means + place, mean, mask=horizon < N)
    tl.store(squares + place, tl.sum(square, axis=0), mask=horizon < N)


@triton.jit
def _deviation_kernel(
    counts: tl.tensor,
    means: tl.tensor,
    squares: tl.tensor,
    deviation: tl.tensor,
    parts: int,
    N: int,
    BLOCK_N: tl.constexpr,
) -> None:
    """Merge the parts, in order: squares about a part's mean, and of the means about the whole."""
    horizon = tl.arange(0, BLOCK_N)
    live = horizon < N
    total = tl.zeros([BLOCK_N], tl.float32)
    count = tl.zeros([BLOCK_N], tl.int64)
    for part in range(parts):
        own = tl.load(counts + part * N + horizon, mask=live, other=0)
        count += own
        total += own.to(tl.float32) * tl.load(means + part * N + horizon, mask=live, other=0.0)
    number = tl.maximum(count, 1).to(tl.float32)
    mean = total / number
    square = tl.zeros([BLOCK_N], tl.float32)
    for part in range(parts):
        own = tl.load(counts + part * N + horizon, mask=live, other=0).to(tl.float32)
        off = tl.load(means + part * N + horizon, mask=live, other=0.0) - mean
        square += tl.load(squares + part * N + horizon, mask=live, other=0.0) + own * (off * off)
    spread = tl.sqrt_rn(square / number)
    tl.store(deviation + horizon, tl.where(count > 0, spread, float("nan")), mask=live)


def label_deviation(labels: torch.Tensor, *, block_rows: int = 64, parts: int = 64) -> torch.Tensor:
    """Return the root of the population variance of each horizon's present labels, (N,) float32.

    labels (K, B, N) float32 in [0, 1], NaN where absent; a horizon without any gives NaN. Two
    launches: at most `parts` parts, then their merger (Chan, Golub, LeVeque 1979). Raises
    TypeError or ValueError naming the argument.
    """
    arguments = _checks.Arguments()
    arguments.tensor("labels", labels, "K B N", torch.float32)
    _checks.horizons(arguments.sizes["N"])
    _checks.blocks(block_rows=block_rows)
    _checks.count("parts", parts, 1)
    legal = ((labels >= 0) & (labels <= 1)) | labels.isnan()
    _checks.every("labels", labels, legal, "in [0, 1], or NaN where absent")
    K, B, N = labels.shape
    if not K * B:
        return labels.new_full((N,), torch.nan)
    rows_per_part, parts = parts_of(K * B, block_rows, parts)
    counts = torch.empty((parts, N), dtype=torch.int64, device=labels.device)
    means, squares = labels.new_empty((2, parts, N))
    deviation = labels.new_empty(N)
    block_n = triton.next_power_of_2(N)
    _spread_partials_kernel[(parts,)](
        labels, counts, means, squares, K * B, N, rows_per_part, block_rows, block_n, num_warps=2
    )
    _deviation_kernel[(1,)](counts, means, squares, deviation, parts, N, block_n, num_warps=1)
    return deviation
