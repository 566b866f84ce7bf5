"""What routing does to per-horizon weights (N, H): pack, mask, zero off bucket."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.routing.record import RoutingRecord, slots_of


@triton.jit
def _heads_compact_kernel(
    w_skip: tl.tensor,
    table: tl.tensor,
    w_compact: tl.tensor,
    offset: tl.tensor,
    H: int,
    M: int,
    BLOCK_SLOTS: tl.constexpr,
) -> None:
    bucket = tl.program_id(0)
    packed = 0
    for start in range(0, bucket * M, BLOCK_SLOTS):
        slot = start + tl.arange(0, BLOCK_SLOTS)
        channel = tl.load(table + slot, mask=slot < bucket * M, other=-1)
        packed += tl.sum((channel >= 0).to(tl.int32), axis=0)
    tl.store(offset + bucket, packed)
    for start in range(0, M, BLOCK_SLOTS):
        slot = start + tl.arange(0, BLOCK_SLOTS)
        channel = tl.load(table + bucket * M + slot, mask=slot < M, other=-1)
        live = channel >= 0
        weight = tl.load(w_skip + bucket * H + channel, mask=live)
        place = packed + tl.cumsum(live.to(tl.int32), axis=0) - 1
        tl.store(w_compact + place, weight, mask=live)
        packed += tl.sum(live.to(tl.int32), axis=0)


@triton.jit
def _mask_init_kernel(
    bucket_of: tl.tensor, mask: tl.tensor, H: int, BLOCK_CHANNELS: tl.constexpr
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    bucket = tl.program_id(1)
    member = tl.load(bucket_of + channel, mask=channel < H, other=-1) == bucket
    tl.store(mask + bucket * H + channel, member.to(tl.float32), mask=channel < H)


@triton.jit
def _zero_off_bucket_kernel(
    buffer: tl.tensor, bucket_of: tl.tensor, H: int, BLOCK_CHANNELS: tl.constexpr
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    bucket = tl.program_id(1)
    live = channel < H
    off_bucket = live & (tl.load(bucket_of + channel, mask=live, other=-1) != bucket)
    tl.store(buffer + bucket * H + channel, 0.0, mask=off_bucket)


@triton.jit
def _grad_mask_apply_kernel(
    grad: tl.tensor, mask: tl.tensor, masked: tl.tensor, size: int, BLOCK: tl.constexpr
) -> None:
    entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = entry < size
    kept = tl.load(mask + entry, mask=live, other=0.0) == 1.0
    value = tl.load(grad + entry, mask=live, other=0.0)
    tl.store(masked + entry, tl.where(kept, value, 0.0), mask=live)


def heads_compact(
    w_skip: torch.Tensor, table: torch.Tensor | RoutingRecord, *, block_slots: int = 128
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pack each bucket's own weights: w_compact (H,) float32 and offset (N,) int32.

    Of row k of w_skip (N, H) float32 only the channels of row k of table (N, M) int32 are
    taken, in table order, and packed from offset[k]; what is left of w_compact is +0.0. Slots
    of -1 are skipped wherever they are. One launch and one fill. A routing record in place of the
    table is checked first. Raises ValueError for a channel that the table names twice.
    """
    arguments = _checks.Arguments()
    arguments.tensor("w_skip", w_skip, "N H", torch.float32)
    buckets, channels = w_skip.shape
    slots = arguments.tensor("table", slots_of(table, channels, w_skip.device), "N M", torch.int32)
    _checks.blocks(block_slots=block_slots)
    w_compact = torch.zeros(channels, dtype=torch.float32, device=w_skip.device)
    offset = torch.empty(buckets, dtype=torch.int32, device=w_skip.device)
    if buckets:
        _heads_compact_kernel[(buckets,)](
            w_skip, slots, w_compact, offset, channels, slots.shape[1], block_slots, num_warps=1
        )
    return w_compact, offset


def mask_init(bucket_of: torch.Tensor, N: int, *, block_channels: int = 128) -> torch.Tensor:
    """Return mask (N, H) float32: 1 where bucket_of[c] == k, else 0.

    bucket_of (H,) int32 holds buckets, or -1 for a channel in none. One launch. Raises
    ValueError for another bucket.
    """
    _checks.Arguments().tensor("bucket_of", bucket_of, "H", torch.int32)
    buckets = _checks.count("N", N, 1)
    _checks.blocks(block_channels=block_channels)
    _checks.within("bucket_of", bucket_of, -1, buckets - 1)
    channels = bucket_of.shape[0]
    mask = torch.empty((buckets, channels), dtype=torch.float32, device=bucket_of.device)
    if channels:
        _mask_init_kernel[(triton.cdiv(channels, block_channels), buckets)](
            bucket_of, mask, channels, block_channels, num_warps=1
        )
    return mask


def zero_off_bucket(
    buffer: torch.Tensor, bucket_of: torch.Tensor, *, block_channels: int = 128
) -> None:
    """Set the entries of buffer (N, H) float32 with bucket_of[c] != k to +0.0, in place.

    The others are neither read nor written. bucket_of (H,) int32 holds buckets, or -1 for a
    channel in none. One launch. Raises ValueError for another bucket.
    """
    arguments = _checks.Arguments()
    arguments.tensor("buffer", buffer, "N H", torch.float32)
    arguments.tensor("bucket_of", bucket_of, "H", torch.int32)
    _checks.blocks(block_channels=block_channels)
    buckets, channels = buffer.shape
    _checks.within("bucket_of", bucket_of, -1, buckets - 1)
    if buffer.numel():
        _zero_off_bucket_kernel[(triton.cdiv(channels, block_channels), buckets)](
            buffer, bucket_of, channels, block_channels, num_warps=1
        )


def grad_mask_apply(grad: torch.Tensor, mask: torch.Tensor, *, block: int = 128) -> torch.Tensor:
    """Return grad (N, H) float32 where mask (N, H) float32 is 1, bit for bit, and +0.0 elsewhere.

    A select, not a product: what is masked out may be Inf, NaN or negative. One launch.
    """
    arguments = _checks.Arguments()
    arguments.tensor("grad", grad, "N H", torch.float32)
    arguments.tensor("mask", mask, "N H", torch.float32)
    _checks.blocks(block=block)
    masked = torch.empty_like(grad)
    if grad.numel():
        _grad_mask_apply_kernel[(triton.cdiv(grad.numel(), block),)](
            grad, mask, masked, grad.numel(), block, num_warps=1
        )
    return masked
