"""The range of time constants each bucket allows: quartiles, widening, clamping."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.routing.assignment import count_earlier


@triton.jit
def _pick(value: tl.tensor, hit: tl.tensor) -> tl.tensor:
    """Return the one value that is hit, or 0: adding zeros changes no bit."""
    return tl.sum(tl.where(hit, value, 0.0), axis=0)


@triton.jit
def _count_members(
    bucket_of: tl.tensor, bucket: tl.tensor, H: int, BLOCK_CHANNELS: tl.constexpr
) -> tl.tensor:
    """Return the number of channels of the bucket."""
    size = 0
    for start in range(0, H, BLOCK_CHANNELS):
        channel = start + tl.arange(0, BLOCK_CHANNELS)
        member = tl.load(bucket_of + channel, mask=channel < H, other=-1) == bucket
        size += tl.sum(member.to(tl.int32), axis=0)
    return size


@triton.jit
def _bucket_iqr_kernel(
    tau: tl.tensor,
    bucket_of: tl.tensor,
    q1: tl.tensor,
    q3: tl.tensor,
    H: int,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_OTHERS: tl.constexpr,
) -> None:
    bucket = tl.program_id(0)
    size = _count_members(bucket_of, bucket, H, BLOCK_OTHERS)
    last = size - 1
    under_q1 = last // 4
    under_q3 = 3 * last // 4
    low1 = 0.0
    high1 = 0.0
    low3 = 0.0
    high3 = 0.0
    for start in range(0, H, BLOCK_CHANNELS):
        channel = start + tl.arange(0, BLOCK_CHANNELS)
        member = tl.load(bucket_of + channel, mask=channel < H, other=-1) == bucket
        value = tl.load(tau + channel, mask=member, other=0.0)
        rank = tl.zeros([BLOCK_CHANNELS], tl.int32)
        for other_start in range(0, H, BLOCK_OTHERS):
            other_channel = other_start + tl.arange(0, BLOCK_OTHERS)
            inside = other_channel < H
            mates = tl.load(bucket_of + other_channel, mask=inside, other=-1) == bucket
            # Infinity sorts after every member, so other channels count nothing.
            others = tl.load(tau + other_channel, mask=inside, other=0.0)
            others = tl.where(mates, others, float("inf"))
            rank += count_earlier(value, channel, others, other_channel)
        low1 += _pick(value, member & (rank == under_q1))
        high1 += _pick(value, member & (rank == tl.minimum(under_q1 + 1, last)))
        low3 += _pick(value, member & (rank == under_q3))
        high3 += _pick(value, member & (rank == tl.minimum(under_q3 + 1, last)))
    past_q1 = 0.25 * (last % 4)
    past_q3 = 0.25 * (3 * last % 4)
    empty = size == 0
    tl.store(q1 + bucket, tl.where(empty, 0.0, low1 + past_q1 * (high1 - low1)))
    tl.store(q3 + bucket, tl.where(empty, float("inf"), low3 + past_q3 * (high3 - low3)))


@triton.jit
def _iqr_widen_kernel(
    q1: tl.tensor, q3: tl.tensor, lo: tl.tensor, hi: tl.tensor, N: int, BLOCK: tl.constexpr
) -> None:
    bucket = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = bucket < N
    first = tl.load(q1 + bucket, mask=live, other=1.0)
    third = tl.load(q3 + bucket, mask=live, other=1.0)
    # Correctly rounded, so that equal quartiles give a slack of exactly 1 and scaling tau by a
    # power of two changes no bit of it.
    slack = tl.sqrt_rn(tl.div_rn(third, first))
    empty = first == 0.0
    tl.store(lo + bucket, tl.where(empty, first, tl.div_rn(first, slack)), mask=live)
    tl.store(hi + bucket, tl.where(empty, third, third * slack), mask=live)


@triton.jit(do_not_specialize=["chosen"])
def _iqr_double_widen_kernel(
    lo: tl.tensor,
    hi: tl.tensor,
    wider_lo: tl.tensor,
    wider_hi: tl.tensor,
    chosen: int,
    N: int,
    BLOCK: tl.constexpr,
) -> None:
    bucket = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = bucket < N
    low = tl.load(lo + bucket, mask=live)
    high = tl.load(hi + bucket, mask=live)
    tl.store(wider_lo + bucket, tl.where(bucket == chosen, low * 0.5, low), mask=live)
    tl.store(wider_hi + bucket, tl.where(bucket == chosen, high * 2.0, high), mask=live)


@triton.jit
def _tau_clamp_kernel(
    tau: tl.tensor,
    bucket_of: tl.tensor,
    lo: tl.tensor,
    hi: tl.tensor,
    clamped: tl.tensor,
    H: int,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    live = channel < H
    value = tl.load(tau + channel, mask=live)
    bucket = tl.load(bucket_of + channel, mask=live, other=-1)
    routed = bucket >= 0
    low = tl.load(lo + bucket, mask=routed, other=-float("inf"))
    high = tl.load(hi + bucket, mask=routed, other=float("inf"))
    # Comparisons, not min and max: NaN fails both and keeps its bits.
    value = tl.where(value < low, low, value)
    value = tl.where(value > high, high, value)
    tl.store(clamped + channel, value, mask=live)


def bucket_iqr(
    tau: torch.Tensor,
    bucket_of: torch.Tensor,
    N: int,
    *,
    block_channels: int = 8,
    block_others: int = 128,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the quartiles q1, q3 (N,) float32 of tau (H,) float32 within each bucket.

    Linear between the order statistics at (size-1)/4 and 3(size-1)/4; an empty bucket gives
    (0, +inf). bucket_of (H,) int32 holds buckets, or -1 for a channel in none. One launch.
    Raises ValueError for a channel that is not finite and positive, or for another bucket.
    """
    arguments = _checks.Arguments()
    arguments.tensor("tau", tau, "H", torch.float32)
    arguments.tensor("bucket_of", bucket_of, "H", torch.int32)
    buckets = _checks.count("N", N, 1)
    _checks.blocks(block_channels=block_channels, block_others=block_others)
    _checks.finite_positive("tau", tau)
    _checks.within("bucket_of", bucket_of, -1, buckets - 1)
    q1 = torch.empty(buckets, dtype=torch.float32, device=tau.device)
    q3 = torch.empty_like(q1)
    _bucket_iqr_kernel[(buckets,)](
        tau, bucket_of, q1, q3, tau.shape[0], block_channels, block_others, num_warps=1
    )
    return q1, q3


def iqr_widen(
    q1: torch.Tensor, q3: torch.Tensor, *, block: int = 128
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return lo = q1 / slack and hi = q3 slack, slack = sqrt(q3 / q1), all (N,) float32.

    (0, +inf), an empty bucket, stays as it is. One launch. Raises ValueError unless
    0 < q1 <= q3 < inf or the pair is (0, +inf).
    """
    arguments = _checks.Arguments()
    arguments.tensor("q1", q1, "N", torch.float32)
    arguments.tensor("q3", q3, "N", torch.float32)
    _checks.blocks(block=block)
    empty = (q1 == 0) & (q3 == torch.inf)
    _checks.every("q1", q1, empty | ((q1 > 0) & (q1 < torch.inf)), "finite and positive")
    _checks.every("q3", q3, empty | ((q3 >= q1) & (q3 < torch.inf)), "finite and at least q1")
    lo, hi = torch.empty_like(q1), torch.empty_like(q3)
    buckets = q1.shape[0]
    if buckets:
        _iqr_widen_kernel[(triton.cdiv(buckets, block),)](
            q1, q3, lo, hi, buckets, block, num_warps=1
        )
    return lo, hi


def iqr_double_widen(
    lo: torch.Tensor, hi: torch.Tensor, k: int, *, block: int = 128
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return copies of lo and hi (N,) float32 with lo[k] halved and hi[k] doubled.

    Every other entry keeps its bits. One launch. Raises ValueError unless 0 <= k < N.
    """
    arguments = _checks.Arguments()
    arguments.tensor("lo", lo, "N", torch.float32)
    arguments.tensor("hi", hi, "N", torch.float32)
    _checks.blocks(block=block)
    buckets = lo.shape[0]
    chosen = _checks.count("k", k, 0)
    if chosen >= buckets:
        raise ValueError(f"k must be a bucket under N = {buckets}, got {chosen}")
    wider_lo, wider_hi = torch.empty_like(lo), torch.empty_like(hi)
    _iqr_double_widen_kernel[(triton.cdiv(buckets, block),)](
        lo, hi, wider_lo, wider_hi, chosen, buckets, block, num_warps=1
    )
    return wider_lo, wider_hi


def tau_clamp(
    tau: torch.Tensor,
    bucket_of: torch.Tensor,
    lo: torch.Tensor,
    hi: torch.Tensor,
    *,
    block_channels: int = 128,
) -> torch.Tensor:
    """Return tau (H,) float32, each channel clamped to its own bucket's lo and hi (N,) float32.

    bucket_of (H,) int32 is indexed by original channel; a channel in no bucket (-1) and NaN
    stay as they are. One launch. Raises ValueError for another bucket and where lo > hi.
    """
    arguments = _checks.Arguments()
    arguments.tensor("tau", tau, "H", torch.float32)
    arguments.tensor("bucket_of", bucket_of, "H", torch.int32)
    arguments.tensor("lo", lo, "N", torch.float32)
    arguments.tensor("hi", hi, "N", torch.float32)
    _checks.blocks(block_channels=block_channels)
    _checks.within("bucket_of", bucket_of, -1, lo.shape[0] - 1)
    _checks.every("lo", lo, lo <= hi, "at most hi")
    clamped = torch.empty_like(tau)
    channels = tau.shape[0]
    if channels:
        _tau_clamp_kernel[(triton.cdiv(channels, block_channels),)](
            tau, bucket_of, lo, hi, clamped, channels, block_channels, num_warps=1
        )
    return clamped
