"""AdamW: decoupled weight decay, moments corrected for their start at zero."""

from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl

from trivet.impl import _checks


@dataclass(frozen=True)
class Settings:
    """The numbers of one step, float32 as the kernels see them, in the kernels' order.

    correction1 and correction2 are 1 - beta^t, from the rounded betas.
    """

    lr: float
    beta1: float
    beta2: float
    eps: float
    decay: float
    correction1: float
    correction2: float

    def numbers(self) -> tuple[float, ...]:
        """The seven numbers as a kernel takes them."""
        return (
            self.lr, self.beta1, self.beta2, self.eps, self.decay,
            self.correction1, self.correction2,
        )  # fmt: skip


def settings(lr: float, beta1: float, beta2: float, eps: float, decay: float, t: int) -> Settings:
    """Return the checked settings of step t, from 1.

    Raises ValueError for betas outside [0, 1), a negative or non-finite lr, eps or decay, or t
    under 1.
    """
    for name, value in (("lr", lr), ("eps", eps), ("decay", decay)):
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} must be finite and not negative, got {value}")
    for name, value in (("beta1", beta1), ("beta2", beta2)):
        if not 0 <= float(np.float32(value)) < 1:
            raise ValueError(f"{name} must be in [0, 1), got {value}")
    _checks.count("t", t, 1)
    first, second = float(np.float32(beta1)), float(np.float32(beta2))
    return Settings(lr, first, second, eps, decay, 1.0 - first**t, 1.0 - second**t)


@triton.jit
def adamw_update(
    p: tl.tensor,
    g: tl.tensor,
    exp_avg: tl.tensor,
    exp_avg_sq: tl.tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    correction1: float,
    correction2: float,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """The new p and moments; powers of two pass through divisions and root as they are."""
    mean = beta1 * exp_avg + (1.0 - beta1) * g
    square = beta2 * exp_avg_sq + (1.0 - beta2) * (g * g)
    size = tl.sqrt_rn(tl.div_rn(square, correction2)) + eps
    step = lr * tl.div_rn(tl.div_rn(mean, correction1), size)
    return p * (1.0 - lr * decay) - step, mean, square


@triton.jit
def _adamw_kernel(
    p: tl.tensor,
    g: tl.tensor,
    exp_avg: tl.tensor,
    exp_avg_sq: tl.tensor,
    size: tl.int64,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    correction1: float,
    correction2: float,
    BLOCK: tl.constexpr,
) -> None:
    entry = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = entry < size
    old = tl.load(p + entry, mask=live, other=0.0)
    gradient = tl.load(g + entry, mask=live, other=0.0)
    mean = tl.load(exp_avg + entry, mask=live, other=0.0)
    square = tl.load(exp_avg_sq + entry, mask=live, other=1.0)
    new, mean, square = adamw_update(
        old, gradient, mean, square, lr, beta1, beta2, eps, decay, correction1, correction2
    )
    tl.store(p + entry, new, mask=live)
    tl.store(exp_avg + entry, mean, mask=live)
    tl.store(exp_avg_sq + entry, square, mask=live)


def adamw(
    p: torch.Tensor,
    g: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    t: int,
    *,
    block: int = 128,
) -> None:
    """Do step t, from 1, of AdamW on p with gradient g; all (P,) float32, in place.

    p = p (1 - lr decay); exp_avg m = beta1 m + (1 - beta1) g; exp_avg_sq v = beta2 v +
    (1 - beta2) g^2; p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps). One launch.
    Raises TypeError or ValueError naming the argument: another shape, dtype or device, settings
    out of range.
    """
    arguments = _checks.Arguments()
    for name, tensor in (("p", p), ("g", g), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        arguments.tensor(name, tensor, "P", torch.float32)
    numbers = settings(lr, beta1, beta2, eps, decay, t).numbers()
    _checks.blocks(block=block)
    if p.numel():
        grid = (triton.cdiv(p.numel(), block),)
        _adamw_kernel[grid](p, g, exp_avg, exp_avg_sq, p.numel(), *numbers, block, num_warps=1)
