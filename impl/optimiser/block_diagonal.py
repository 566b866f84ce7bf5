"""AdamW on skip weights (N, H) of which each horizon owns its bucket's alone."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.optimiser.adam import adamw_update, settings


@triton.jit
def scaled_step(before: tl.tensor, after: tl.tensor, rate: tl.tensor) -> tl.tensor:
    """before + (after - before) * rate, and `after` itself, bit for bit, where the rate is 1."""
    return tl.where(rate == 1.0, after, before + (after - before) * rate)


@triton.jit
def _start_kernel(
    params: tl.tensor,
    exp_avg: tl.tensor,
    exp_avg_sq: tl.tensor,
    bucket_of: tl.tensor,
    H: int,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    horizon = tl.program_id(1)
    live = channel < H
    off_bucket = live & (tl.load(bucket_of + channel, mask=live, other=-1) != horizon)
    place = horizon * H + channel
    tl.store(params + place, 0.0, mask=off_bucket)
    tl.store(exp_avg + place, 0.0, mask=off_bucket)
    tl.store(exp_avg_sq + place, 0.0, mask=off_bucket)


@triton.jit
def _step_kernel(
    params: tl.tensor,
    g: tl.tensor,
    exp_avg: tl.tensor,
    exp_avg_sq: tl.tensor,
    bucket_of: tl.tensor,
    rate: tl.tensor | None,
    H: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    correction1: float,
    correction2: float,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    horizon = tl.program_id(1)
    live = channel < H
    own = tl.load(bucket_of + channel, mask=live, other=-1) == horizon
    place = horizon * H + channel
    before = tl.load(params + place, mask=live, other=0.0)
    # A select, not a product: off-bucket gradients may be anything.
    gradient = tl.where(own, tl.load(g + place, mask=live, other=0.0), 0.0)
    mean = tl.load(exp_avg + place, mask=live, other=0.0)
    square = tl.load(exp_avg_sq + place, mask=live, other=1.0)
    after, mean, square = adamw_update(
        before, gradient, mean, square, lr, beta1, beta2, eps, decay, correction1, correction2
    )
    if rate is not None:
        after = scaled_step(before, after, tl.load(rate + horizon))
    tl.store(params + place, tl.where(own, after, 0.0), mask=live)
    tl.store(exp_avg + place, mean, mask=live)
    tl.store(exp_avg_sq + place, square, mask=live)


def block_diagonal_start(
    params: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    bucket_of: torch.Tensor,
    *,
    block_channels: int = 128,
) -> None:
    """Set params and moments (N, H) float32 to +0.0 where bucket_of[c] != k, in place.

    The others keep their bits. bucket_of (H,) int32 holds buckets, or -1 for a channel in none.
    One launch. Raises TypeError or ValueError naming the argument.
    """
    N, H = _check(params, exp_avg, exp_avg_sq, bucket_of, block_channels)
    if params.numel():
        grid = (triton.cdiv(H, block_channels), N)
        _start_kernel[grid](params, exp_avg, exp_avg_sq, bucket_of, H, block_channels, num_warps=1)


def block_diagonal_step(
    params: torch.Tensor,
    g: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    bucket_of: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    t: int,
    rate: torch.Tensor | None = None,
    *,
    block_channels: int = 128,
) -> None:
    """Do step t, from 1, of AdamW on params (N, H), each horizon's own channels, in place.

    Off bucket the gradient counts as +0.0 and the new parameter is +0.0, whatever either was;
    moments that were +0.0 stay so. With rate (N,) in (0, 1] horizon k moves by rate_k times its
    step; 1 leaves the plain step, bitwise. params, g and moments float32, bucket_of (H,) int32. One
    launch. Raises TypeError or ValueError naming the argument, as `optimiser.adamw` does.
    """
    N, H = _check(params, exp_avg, exp_avg_sq, bucket_of, block_channels)
    _check_step(params, g, rate)
    numbers = settings(lr, beta1, beta2, eps, decay, t).numbers()
    if params.numel():
        grid = (triton.cdiv(H, block_channels), N)
        _step_kernel[grid](
            params,
            g,
            exp_avg,
            exp_avg_sq,
            bucket_of,
            rate,
            H,
            *numbers,
            block_channels,
            num_warps=1,
        )


def _check(
    params: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    bucket_of: torch.Tensor,
    block: int,
) -> tuple[int, int]:
    """Check what start and step share; returns N and H."""
    arguments = _checks.Arguments()
    for name, tensor in (("params", params), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        arguments.tensor(name, tensor, "N H", torch.float32)
    arguments.tensor("bucket_of", bucket_of, "H", torch.int32)
    _checks.blocks(block_channels=block)
    N, H = params.shape
    _checks.within("bucket_of", bucket_of, -1, N - 1)
    return N, H


def _check_step(params: torch.Tensor, g: torch.Tensor, rate: torch.Tensor | None) -> None:
    """Check what a step takes beside the state."""
    arguments = _checks.Arguments()
    arguments.tensor("params", params, "N H", torch.float32)
    arguments.tensor("g", g, "N H", torch.float32)
    if rate is not None:
        arguments.tensor("rate", rate, "N", torch.float32)
        _checks.every("rate", rate, (rate > 0) & (rate <= 1), "in (0, 1]")
