"""Exchanging channels between a dead bucket and its healthier neighbour, one for one."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks

LARGEST_H = 4096
LARGEST = tl.constexpr(LARGEST_H)


@triton.jit
def healthier_neighbour(
    below_size: tl.tensor, above_size: tl.tensor, mean: tl.tensor, floor: tl.tensor, bucket: int
) -> tl.tensor:
    """Return the non-empty bucket beside `bucket` of larger mean / floor, the lower at a tie.

    -1 where there is none. Products of two float32 are exact in float64, quotients are not.
    """
    below = bucket - 1
    above = bucket + 1
    has_below = below_size > 0
    has_above = above_size > 0
    mean_below = tl.load(mean + below, mask=has_below, other=0.0).to(tl.float64)
    mean_above = tl.load(mean + above, mask=has_above, other=0.0).to(tl.float64)
    floor_below = tl.load(floor + below, mask=has_below, other=1.0).to(tl.float64)
    floor_above = tl.load(floor + above, mask=has_above, other=1.0).to(tl.float64)
    lower = mean_below * floor_above >= mean_above * floor_below
    chosen = tl.where(has_below & (lower | (has_above == 0)), below, above)
    return tl.where(has_below | has_above, chosen, -1)


@triton.jit
def _members(owner: tl.tensor, bucket: int) -> tl.tensor:
    """How many channels a bucket has."""
    return tl.sum((owner == bucket).to(tl.int32), axis=0)


@triton.jit
def _swaps(own: tl.tensor, theirs: tl.tensor, mean: tl.tensor, floor: tl.tensor) -> tl.tensor:
    """min(theirs, max(1, ceil(own (1 - mean / floor)))) of the sizes of two buckets, at most own.

    The product is exact in float64, and too short for the quotient to round up to a whole number.
    """
    product = own.to(tl.float64) * mean.to(tl.float64)
    kept = tl.minimum(product / floor.to(tl.float64), own.to(tl.float64)).to(tl.int32)
    return tl.minimum(tl.minimum(theirs, own), tl.maximum(own - kept, 1))


@triton.jit
def _nearest(
    value: tl.tensor, available: tl.tensor, wanted: tl.tensor, channel: tl.tensor
) -> tl.tensor:
    """Return the first available channel whose value is nearest to `wanted` by ratio.

    Only the next below and above can be; below / wanted is nearer than wanted / above where
    wanted^2 is less than their product, and both are exact in float64.
    """
    below = tl.max(tl.where(available & (value <= wanted), value, 0.0), axis=0)
    above = tl.min(tl.where(available & (value >= wanted), value, float("inf")), axis=0)
    square = wanted.to(tl.float64) * wanted.to(tl.float64)
    product = below.to(tl.float64) * above.to(tl.float64)
    hit = (value == below) & (square <= product) | (value == above) & (square >= product)
    return tl.min(tl.where(available & hit, channel, LARGEST), axis=0)


@triton.jit(do_not_specialize=["bucket"])
def _channel_swap_kernel(
    tau: tl.tensor,
    activity: tl.tensor,
    bucket_of: tl.tensor,
    mean: tl.tensor,
    floor: tl.tensor,
    swapped: tl.tensor,
    chosen: tl.tensor,
    bucket: int,
    H: int,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    channel = tl.arange(0, BLOCK_CHANNELS)
    live = channel < H
    owner = tl.load(bucket_of + channel, mask=live, other=-1)
    value = tl.load(tau + channel, mask=live, other=0.0)
    active = tl.load(activity + channel, mask=live, other=float("inf"))
    # Bucket -1 is no bucket: its channels are in none.
    below = tl.where(bucket > 0, _members(owner, bucket - 1), 0)
    above = _members(owner, bucket + 1)
    neighbour = healthier_neighbour(below, above, mean, floor, bucket)
    mine = owner == bucket
    theirs = (owner == neighbour) & (neighbour >= 0)
    sizes = tl.sum(mine.to(tl.int32), axis=0), tl.sum(theirs.to(tl.int32), axis=0)
    count = _swaps(sizes[0], sizes[1], tl.load(mean + bucket), tl.load(floor + bucket))
    for _ in range(count):
        least = tl.min(tl.where(mine, active, float("inf")), axis=0)
        given = tl.min(tl.where(mine & (active == least), channel, LARGEST), axis=0)
        wanted = tl.sum(tl.where(channel == given, value, 0.0), axis=0)
        got = _nearest(value, theirs, wanted, channel)
        owner = tl.where(channel == given, neighbour, tl.where(channel == got, bucket, owner))
        mine = mine & (channel != given)
        theirs = theirs & (channel != got)
    tl.store(swapped + channel, owner, mask=live)
    tl.store(chosen, neighbour)


@triton.jit
def _reset_channels_kernel(
    params: tl.tensor,
    exp_avg: tl.tensor,
    exp_avg_sq: tl.tensor,
    before: tl.tensor,
    after: tl.tensor,
    H: int,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    live = channel < H
    old = tl.load(before + channel, mask=live, other=-1)
    moved = live & (old != tl.load(after + channel, mask=live, other=-1))
    place = tl.program_id(1) * H + channel
    tl.store(params + place, 0.0, mask=moved)
    tl.store(exp_avg + place, 0.0, mask=moved)
    tl.store(exp_avg_sq + place, 0.0, mask=moved)


def channel_swap(
    tau: torch.Tensor,
    activity: torch.Tensor,
    bucket_of: torch.Tensor,
    mean: torch.Tensor,
    floor: torch.Tensor,
    k: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Exchange channels of bucket k with its healthier neighbour: bucket_of (H,), neighbour (1,).

    The neighbour is the non-empty bucket k-1 or k+1 of larger mean / floor, the lower at a tie,
    or -1, and then nothing changes. min(its size, max(1, ceil(size_k (1 - mean_k / floor_k))))
    channels of bucket k, the least active first (ties by index), each take the place of the not
    yet taken channel of the neighbour whose log tau is nearest (ties by index). tau and activity
    (H,), mean and floor (N,) float32, bucket_of (H,) int32, -1 for a channel in no bucket. At most
    4096 channels. One launch of one program. Raises TypeError or ValueError naming the argument.
    """
    check_recovery(tau, bucket_of, mean, floor, k)
    arguments = _checks.Arguments(H=tau.shape[0])
    arguments.tensor("activity", activity, "H", torch.float32)
    _checks.finite_not_negative("activity", activity)
    swapped = torch.empty_like(bucket_of)
    neighbour = torch.empty(1, dtype=torch.int32, device=tau.device)
    _channel_swap_kernel[(1,)](
        tau, activity, bucket_of, mean, floor, swapped, neighbour, k, tau.shape[0],
        triton.next_power_of_2(tau.shape[0]), num_warps=1,
    )  # fmt: skip
    return swapped, neighbour


def check_recovery(
    tau: torch.Tensor,
    bucket_of: torch.Tensor,
    mean: torch.Tensor,
    floor: torch.Tensor,
    k: int,
) -> None:
    """Check what swap and inheritance share."""
    arguments = _checks.Arguments()
    arguments.tensor("tau", tau, "H", torch.float32)
    arguments.tensor("bucket_of", bucket_of, "H", torch.int32)
    arguments.tensor("mean", mean, "N", torch.float32)
    arguments.tensor("floor", floor, "N", torch.float32)
    channels, buckets = tau.shape[0], mean.shape[0]
    if not 1 <= channels <= LARGEST_H:
        raise ValueError(f"tau must have from 1 to {LARGEST_H} channels, got {channels}")
    if _checks.count("k", k, 0) >= buckets:
        raise ValueError(f"k must be a bucket under N = {buckets}, got {k}")
    _checks.finite_positive("tau", tau)
    _checks.within("bucket_of", bucket_of, -1, buckets - 1)
    _checks.horizons(buckets)
    _checks.finite_not_negative("mean", mean)
    _checks.finite_not_negative("floor", floor)


def reset_channels(
    params: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    before: torch.Tensor,
    after: torch.Tensor,
    *,
    block_channels: int = 128,
) -> None:
    """Set params and moments (N, H) of every channel that changed its bucket to +0.0, in place.

    before and after (H,) int32 are the bucket of each channel. The others are neither read nor
    written. One launch. Raises TypeError or ValueError naming the argument.
    """
    arguments = _checks.Arguments()
    for name, tensor in (("params", params), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        arguments.tensor(name, tensor, "N H", torch.float32)
    arguments.tensor("before", before, "H", torch.int32)
    arguments.tensor("after", after, "H", torch.int32)
    _checks.blocks(block_channels=block_channels)
    N, H = params.shape
    if params.numel():
        _reset_channels_kernel[(triton.cdiv(H, block_channels), N)](
            params, exp_avg, exp_avg_sq, before, after, H, block_channels, num_warps=1
        )
