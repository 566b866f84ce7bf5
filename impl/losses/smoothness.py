"""How much each horizon's probability changes from event to event, as a loss; two stages."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._sums import parts_of


@triton.jit(do_not_specialize=["steps", "B", "steps_per_part"])
def _change_partials_kernel(
    p: tl.tensor,
    sums: tl.tensor,
    steps: int,
    B: int,
    N: int,
    steps_per_part: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    """One part's sum of squared changes per horizon; row r of p is followed by row r + B."""
    part = tl.program_id(0).to(tl.int64)
    horizon = tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_ROWS, BLOCK_N], tl.float32)
    first = part * steps_per_part
    last = tl.minimum(first + steps_per_part, steps)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)[:, None]
        live = (row < last) & (horizon < N)[None, :]
        before = tl.load(p + row * N + horizon[None, :], mask=live, other=0.0)
        after = tl.load(p + (row + B) * N + horizon[None, :], mask=live, other=0.0)
        total += (after - before) * (after - before)
    tl.store(sums + part * N + horizon, tl.sum(total, axis=0), mask=horizon < N)


@triton.jit(do_not_specialize=["steps"])
def _smoothness_kernel(
    sums: tl.tensor,
    weight: tl.tensor,
    loss: tl.tensor,
    mean: tl.tensor,
    parts: int,
    steps: int,
    N: int,
    BLOCK_N: tl.constexpr,
) -> None:
    """Add the parts, in order; the mean over the steps, and the same times the weight."""
    horizon = tl.arange(0, BLOCK_N)
    live = horizon < N
    total = tl.zeros([BLOCK_N], tl.float32)
    for part in range(parts):
        total += tl.load(sums + part * N + horizon, mask=live, other=0.0)
    average = total / tl.maximum(steps, 1).to(tl.float32)
    factor = tl.load(weight + horizon, mask=live, other=0.0)
    tl.store(mean + horizon, average, mask=live)
    tl.store(loss + horizon, factor * average, mask=live)


@triton.jit(do_not_specialize=["K", "B", "steps"])
def _smoothness_backward_kernel(
    g_loss: tl.tensor,
    g_mean: tl.tensor,
    p: tl.tensor,
    weight: tl.tensor,
    dp: tl.tensor,
    K: int,
    B: int,
    N: int,
    steps: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    """Branch free: at both ends the neighbour is the row itself and its term times zero."""
    horizon = tl.arange(0, BLOCK_N)
    known = horizon < N
    slope = tl.load(g_loss + horizon, mask=known, other=0.0)
    slope = slope * tl.load(weight + horizon, mask=known, other=0.0)
    slope = slope + tl.load(g_mean + horizon, mask=known, other=0.0)
    scale = 2.0 * slope / tl.maximum(steps, 1).to(tl.float32)
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    event = row // B
    has_before = (event > 0).to(tl.int64)
    has_after = (event < K - 1).to(tl.int64)
    live = ((event < K)[:, None]) & known[None, :]
    here = tl.load(p + row[:, None] * N + horizon[None, :], mask=live, other=0.0)
    before = (row - B * has_before)[:, None] * N + horizon[None, :]
    after = (row + B * has_after)[:, None] * N + horizon[None, :]
    rise = here - tl.load(p + before, mask=live, other=0.0)
    fall = here - tl.load(p + after, mask=live, other=0.0)
    change = rise * has_before.to(tl.float32)[:, None] + fall * has_after.to(tl.float32)[:, None]
    tl.store(dp + row[:, None] * N + horizon[None, :], scale[None, :] * change, mask=live)


def output_smoothness(
    p: torch.Tensor, weight: torch.Tensor, *, block_rows: int = 64, parts: int = 64
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return loss and mean, both (N,) float32.

    mean_k is the mean over B and the K - 1 steps of (p_t - p_{t-1})^2, loss_k is weight_k times
    it. p (K, B, N) and weight (N,) float32. Without a step (K <= 1 or B = 0) both are 0. Two
    launches: the steps in at most `parts` parts, then their sum; no atomics. Raises TypeError or
    ValueError naming the argument for another shape, dtype or device.
    """
    K, B, N = _check(p, weight, block_rows, parts)
    steps = max(K - 1, 0) * B
    if not steps:
        return p.new_zeros(N), p.new_zeros(N)
    steps_per_part, parts = parts_of(steps, block_rows, parts)
    sums = p.new_empty((parts, N))
    loss, mean = p.new_empty(N), p.new_empty(N)
    block_n = triton.next_power_of_2(N)
    _change_partials_kernel[(parts,)](
        p, sums, steps, B, N, steps_per_part, block_rows, block_n, num_warps=2
    )
    _smoothness_kernel[(1,)](sums, weight, loss, mean, parts, steps, N, block_n, num_warps=1)
    return loss, mean


def output_smoothness_backward(
    g_loss: torch.Tensor,
    g_mean: torch.Tensor,
    p: torch.Tensor,
    weight: torch.Tensor,
    *,
    block_rows: int = 64,
    parts: int = 64,
) -> dict[str, torch.Tensor]:
    """Return {"p": gradient (K, B, N)} of `output_smoothness` from g_loss and g_mean (N,).

    dp_t = 2 (g_loss weight + g_mean) / (B (K - 1)) times the changes to p_t from both of its
    neighbours in time; a missing neighbour counts as 0. One launch. Raises as
    `output_smoothness`.
    """
    K, B, N = _check(p, weight, block_rows, parts)
    arguments = _checks.Arguments(N=N)
    arguments.device = p.device
    arguments.tensor("g_loss", g_loss, "N", torch.float32)
    arguments.tensor("g_mean", g_mean, "N", torch.float32)
    dp = torch.empty_like(p)
    if p.numel():
        _smoothness_backward_kernel[(triton.cdiv(K * B, block_rows),)](
            g_loss, g_mean, p, weight, dp, K, B, N, (K - 1) * B, block_rows,
            triton.next_power_of_2(N), num_warps=2,
        )  # fmt: skip
    return {"p": dp}


def _check(
    p: torch.Tensor, weight: torch.Tensor, block_rows: int, parts: int
) -> tuple[int, int, int]:
    """Check what forward and backward share; returns K, B and N."""
    arguments = _checks.Arguments()
    arguments.tensor("p", p, "K B N", torch.float32)
    arguments.tensor("weight", weight, "N", torch.float32)
    _checks.horizons(arguments.sizes["N"])
    _checks.blocks(block_rows=block_rows)
    _checks.count("parts", parts, 1)
    K, B, N = p.shape
    return K, B, N
