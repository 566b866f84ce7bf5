"""From time constants to buckets: sort the channels, split them, list each bucket."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks


@triton.jit
def count_earlier(
    value: tl.tensor, channel: tl.tensor, others: tl.tensor, other_channel: tl.tensor
) -> tl.tensor:
    """Count, per channel (C,), how many of the others (O,) sort before it; ties by index."""
    smaller = others[None, :] < value[:, None]
    equal = others[None, :] == value[:, None]
    before = other_channel[None, :] < channel[:, None]
    return tl.sum((smaller | (equal & before)).to(tl.int32), axis=1)


@triton.jit
def _tau_sort_kernel(
    tau: tl.tensor,
    order: tl.tensor,
    H: int,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_OTHERS: tl.constexpr,
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    live = channel < H
    value = tl.load(tau + channel, mask=live, other=0.0)
    rank = tl.zeros([BLOCK_CHANNELS], tl.int32)
    for start in range(0, H, BLOCK_OTHERS):
        other_channel = start + tl.arange(0, BLOCK_OTHERS)
        # Infinity sorts after every channel, so lanes past the end count nothing.
        others = tl.load(tau + other_channel, mask=other_channel < H, other=float("inf"))
        rank += count_earlier(value, channel, others, other_channel)
    tl.store(order + rank, channel, mask=live)


@triton.jit
def _bucket_assign_kernel(
    order: tl.tensor,
    bucket_of: tl.tensor,
    size: tl.tensor,
    offset: tl.tensor,
    H: int,
    N: int,
    smaller: int,
    larger_buckets: int,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    place = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    channel = tl.load(order + place, mask=place < H, other=0)
    in_larger = larger_buckets * (smaller + 1)
    early = place // (smaller + 1)
    late = larger_buckets + (place - in_larger) // tl.maximum(smaller, 1)
    tl.store(bucket_of + channel, tl.where(place < in_larger, early, late), mask=place < H)
    bucket = place
    tl.store(size + bucket, smaller + (bucket < larger_buckets).to(tl.int32), mask=bucket < N)
    first = bucket * smaller + tl.minimum(bucket, larger_buckets)
    tl.store(offset + bucket, first, mask=bucket < N)


@triton.jit
def _channels_in_bucket_kernel(
    bucket_of: tl.tensor, table: tl.tensor, H: int, M: int, BLOCK_CHANNELS: tl.constexpr
) -> None:
    bucket = tl.program_id(0)
    row = table + bucket * M
    listed = 0
    for start in range(0, H, BLOCK_CHANNELS):
        channel = start + tl.arange(0, BLOCK_CHANNELS)
        member = tl.load(bucket_of + channel, mask=channel < H, other=-1) == bucket
        slot = listed + tl.cumsum(member.to(tl.int32), axis=0) - 1
        tl.store(row + slot, channel, mask=member)
        listed += tl.sum(member.to(tl.int32), axis=0)
    for start in range(0, M, BLOCK_CHANNELS):
        slot = start + tl.arange(0, BLOCK_CHANNELS)
        tl.store(row + slot, -1, mask=(slot >= listed) & (slot < M))


def tau_sort(
    tau: torch.Tensor, *, block_channels: int = 8, block_others: int = 128
) -> torch.Tensor:
    """Return the stable ascending argsort of tau (H,) float32 as order (H,) int32.

    Equal time constants keep the order of their channels. One launch. Raises ValueError for a
    channel that is not finite and positive.
    """
    _checks.Arguments().tensor("tau", tau, "H", torch.float32)
    _checks.blocks(block_channels=block_channels, block_others=block_others)
    _checks.finite_positive("tau", tau)
    channels = tau.shape[0]
    order = torch.empty(channels, dtype=torch.int32, device=tau.device)
    if channels:
        _tau_sort_kernel[(triton.cdiv(channels, block_channels),)](
            tau, order, channels, block_channels, block_others, num_warps=1
        )
    return order


def bucket_assign(
    order: torch.Tensor, N: int, *, block_channels: int = 128
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Split order (H,) int32 into N contiguous quantiles: bucket_of (H,), size, offset (N,).

    All int32. The first H mod N buckets hold one channel more; offset is the exclusive prefix
    sum of size; bucket_of is indexed by original channel. One launch. Raises ValueError when
    order is no permutation or N < 1.
    """
    _checks.Arguments().tensor("order", order, "H", torch.int32)
    buckets = _checks.count("N", N, 1)
    _checks.blocks(block_channels=block_channels)
    channels = order.shape[0]
    _checks.within("order", order, 0, channels - 1)
    _checks.disjoint("order", order, channels)
    bucket_of = torch.empty_like(order)
    size = torch.empty(buckets, dtype=torch.int32, device=order.device)
    offset = torch.empty_like(size)
    _bucket_assign_kernel[(triton.cdiv(max(channels, buckets), block_channels),)](
        order,
        bucket_of,
        size,
        offset,
        channels,
        buckets,
        channels // buckets,
        channels % buckets,
        block_channels,
        num_warps=1,
    )
    return bucket_of, size, offset


def channels_in_bucket(
    bucket_of: torch.Tensor, N: int, M: int, *, block_channels: int = 128
) -> torch.Tensor:
    """Return table (N, M) int32: row k lists the channels of bucket k, ascending, then -1.

    bucket_of (H,) int32 holds buckets, or -1 for a channel in none. One launch. Raises
    ValueError for another bucket and for a bucket of more than M channels, which it names.
    """
    _checks.Arguments().tensor("bucket_of", bucket_of, "H", torch.int32)
    buckets = _checks.count("N", N, 1)
    capacity = _checks.count("M", M, 0)
    _checks.blocks(block_channels=block_channels)
    _checks.within("bucket_of", bucket_of, -1, buckets - 1)
    _check_capacity(bucket_of, buckets, capacity)
    table = torch.empty((buckets, capacity), dtype=torch.int32, device=bucket_of.device)
    if capacity:
        _channels_in_bucket_kernel[(buckets,)](
            bucket_of, table, bucket_of.shape[0], capacity, block_channels, num_warps=1
        )
    return table


def _check_capacity(bucket_of: torch.Tensor, buckets: int, capacity: int) -> None:
    sizes = torch.bincount(bucket_of[bucket_of >= 0], minlength=buckets).tolist()
    for bucket, size in enumerate(sizes):
        if size > capacity:
            raise ValueError(
                f"bucket_of must be within the capacity M = {capacity}, "
                f"got {size} channels in bucket {bucket}"
            )
