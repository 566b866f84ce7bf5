"""How far the time constants moved in a step."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._elementwise import log1p

HUGE = tl.constexpr(2.0**64)


@triton.jit
def _tau_change_kernel(
    tau: tl.tensor, previous: tl.tensor, change: tl.tensor, H: int, BLOCK_CHANNELS: tl.constexpr
) -> None:
    total = tl.zeros([BLOCK_CHANNELS], tl.float32)
    for start in range(0, H, BLOCK_CHANNELS):
        channel = start + tl.arange(0, BLOCK_CHANNELS)
        here = tl.load(tau + channel, mask=channel < H, other=1.0)
        before = tl.load(previous + channel, mask=channel < H, other=1.0)
        small = tl.minimum(here, before)
        large = tl.maximum(here, before)
        # A difference of logarithms would lose the digits of a small change; a quotient beyond
        # float32 has none to lose.
        growth = (large - small) / small
        near = log1p(tl.minimum(growth, HUGE))
        total += tl.where(growth < HUGE, near, tl.log(large) - tl.log(small))
    tl.store(change, tl.sum(total, axis=0) / H)


def tau_change(
    tau: torch.Tensor, previous: torch.Tensor, *, block_channels: int = 128
) -> torch.Tensor:
    """Return the mean over channels of |log tau - log previous|, (1,) float32.

    tau and previous (H,) float32, H >= 1, seconds; accurate relative to itself also where they
    hardly differ. One launch of one program. Raises ValueError for a channel that is not finite
    and positive, and without channels.
    """
    arguments = _checks.Arguments()
    arguments.tensor("tau", tau, "H", torch.float32)
    arguments.tensor("previous", previous, "H", torch.float32)
    _checks.blocks(block_channels=block_channels)
    _checks.count("tau's channels H", tau.shape[0], 1)
    _checks.finite_positive("tau", tau)
    _checks.finite_positive("previous", previous)
    change = tau.new_empty(1)
    _tau_change_kernel[(1,)](tau, previous, change, tau.shape[0], block_channels, num_warps=1)
    return change
