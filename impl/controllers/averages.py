"""The adaptive average of the controllers: a non-finite observation is passed over and told."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.decision.averages import FIELDS, Average, load_average, observe, store_average

# The least gain of every average here.
GAIN_FLOOR = tl.constexpr(0.4)
LARGEST = tl.constexpr(2.0**60)


@triton.jit
def observe_finite(average: Average, x: tl.tensor, floor: tl.tensor) -> tuple[Average, tl.tensor]:
    """Return the averages after x, and whether x counted: finite and at most 2^60 in size.

    Where it did not, every field keeps its bits.
    """
    counted = tl.abs(x) <= LARGEST
    after = observe(average, tl.where(counted, x, 0.0), floor)
    kept = Average(
        tl.where(counted, after.mean, average.mean),
        tl.where(counted, after.diff_var, average.diff_var),
        tl.where(counted, after.sample_var, average.sample_var),
        tl.where(counted, after.last, average.last),
        tl.where(counted, after.seen, average.seen),
    )
    return kept, counted


@triton.jit
def _wiener_ema_kernel(
    x: tl.tensor,
    floor: tl.tensor,
    average: tl.tensor,
    rejected: tl.tensor,
    A: int,
    BLOCK: tl.constexpr,
) -> None:
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = place < A
    value = tl.load(x + place, mask=live, other=0.0)
    least = tl.load(floor + place, mask=live, other=0.0)
    passed_over = tl.load(rejected + place, mask=live, other=0)
    after, counted = observe_finite(load_average(average, place, A, live), value, least)
    store_average(average, place, A, after, live)
    tl.store(rejected + place, passed_over + (counted == 0).to(tl.int32), mask=live)


def wiener_ema(
    x: torch.Tensor,
    floor: torch.Tensor,
    average: torch.Tensor,
    rejected: torch.Tensor,
    *,
    block: int = 128,
) -> None:
    """Let averages (5, A) float32 observe x (A,) float32, in place; gain at least floor (A,).

    The rows are mean, diff_var, sample_var, last and seen (0 or 1). The first observation is the
    mean; with r = 0.05 and tiny = 1e-30, later ones give diff_var = (1-r) diff_var +
    r (x - last)^2, sample_var = (1-r) sample_var + r (x - mean)^2 and mean += max(floor,
    sample_var / (sample_var + diff_var + tiny)) (x - mean). An x that is not finite or beyond 2^60
    leaves its average as it is and adds 1 to rejected (A,) int32. One launch. Raises ValueError
    for a floor outside [0, 1].
    """
    arguments = _checks.Arguments(F=len(FIELDS))
    arguments.tensor("x", x, "A", torch.float32)
    arguments.tensor("floor", floor, "A", torch.float32)
    arguments.tensor("average", average, "F A", torch.float32)
    arguments.tensor("rejected", rejected, "A", torch.int32)
    _checks.blocks(block=block)
    _checks.every("floor", floor, (floor >= 0) & (floor <= 1), "from 0 to 1")
    if x.numel():
        _wiener_ema_kernel[(triton.cdiv(x.shape[0], block),)](
            x, floor, average, rejected, x.shape[0], block, num_warps=1, enable_fp_fusion=False
        )
