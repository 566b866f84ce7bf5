"""A dead bucket's last resort: the time constants and the range of its healthier neighbour."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.controllers.swap import check_recovery, healthier_neighbour


@triton.jit
def _count(bucket_of: tl.tensor, bucket: int, H: int, BLOCK_OTHERS: tl.constexpr) -> tl.tensor:
    """How many channels a bucket has."""
    size = 0
    for start in range(0, H, BLOCK_OTHERS):
        other = start + tl.arange(0, BLOCK_OTHERS)
        mates = tl.load(bucket_of + other, mask=other < H, other=-2) == bucket
        size += tl.sum(mates.to(tl.int32), axis=0)
    return size


@triton.jit
def _rank_kernel(
    tau: tl.tensor,
    bucket_of: tl.tensor,
    rank: tl.tensor,
    H: int,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_OTHERS: tl.constexpr,
) -> None:
    """Place of each channel among its bucket's, by tau, ties by index."""
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    owner = tl.load(bucket_of + channel, mask=channel < H, other=-1)
    value = tl.load(tau + channel, mask=channel < H, other=0.0)
    place = tl.zeros([BLOCK_CHANNELS], tl.int32)
    for start in range(0, H, BLOCK_OTHERS):
        other = start + tl.arange(0, BLOCK_OTHERS)
        mates = tl.load(bucket_of + other, mask=other < H, other=-2)
        others = tl.load(tau + other, mask=other < H, other=float("inf"))
        smaller = others[None, :] < value[:, None]
        earlier = (others[None, :] == value[:, None]) & (other[None, :] < channel[:, None])
        before = (smaller | earlier) & (mates[None, :] == owner[:, None])
        place += tl.sum(before.to(tl.int32), axis=1)
    tl.store(rank + channel, place, mask=channel < H)


@triton.jit
def _order_statistic(
    place: tl.tensor, rank: tl.tensor, value: tl.tensor, theirs: tl.tensor
) -> tl.tensor:
    """The values of the others at these places of their bucket, 0 where they are not among them."""
    hit = theirs[None, :] & (rank[None, :] == place[:, None])
    return tl.sum(tl.where(hit, value[None, :], 0.0), axis=1)


@triton.jit(do_not_specialize=["bucket"])
def _inherit_kernel(
    tau: tl.tensor,
    bucket_of: tl.tensor,
    lo: tl.tensor,
    hi: tl.tensor,
    mean: tl.tensor,
    floor: tl.tensor,
    rank: tl.tensor,
    new_tau: tl.tensor,
    new_lo: tl.tensor,
    new_hi: tl.tensor,
    chosen: tl.tensor,
    bucket: int,
    H: int,
    N: int,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_OTHERS: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    live = channel < H
    # Bucket -1 is no bucket: its channels are in none.
    below = tl.where(bucket > 0, _count(bucket_of, bucket - 1, H, BLOCK_OTHERS), 0)
    above = _count(bucket_of, bucket + 1, H, BLOCK_OTHERS)
    neighbour = healthier_neighbour(below, above, mean, floor, bucket)
    heirs = _count(bucket_of, bucket, H, BLOCK_OTHERS)
    last = tl.where(neighbour < bucket, below, above) - 1
    # Place i (m - 1) / (n - 1) among the neighbour's; the middle for a single heir.
    single = heirs == 1
    parts = tl.where(single, 2, tl.maximum(heirs - 1, 1))
    scaled = tl.where(single, 1, tl.load(rank + channel, mask=live, other=0)) * last
    under = scaled // parts
    low = tl.zeros([BLOCK_CHANNELS], tl.float32)
    high = tl.zeros([BLOCK_CHANNELS], tl.float32)
    for start in range(0, H, BLOCK_OTHERS):
        other = start + tl.arange(0, BLOCK_OTHERS)
        theirs = tl.load(bucket_of + other, mask=other < H, other=-2) == neighbour
        value = tl.load(tau + other, mask=other < H, other=0.0)
        place = tl.load(rank + other, mask=other < H, other=0)
        low += _order_statistic(under, place, value, theirs)
        high += _order_statistic(tl.minimum(under + 1, last), place, value, theirs)
    share = tl.div_rn((scaled % parts).to(tl.float32), tl.cast(parts, tl.float32))
    # Rounding must not carry it past the neighbour's own, whose range it inherits.
    quantile = tl.minimum(low + share * (high - low), high)
    old = tl.load(tau + channel, mask=live, other=0.0)
    owner = tl.load(bucket_of + channel, mask=live, other=-2)
    heir = (owner == bucket) & (neighbour >= 0)
    tl.store(new_tau + channel, tl.where(heir, quantile, old), mask=live)
    _inherit_range(lo, hi, new_lo, new_hi, bucket, neighbour, N, BLOCK_N)
    tl.store(chosen, neighbour, mask=tl.program_id(0) == 0)


@triton.jit
def _inherit_range(
    lo: tl.tensor,
    hi: tl.tensor,
    new_lo: tl.tensor,
    new_hi: tl.tensor,
    bucket: int,
    neighbour: tl.tensor,
    N: int,
    BLOCK_N: tl.constexpr,
) -> None:
    """Copy the ranges, that of `bucket` from its neighbour; the first program's work alone."""
    row = tl.arange(0, BLOCK_N)
    live = (row < N) & (tl.program_id(0) == 0)
    source = tl.where((row == bucket) & (neighbour >= 0), neighbour, row)
    tl.store(new_lo + row, tl.load(lo + source, mask=live), mask=live)
    tl.store(new_hi + row, tl.load(hi + source, mask=live), mask=live)


def inherit_tau(
    tau: torch.Tensor,
    bucket_of: torch.Tensor,
    lo: torch.Tensor,
    hi: torch.Tensor,
    mean: torch.Tensor,
    floor: torch.Tensor,
    k: int,
    *,
    block_channels: int = 8,
    block_others: int = 128,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give bucket k its healthier neighbour's tau and range: tau (H,), lo, hi (N,), neighbour (1,).

    The neighbour is that of `channel_swap`; -1 where there is none, and then nothing changes. The
    channel of rank i (by tau, ties by index) among n takes the neighbour's quantile i / (n - 1),
    0.5 when n = 1, linear between order statistics; lo and hi of bucket k become the neighbour's.
    tau, lo, hi, mean and floor float32, bucket_of (H,) int32. Two launches. Raises TypeError or
    ValueError naming the argument.
    """
    check_recovery(tau, bucket_of, mean, floor, k)
    arguments = _checks.Arguments(N=mean.shape[0])
    arguments.device = tau.device
    arguments.tensor("lo", lo, "N", torch.float32)
    arguments.tensor("hi", hi, "N", torch.float32)
    _checks.blocks(block_channels=block_channels, block_others=block_others)
    rank, new_tau = torch.empty_like(bucket_of), torch.empty_like(tau)
    new_lo, new_hi = torch.empty_like(lo), torch.empty_like(hi)
    neighbour = torch.empty(1, dtype=torch.int32, device=tau.device)
    H, N = tau.shape[0], mean.shape[0]
    grid = (triton.cdiv(H, block_channels),)
    _rank_kernel[grid](tau, bucket_of, rank, H, block_channels, block_others, num_warps=1)
    _inherit_kernel[grid](
        tau, bucket_of, lo, hi, mean, floor, rank, new_tau, new_lo, new_hi, neighbour, k, H, N,
        block_channels, block_others, triton.next_power_of_2(N), num_warps=1,
    )  # fmt: skip
    return new_tau, new_lo, new_hi, neighbour
