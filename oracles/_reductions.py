"""Rules of bounded numbers: sums, means, sums of squares and log-sum-exp.

A sum of n terms in any order passes each term through at most d = n - 1 additions (or the declared
depth): error g_d sum|t|, with g_k = (1 + u)^k - 1. Where every partial sum in any order is exact
the error is 0. Means and sums of squares about the mean stand for every stable form.
"""

import math
from typing import Any

import numpy as np

from trivet.oracles._bounded import (
    SLACK,
    Bounded,
    Facts,
    Origin,
    lift,
    rule,
    settle,
    spread,
)
from trivet.oracles._context import Context
from trivet.oracles._dispatch import apply
from trivet.oracles._errors import OracleError
from trivet.oracles._formats import Array

# A blocked sum of exponential weights multiplies what it has by exp(old maximum - new maximum) at
# most once per addition: the exponential's rounding and the product's. The exponents telescope
# into the weight's own, so their errors are in `exp` already.
_RESCALED = 3.02

Axes = tuple[int, ...]


def axes_of(ndim: int, axis: Any) -> Axes:
    """The axes of a reduction as non-negative numbers; None means all."""
    if axis is None:
        return tuple(range(ndim))
    chosen = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    if any(not -ndim <= number < ndim for number in chosen):
        raise OracleError(f"axis {axis} of an array with {ndim} axes", "axis")
    return tuple(sorted(int(number) % ndim for number in chosen))


def count_of(number: Bounded, axes: Axes) -> int:
    """Number of terms of a reduction over `axes`."""
    return math.prod(number.shape[axis] for axis in axes)


def roundings(context: Context, count: int, rescaled: bool) -> float:
    """Roundings a term of a sum passes through."""
    depth = context.depth(count)
    return depth * _RESCALED if rescaled else depth


def _selected(number: Bounded, where: Any) -> Bounded:
    return number if where is None else apply("where", where, number, 0.0)


@rule("sum")
def total(
    number: Bounded,
    axis: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Bounded:
    """The sum over `axis`, in any order."""
    number = _selected(number, where)
    axes = axes_of(len(number.shape), axis)
    context = number.context
    deviations = centred(number, axes)
    value = number.value.sum(axes, keepdims=keepdims)
    if deviations is not None:
        error = _squares_error(*deviations, axes, keepdims)
    else:
        error = sum_error(context, number, axes, keepdims)
    facts = Facts(0.0 if number.facts.floor >= 0 else -math.inf)
    result = Bounded(context, value, error, facts, Origin("sum", (number,), axes))
    return result if initial is None else apply("add", result, initial)


def sum_error(context: Context, number: Bounded, axes: Axes, keepdims: bool) -> Any:
    """Bound of a sum of `number` over `axes` in any order."""
    error = spread(number)
    magnitude = np.abs(number.value).sum(axes, keepdims=keepdims)
    inherited = error.sum(axes, keepdims=keepdims)
    reach = magnitude + inherited
    own = reach * context.gamma(roundings(context, count_of(number, axes), number.facts.rescaled))
    if context.accumulate.name not in ("float32", "float64"):
        own = own + count_of(number, axes) * context.accumulate.subnormal
    if not number.facts.rescaled and not inherited.all():
        exact = (inherited == 0) & _exact_sums(context, number.value, magnitude, axes, keepdims)
        own = np.where(exact, 0.0, own)
    result = (inherited + context.own("sum", own)) * SLACK
    result = np.where((reach > _largest(context)) & np.isfinite(magnitude), np.inf, result)
    return settle(magnitude, result, np.isinf(error).any(axes, keepdims=keepdims))


def _largest(context: Context) -> float:
    return min(context.compute.largest, context.accumulate.largest)


def _exact_sums(context: Context, value: Array, magnitude: Any, axes: Axes, keepdims: bool) -> Any:
    """Where all terms are multiples of a quantum that every partial sum can hold exactly."""
    format = context.accumulate if context.accumulate.name != "float64" else context.compute
    shift = format.significand - np.frexp(magnitude)[1]
    spread_shift = shift if keepdims else np.expand_dims(shift, axes)
    scaled = np.ldexp(value, spread_shift)
    whole: Any = (np.rint(scaled) == scaled).all(axes, keepdims=keepdims)
    if format.name == "float32":
        return whole
    return whole & (np.ldexp(1.0, -shift) >= format.subnormal)


@rule("mean")
def mean(number: Bounded, axis: Any = None, keepdims: bool = False, where: Any = None) -> Bounded:
    """The mean over `axis` in any stable form: sum over count, running means, merged chunks."""
    axes = axes_of(len(number.shape), axis)
    if where is not None:
        raise OracleError("mean with where= has no rule", "mean")
    context = number.context
    count = count_of(number, axes)
    value = number.value.sum(axes, keepdims=keepdims) / np.float64(count)
    facts = Facts(0.0 if number.facts.floor >= 0 else -math.inf)
    deviations = centred(number, axes)
    if deviations is not None:
        error = _squares_error(*deviations, axes, keepdims) / count
        error = error + context.own("mean", 2 * context.unit * (np.abs(value) + error))
        return Bounded(context, value, error * SLACK + context.profile.underflow, facts)
    errors = spread(number)
    inherited = errors.sum(axes, keepdims=keepdims) / np.float64(count)
    own = mean_error(context, number, axes, keepdims)
    reach = np.abs(number.value).max(axes, keepdims=keepdims, initial=0.0)
    steps = 3 * (context.depth(count) + 1)
    own = own + steps * context.profile.underflow * ((reach > 0) & (count > 1))
    error = (inherited + context.own("mean", own)) * SLACK
    over = (reach * count > _largest(context)) & np.isfinite(reach)
    doubt = np.isinf(errors).any(axes, keepdims=keepdims)
    return Bounded(context, value, settle(value, np.where(over, np.inf, error), doubt), facts)


def mean_error(context: Context, number: Bounded, axes: Axes, keepdims: bool) -> Any:
    """Own rounding of a mean of n terms in any stable form.

    Running means M_k = M_(k-1) + (x_k - M_(k-1)) / k: errors E_k obey
    k E_k <= (k-1) E_(k-1) + u (k |M_k| + 3 |x_k - M_(k-1)|), so with S the sum of all |x|
    n E_n <= u S (n + 2 + 3 H_n), H_n <= 1 + log(n). A tree merge of two means with weights of at
    most a half rounds by 4 u S at each of its levels; sum over count by u S n. With all |x| <= X
    the same recursions give E_n <= u X (n / 2 + 7), or 4 u X for each level of a tree. Underflow
    (the caller adds it) costs the difference, the quotient and the sum of each step once: by the
    first recursion 3 (n + 1) / 2 times its size, in a tree 3 times for each level.
    """
    count = count_of(number, axes)
    if count <= 1:
        return np.zeros(np.sum(number.value, axes, keepdims=keepdims).shape)
    depth = context.depth(count)
    levels = min(depth, math.ceil(math.log2(count)))
    total_size = np.abs(number.value) + number.error
    by_sum = max(depth + 3 + 3 * (1 + math.log(max(depth, 1))), 4.0 * levels)
    by_most = max((depth + 1) / 2 + 7, 4.0 * levels + 8)
    most = total_size.max(axes, keepdims=keepdims) * context.gamma(by_most)
    return np.minimum(total_size.sum(axes, keepdims=keepdims) / count * context.gamma(by_sum), most)


def centred(number: Bounded, axes: Axes) -> tuple[Context, Bounded, Bounded, Bounded] | None:
    """Context, x, mean and x - mean when `number` is (x - mean)^2, the mean taken over `axes`.

    What counts is what the derivation needs: the subtrahend does not vary along `axes`, and the
    differences sum to nothing there.
    """
    if number.origin is None or number.origin.kind != "square":
        return None
    (difference,) = number.origin.operands
    if difference.origin is None or difference.origin.kind != "difference":
        return None
    x, average = difference.origin.operands
    padded = (1,) * (len(number.shape) - len(average.shape)) + average.shape
    if x.shape != number.shape or any(padded[axis] != 1 for axis in axes):
        return None
    if not np.array_equal(difference.value, x.value - average.value, equal_nan=True):
        return None
    size = (np.abs(x.value) + np.abs(average.value)).sum(axes)
    if (np.abs(difference.value.sum(axes)) > 2.0**-40 * size).any():
        return None
    return number.context, x, average, difference


def _squares_error(
    context: Context, x: Bounded, average: Bounded, difference: Bounded, axes: Axes, keepdims: bool
) -> Any:
    """Bound of sum (x - mean)^2 in every stable form: two passes, Welford, merged chunks.

    sqrt(M), M the sum of squares, is a seminorm of x: input errors eps shift it by |eps|_2.
    Two passes with a mean off by delta add exactly n delta^2. Updating and merging forms add, at
    each merge of two parts, w D^2 (w = n_a n_b / (n_a + n_b), D the difference of the means); D
    is off by the errors of the means, so by Cauchy and sum w D^2 <= 2 M the sum is off by
    2 sqrt(2 M n) A + n A^2, with A^2 n = sum w (error of D)^2 <= n u^2 X^2 (16 sum l^2 over the
    levels l of a tree, + (8 levels + 8)^2 + n^2 / 12 + 7 n / 2 + 49 for a running merge).
    """
    count = count_of(x, axes)
    depth = context.depth(count)
    unit = context.gamma(1)
    error = spread(x)
    squares = (difference.value**2).sum(axes, keepdims=keepdims)
    noise = np.sqrt((error**2).sum(axes, keepdims=keepdims))
    root = np.sqrt(squares) + noise
    wander = spread(average)
    padded = (1,) * (len(x.shape) - len(average.shape)) + average.shape
    wander = wander.reshape(padded).max(axes, keepdims=keepdims, initial=0.0)
    drift = count * wander**2
    two_pass = drift + context.gamma(depth + 3) * (root**2 + drift)
    most = (np.abs(x.value) + error).max(axes, keepdims=keepdims, initial=0.0)
    merged = unit * most * _merge_factor(depth, count) if count > 1 else 0.0 * most
    updating = 3 * root * math.sqrt(count) * merged + count * merged**2
    updating = updating + context.gamma(depth + 6) * (root**2 + updating)
    inherited = 2 * root * noise + noise**2
    if context.allows("variance"):
        updating = updating + context.gamma(depth + 4) * (
            (x.value**2).sum(axes, keepdims=keepdims)
            + 2 * np.abs(x.value).sum(axes, keepdims=keepdims) ** 2 / max(count, 1)
        )
    own = np.maximum(two_pass, updating) + count * context.profile.underflow * (root > 0)
    result = (inherited + context.own("sum of squares", own)) * SLACK
    over = (count * (2 * most) ** 2 > _largest(context)) & np.isfinite(most)
    doubt = np.isinf(error).any(axes, keepdims=keepdims)
    return settle(squares, np.where(over, np.inf, result), doubt)


def _merge_factor(depth: int, count: int) -> float:
    levels = min(depth, math.ceil(math.log2(count)))
    tree = 16 * (levels - 1) * levels * (2 * levels - 1) / 6
    running = (depth + 1) ** 2 / 12 + 3.5 * (depth + 1) + 49
    return math.sqrt(tree + (8 * levels + 8) ** 2 + running)


@rule("logsumexp")
def log_sum_exp(number: Bounded, axis: Any = None, keepdims: bool = False) -> Bounded:
    """log(sum(exp(x))) in every stable form: whole, running maximum, split and merged.

    Each level of a merge rounds partial results at their own size and takes exp and log of
    differences of at most log(n) in the mean: u (|result| + 6 log(n) + 4), for at most log2(n)
    levels. Base 2 takes the maximum to x * log2(e) and back: 3 u |max|. The result is 1-Lipschitz
    in the largest input error.
    """
    context = number.context
    axes = axes_of(len(number.shape), axis)
    count = count_of(number, axes)
    peak = number.value.max(axes, keepdims=True, initial=-np.inf)
    shift = lift(context, 0.0) + np.zeros(peak.shape)
    shift.value, shift.error = np.where(np.isfinite(peak), peak, 0.0), np.zeros(peak.shape)
    weights = apply("sum", apply("exp", apply("subtract", number, shift)), axes, keepdims=True)
    logarithm = apply("log", weights)
    value = shift.value + logarithm.value
    levels = math.ceil(math.log2(count)) if count > 1 else 0
    size = np.where(np.isfinite(value), np.abs(value), 0.0)
    back = 3 * np.where(np.isfinite(peak), np.abs(peak), 0.0)
    own = context.unit * (back + size + levels * (size + 6 * math.log(max(count, 1)) + 4))
    error = (logarithm.error + context.own("logsumexp", own)) * SLACK
    result = Bounded(context, value, settle(value, error, np.isinf(logarithm.error)))
    return result if keepdims else apply("squeeze", result, axes)
