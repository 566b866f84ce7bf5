"""AdamW and its block diagonal step, written from their formulas twice, sharing nothing.

Shapes: p, g and the moments exp_avg and exp_avg_sq (P,), or all (N, H) with bucket_of (H,) int, -1
for a channel in no bucket; rate (N,) in (0, 1] or None. t counts steps from 1. The array forms
take the math namespace ``m``, those that end in ``_scalar`` the index of one output element.
"""

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
Row = Sequence[float]
Matrix = Sequence[Sequence[float]]


def adamw(
    m: Any,
    p: Any,
    g: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    t: int,
) -> tuple[Any, ...]:
    """The new p and moments."""
    first = beta1 * exp_avg + (1.0 - beta1) * g
    second = beta2 * exp_avg_sq + (1.0 - beta2) * (g * g)
    size = m.sqrt(second / _correction(m, beta2, t)) + eps
    step = lr * (first / _correction(m, beta1, t) / size)
    return p * (1.0 - lr * decay) - step, first, second


def _correction(m: Any, beta: Any, t: int) -> Any:
    """1 - beta^t, to its relative accuracy; beta = 0 counts as 1e-30, which is as good as 0."""
    return -m.expm1(float(t) * m.log(m.maximum(beta, 1e-30)))


def block_diagonal_start(
    m: Any, params: Any, exp_avg: Any, exp_avg_sq: Any, bucket_of: Any
) -> tuple[Any, ...]:
    """Params and moments, 0 off bucket."""
    own = _own(params, bucket_of)
    return tuple(m.where(own, each, 0.0) for each in (params, exp_avg, exp_avg_sq))


def block_diagonal_step(
    m: Any,
    params: Any,
    g: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    bucket_of: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    t: int,
    rate: Any,
) -> tuple[Any, ...]:
    """The new params, 0 off bucket, and moments, to which off-bucket gradients are 0."""
    own = _own(params, bucket_of)
    masked = m.where(own, g, 0.0)
    plain, first, second = adamw(
        m, params, masked, exp_avg, exp_avg_sq, lr, beta1, beta2, eps, decay, t
    )
    if rate is not None:
        share = rate[:, None]
        slow = params + (plain - params) * share
        plain = m.where(m.broadcast_to(share, params.shape) == 1.0, plain, slow)
    return m.where(own, plain, 0.0), first, second


def _own(params: Any, bucket_of: Any) -> Any:
    """Which entries belong to their row's bucket, bool (N, H)."""
    return np.arange(params.shape[0])[:, None] == np.asarray(bucket_of)[None, :]


def adamw_scalar(
    index: tuple[int, ...],
    output: str,
    p: Row,
    g: Row,
    exp_avg: Row,
    exp_avg_sq: Row,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    t: int,
) -> Any:
    """One element of p, exp_avg or exp_avg_sq afterwards."""
    (i,) = index
    settings = (lr, beta1, beta2, eps, decay, t)
    return _entry(output, p[i], g[i], exp_avg[i], exp_avg_sq[i], settings)


def _entry(
    output: str, p: float, g: float, mean: float, square: float, settings: tuple[float, ...]
) -> Any:
    """One entry's new value: AdamW as its authors write it."""
    with mpmath.workprec(_BITS):
        lr, beta1, beta2, eps, decay, t = map(mpmath.mpf, settings)
        slope = mpmath.mpf(float(g))
        new_mean = beta1 * mpmath.mpf(float(mean)) + (1 - beta1) * slope
        new_square = beta2 * mpmath.mpf(float(square)) + (1 - beta2) * slope**2
        if output == "exp_avg":
            return new_mean
        if output == "exp_avg_sq":
            return new_square
        decayed = mpmath.mpf(float(p)) * (1 - lr * decay)
        size = mpmath.sqrt(new_square / (1 - beta2**t)) + eps
        if size == 0:
            return mpmath.nan
        return decayed - lr * (new_mean / (1 - beta1**t)) / size


def block_diagonal_start_scalar(
    index: tuple[int, ...],
    output: str,
    params: Matrix,
    exp_avg: Matrix,
    exp_avg_sq: Matrix,
    bucket_of: Sequence[int],
) -> Any:
    """One entry of a buffer afterwards."""
    k, c = index
    buffer = {"params": params, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}[output]
    return mpmath.mpf(float(buffer[k][c])) if int(bucket_of[c]) == k else mpmath.mpf(0)


def block_diagonal_step_scalar(
    index: tuple[int, ...],
    output: str,
    params: Matrix,
    g: Matrix,
    exp_avg: Matrix,
    exp_avg_sq: Matrix,
    bucket_of: Sequence[int],
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    t: int,
    rate: Row | None,
) -> Any:
    """One entry of params, exp_avg or exp_avg_sq afterwards."""
    k, c = index
    own = int(bucket_of[c]) == k
    settings = (lr, beta1, beta2, eps, decay, t)
    slope = g[k][c] if own else 0.0
    if output != "params":
        return _entry(output, 0.0, slope, exp_avg[k][c], exp_avg_sq[k][c], settings)
    if not own:
        return mpmath.mpf(0)
    before = mpmath.mpf(float(params[k][c]))
    after = _entry("p", params[k][c], slope, exp_avg[k][c], exp_avg_sq[k][c], settings)
    share = 1 if rate is None else mpmath.mpf(float(rate[k]))
    with mpmath.workprec(_BITS):
        return before + (after - before) * share
