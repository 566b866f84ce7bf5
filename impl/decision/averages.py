"""The adaptive average ("Wiener EMA"): a gain that rises with the share of real movement."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from trivet.impl import _checks

# Columns of an average's state, in the order of the fields of Average.
FIELDS = ("mean", "diff_var", "sample_var", "last", "seen")


class Average(NamedTuple):
    """The state of averages, one of each per element; all float32, seen 0 or 1."""

    mean: tl.tensor
    diff_var: tl.tensor
    sample_var: tl.tensor
    last: tl.tensor
    seen: tl.tensor


@triton.jit
def observe(average: Average, x: tl.tensor, floor: tl.tensor) -> Average:
    """Return the averages after one more observation each; the first one is taken as it is.

    diff_var and sample_var forget 1/20 at each step; every expression is rounded as written.
    """
    change = x - average.last
    off = x - average.mean
    diff_var = 0.95 * average.diff_var + 0.05 * (change * change)
    sample_var = 0.95 * average.sample_var + 0.05 * (off * off)
    gain = tl.div_rn(sample_var, (sample_var + diff_var) + 1e-30)
    mean = average.mean + tl.maximum(floor, gain) * off
    first = average.seen == 0.0
    return Average(
        tl.where(first, x, mean),
        tl.where(first, 0.0, diff_var),
        tl.where(first, 0.0, sample_var),
        x,
        tl.where(first, 1.0, average.seen),
    )


@triton.jit
def load_average(pointer: tl.tensor, place: tl.tensor, stride: int, live: tl.tensor) -> Average:
    """Read averages whose fields lie `stride` elements apart; zeros where not live."""
    return Average(
        tl.load(pointer + place, mask=live, other=0.0),
        tl.load(pointer + stride + place, mask=live, other=0.0),
        tl.load(pointer + 2 * stride + place, mask=live, other=0.0),
        tl.load(pointer + 3 * stride + place, mask=live, other=0.0),
        tl.load(pointer + 4 * stride + place, mask=live, other=0.0),
    )


@triton.jit
def store_average(
    pointer: tl.tensor, place: tl.tensor, stride: int, average: Average, live: tl.tensor
) -> None:
    """Write averages whose fields lie `stride` elements apart, where live."""
    tl.store(pointer + place, average.mean, mask=live)
    tl.store(pointer + stride + place, average.diff_var, mask=live)
    tl.store(pointer + 2 * stride + place, average.sample_var, mask=live)
    tl.store(pointer + 3 * stride + place, average.last, mask=live)
    tl.store(pointer + 4 * stride + place, average.seen, mask=live)


@triton.jit
def _smooth_kernel(
    x: tl.tensor,
    average: tl.tensor,
    floor: tl.tensor,
    smoothed: tl.tensor,
    S: int,
    BLOCK: tl.constexpr,
) -> None:
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = place < S
    value = tl.load(x + place, mask=live, other=0.0)
    least = tl.load(floor + place, mask=live, other=0.0)
    after = observe(load_average(average, place, S, live), value, least)
    store_average(smoothed, place, S, after, live)


def smooth(
    x: torch.Tensor, average: torch.Tensor, floor: torch.Tensor, *, block: int = 128
) -> torch.Tensor:
    """Return average (5, S) float32 after observing x (S,) float32, gain at least floor (S,).

    The rows are mean, diff_var, sample_var, last and seen (0 or 1): the state of S adaptive
    averages (perception.md, 6, r = 0.05, tiny = 1e-30), x within 2^60. One launch. Raises
    ValueError for an x that is not finite and for a floor outside [0, 1].
    """
    arguments = _checks.Arguments(A=len(FIELDS))
    arguments.tensor("x", x, "S", torch.float32)
    arguments.tensor("average", average, "A S", torch.float32)
    arguments.tensor("floor", floor, "S", torch.float32)
    _checks.blocks(block=block)
    _checks.every("x", x, x.abs() <= 2.0**60, "finite and at most 2^60 in size")
    _checks.every("floor", floor, (floor >= 0) & (floor <= 1), "from 0 to 1")
    smoothed = torch.empty_like(average)
    if x.numel():
        _smooth_kernel[(triton.cdiv(x.shape[0], block),)](
            x, average, floor, smoothed, x.shape[0], block, num_warps=1, enable_fp_fusion=False
        )
    return smoothed
