"""The pool in one pass over the window: maximum, sum and weighted sum run along together."""

import math

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._sums import parts_of, sum_parts

WIDEST = 1024


@triton.jit
def _states(
    x: tl.tensor,
    row: tl.tensor,
    event: tl.tensor,
    channel: tl.tensor,
    K: int,
    H: int,
) -> tl.tensor:
    """The states (events, channels) of one row of the batch; 0 outside."""
    place = (row * K + event)[:, None] * H + channel[None, :]
    return tl.load(x + place, mask=(event < K)[:, None] & (channel < H)[None, :], other=0.0)


@triton.jit
def _pooled(
    x: tl.tensor,
    query: tl.tensor,
    row: tl.tensor,
    channel: tl.tensor,
    K: int,
    H: int,
    scale: float,
    BLOCK_K: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """The weighted sum (channels,) of one row, the largest score, the sum of exponentials."""
    largest = tl.full([1], float("-inf"), tl.float32)
    total = tl.zeros([1], tl.float32)
    pooled = tl.zeros([channel.shape[0]], tl.float32)
    for start in range(0, K, BLOCK_K):
        event = start + tl.arange(0, BLOCK_K)
        states = _states(x, row, event, channel, K, H)
        score = tl.sum(states * query[None, :], axis=1) * scale
        score = tl.where(event < K, score, float("-inf"))
        higher = tl.maximum(largest, tl.max(score, axis=0))
        weight = tl.exp(score - higher)
        kept = tl.exp(largest - higher)
        total = total * kept + tl.sum(weight, axis=0)
        pooled = pooled * kept + tl.sum(weight[:, None] * states, axis=0)
        largest = higher
    return pooled / total, largest, total


@triton.jit
def _pool_kernel(
    q: tl.tensor,
    x: tl.tensor,
    out: tl.tensor,
    K: int,
    H: int,
    scale: float,
    BLOCK_K: tl.constexpr,
    BLOCK_H: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    channel = tl.arange(0, BLOCK_H)
    query = tl.load(q + channel, mask=channel < H, other=0.0)
    pooled, _, _ = _pooled(x, query, row, channel, K, H, scale, BLOCK_K)
    tl.store(out + row * H + channel, pooled, mask=channel < H)


@triton.jit(do_not_specialize=["B", "rows_per_part"])
def _pool_backward_kernel(
    g: tl.tensor,
    q: tl.tensor,
    x: tl.tensor,
    dx: tl.tensor,
    dq_partials: tl.tensor,
    B: int,
    K: int,
    H: int,
    scale: float,
    rows_per_part: int,
    BLOCK_K: tl.constexpr,
    BLOCK_H: tl.constexpr,
) -> None:
    """dx of a part's rows, and the part's share of dq."""
    part = tl.program_id(0).to(tl.int64)
    channel = tl.arange(0, BLOCK_H)
    query = tl.load(q + channel, mask=channel < H, other=0.0)
    share = tl.zeros([BLOCK_H], tl.float32)
    first = part * rows_per_part
    for row in range(first, tl.minimum(first + rows_per_part, B)):
        pooled, largest, total = _pooled(x, query, row, channel, K, H, scale, BLOCK_K)
        slope = tl.load(g + row * H + channel, mask=channel < H, other=0.0)
        for start in range(0, K, BLOCK_K):
            event = start + tl.arange(0, BLOCK_K)
            states = _states(x, row, event, channel, K, H)
            score = tl.sum(states * query[None, :], axis=1) * scale
            weight = tl.where(event < K, tl.exp(score - largest) / total, 0.0)
            # A difference of states first: the part that all of them share cancels exactly.
            pull = tl.sum((states - pooled[None, :]) * slope[None, :], axis=1)
            to_score = weight * pull * scale
            passed = weight[:, None] * slope[None, :] + to_score[:, None] * query[None, :]
            place = (row * K + event)[:, None] * H + channel[None, :]
            tl.store(dx + place, passed, mask=(event < K)[:, None] & (channel < H)[None, :])
            share += tl.sum(to_score[:, None] * states, axis=0)
    tl.store(dq_partials + part * H + channel, share, mask=channel < H)


def attention_pool(q: torch.Tensor, X: torch.Tensor, *, block_k: int = 16) -> torch.Tensor:
    """Return out (B, H) float32: the states X (B, K, H) weighted by softmax(q . X_t / sqrt(H)).

    q (H,), K >= 1 events, H up to 1024. One launch, one program a row; the order of the sums
    depends on K and block_k alone. Raises TypeError or ValueError naming the argument.
    """
    B, K, H = _check(q, X, block_k)
    out = X.new_empty((B, H))
    if B:
        _pool_kernel[(B,)](
            q, X, out, K, H, 1 / math.sqrt(H), block_k, triton.next_power_of_2(H), num_warps=2
        )
    return out


def attention_pool_backward(
    g: torch.Tensor, q: torch.Tensor, X: torch.Tensor, *, block_k: int = 16, parts: int = 64
) -> dict[str, torch.Tensor]:
    """Return the gradients {"q": (H,), "X": (B, K, H)} of `attention_pool` from g (B, H).

    With weights p_t: dX_t = p_t g + p_t g . (X_t - out) q / sqrt(H), dq sums p_t g . (X_t - out)
    X_t / sqrt(H) over t and the batch. Two launches: the rows in at most `parts` parts, the sum
    of their shares of dq; no atomics. Raises as `attention_pool`.
    """
    B, K, H = _check(q, X, block_k)
    arguments = _checks.Arguments(B=B, H=H)
    arguments.device = X.device
    arguments.tensor("g", g, "B H", torch.float32)
    _checks.count("parts", parts, 1)
    dX = torch.empty_like(X)
    if not B:
        return {"q": torch.zeros_like(q), "X": dX}
    rows_per_part, parts = parts_of(B, 1, parts)
    shares = X.new_empty((parts, H))
    _pool_backward_kernel[(parts,)](
        g, q, X, dX, shares, B, K, H, 1 / math.sqrt(H), rows_per_part, block_k,
        triton.next_power_of_2(H), num_warps=2,
    )  # fmt: skip
    return {"q": sum_parts(shares), "X": dX}


def _check(q: torch.Tensor, X: torch.Tensor, block_k: int) -> tuple[int, int, int]:
    """Check what forward and backward share; returns B, K and H."""
    arguments = _checks.Arguments()
    arguments.tensor("q", q, "H", torch.float32)
    arguments.tensor("X", X, "B K H", torch.float32)
    _checks.blocks(block_k=block_k)
    B, K, H = X.shape
    if K < 1:
        raise ValueError("X must hold at least one event (K >= 1), got none")
    if not 1 <= H <= WIDEST:
        raise ValueError(f"q must have 1 to {WIDEST} channels, got {H}")
    return B, K, H
