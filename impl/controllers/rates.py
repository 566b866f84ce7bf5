"""The smoothness-driven learning rate: how far each horizon may step, and the step shortened."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.controllers.averages import GAIN_FLOOR, observe_finite
from trivet.impl.decision.averages import FIELDS, load_average, store_average
from trivet.impl.optimiser.block_diagonal import scaled_step

# The permanent floor: a sixteenth of what was seen first, or of this where that was less.
LEAST_FIRST = tl.constexpr(1e-3)


@triton.jit
def permanent_floor(floor: tl.tensor, first: tl.tensor, now: tl.tensor) -> tl.tensor:
    """Return the floor: a sixteenth of max(first, 1e-3) where it is set now, else as it was."""
    return tl.where(now, tl.maximum(first, LEAST_FIRST) * 0.0625, floor)


@triton.jit
def excess_over(value: tl.tensor, goal: tl.tensor, floor: tl.tensor) -> tl.tensor:
    """max(0, value - goal) / max(goal, floor), and 0 where value is within its goal."""
    above = tl.maximum(value - goal, 0.0)
    return tl.where(above > 0.0, tl.div_rn(above, tl.maximum(goal, floor)), 0.0)


@triton.jit
def _rate_scale_kernel(
    mean_square: tl.tensor | None,
    deviation: tl.tensor,
    jitter: tl.tensor,
    target: tl.tensor,
    floor: tl.tensor,
    rejected: tl.tensor,
    rate: tl.tensor,
    N: int,
    BLOCK_N: tl.constexpr,
) -> None:
    horizon = tl.arange(0, BLOCK_N)
    live = horizon < N
    change = load_average(jitter, horizon, N, live)
    if mean_square is not None:
        root = tl.sqrt_rn(tl.load(mean_square + horizon, mask=live, other=0.0))
        change, counted = observe_finite(change, root, GAIN_FLOOR)
        store_average(jitter, horizon, N, change, live)
        passed_over = tl.load(rejected + horizon, mask=live, other=0)
        tl.store(rejected + horizon, passed_over + (counted == 0).to(tl.int32), mask=live)
    before = load_average(target, horizon, N, live)
    spread = tl.load(deviation + horizon, mask=live, other=0.0)
    aim, counted = observe_finite(before, spread, GAIN_FLOOR)
    store_average(target, horizon, N, aim, live)
    least = tl.load(floor + horizon, mask=live, other=0.0)
    least = permanent_floor(least, spread, counted & (before.seen == 0.0))
    tl.store(floor + horizon, least, mask=live)
    known = (change.seen != 0.0) & (aim.seen != 0.0)
    share = tl.div_rn(1.0, 1.0 + excess_over(change.mean, aim.mean, least))
    tl.store(rate + horizon, tl.where(known, share, 1.0), mask=live)


@triton.jit
def _heads_lr_scale_kernel(
    params: tl.tensor, snap: tl.tensor, rate: tl.tensor, H: int, BLOCK_CHANNELS: tl.constexpr
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    horizon = tl.program_id(1)
    place = horizon * H + channel
    before = tl.load(snap + place, mask=channel < H, other=0.0)
    after = tl.load(params + place, mask=channel < H, other=0.0)
    scaled = scaled_step(before, after, tl.load(rate + horizon))
    tl.store(params + place, scaled, mask=channel < H)


def rate_scale(
    mean_square: torch.Tensor | None,
    deviation: torch.Tensor,
    jitter: torch.Tensor,
    target: torch.Tensor,
    floor: torch.Tensor,
    rejected: torch.Tensor,
) -> torch.Tensor:
    """Observe one window and return the rates (N,) float32 in (0, 1] of the next step.

    mean_square (N,) is the mean squared change of each horizon's probability, None where the
    window has no step, and its root is the jitter; deviation (N,) that of the present labels, NaN
    without any. They enter the averages jitter and target (5, N), with gain at least 0.4, in
    place; the first deviation sets floor (N,) to max(it, 1e-3) / 16 for ever. A jitter that is
    not finite adds 1 to rejected (N,) int32. rate = 1 / (1 + max(0, jitter - target) /
    max(target, floor)), 1 before both were observed. All float32. One launch of one program.
    Raises TypeError or ValueError naming the argument.
    """
    arguments = _checks.Arguments(F=len(FIELDS))
    arguments.tensor("deviation", deviation, "N", torch.float32)
    if mean_square is not None:
        arguments.tensor("mean_square", mean_square, "N", torch.float32)
    for name, average in (("jitter", jitter), ("target", target)):
        arguments.tensor(name, average, "F N", torch.float32)
    arguments.tensor("floor", floor, "N", torch.float32)
    arguments.tensor("rejected", rejected, "N", torch.int32)
    horizons = deviation.shape[0]
    _checks.horizons(horizons)
    rate = torch.empty_like(deviation)
    _rate_scale_kernel[(1,)](
        mean_square, deviation, jitter, target, floor, rejected, rate, horizons,
        triton.next_power_of_2(horizons), num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip
    return rate


def heads_lr_scale(
    params: torch.Tensor, snap: torch.Tensor, rate: torch.Tensor, *, block_channels: int = 128
) -> None:
    """Set params to snap + (params - snap) rate, in place; a rate of 1 leaves every bit.

    params and snap (N, H) are the skip weights after and before a step, rate (N,) in (0, 1], all
    float32. One launch. Raises ValueError for a rate outside (0, 1].
    """
    arguments = _checks.Arguments()
    arguments.tensor("params", params, "N H", torch.float32)
    arguments.tensor("snap", snap, "N H", torch.float32)
    arguments.tensor("rate", rate, "N", torch.float32)
    _checks.blocks(block_channels=block_channels)
    _checks.every("rate", rate, (rate > 0) & (rate <= 1), "in (0, 1]")
    N, H = params.shape
    if params.numel():
        _heads_lr_scale_kernel[(triton.cdiv(H, block_channels), N)](
            params, snap, rate, H, block_channels, num_warps=1
        )
