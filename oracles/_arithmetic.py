"""Rules of bounded numbers: the four operations and the sign."""

import math
from typing import Any

import numpy as np

from trivet.oracles._bounded import (
    SLACK,
    Bounded,
    Facts,
    Origin,
    context_of,
    doubtful,
    finish,
    joined_terms,
    lift,
    representable,
    rule,
    spread,
    terms_of,
)
from trivet.oracles._context import Context
from trivet.oracles._dispatch import apply
from trivet.oracles._formats import Array


def pair(first: Any, second: Any) -> tuple[Context, Bounded, Bounded]:
    """Two operands as bounded numbers of one context."""
    context = context_of(first, second)
    return context, lift(context, first), lift(context, second)


def _unrounded(context: Context, value: Array, propagated: Array, exact: Any) -> Any:
    """Where a correctly rounded operation on exact operands returns `value` itself."""
    if propagated.all():
        return None
    return (propagated == 0) & exact & representable(context, value)


@rule("add")
def add(first: Any, second: Any) -> Bounded:
    """a + b, correctly rounded; exact where the sum is a float32 number.

    a + b + c, written out or in a loop, stands for the sum of its terms in any order.
    """
    context, a, b = pair(first, second)
    for shift, logarithm in ((a, b), (b, a)):
        merged = _log_sum_exp(shift, logarithm)
        if merged is not None:
            return merged
    floor = a.facts.floor + b.facts.floor
    floor = floor - abs(floor) * context.unit * 2 if floor > -math.inf else floor
    result = _sum(context, "add", a, b, b.value, Origin("add", (a, b)), floor)
    return result if terms_of(a) is terms_of(b) is None else _in_any_order(result, a, b)


def _in_any_order(total: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """`total` of n > 2 terms with a bound for every order of them.

    As for a sum: each term passes at most n - 1 additions, error g_(n-1) sum|t|; none where all
    are multiples of a quantum and every partial sum has few enough of them to be exact. Without
    this a sum that is exact in the order written would demand that order.
    """
    context = total.context
    terms = total.terms = joined_terms(a, b)
    total.origin = None
    depth = terms.number - 1
    if context.precision.depth is not None:
        depth = np.minimum(depth, max(context.precision.depth, 1))
    reach = terms.magnitude + terms.inherited
    own = context.own("add", context.gamma(depth, context.unit) * reach)
    error = (terms.inherited + own) * SLACK
    over = (reach > context.compute.largest) & np.isfinite(total.value)
    error = np.where(over | np.isnan(error), np.inf, error)
    limit = np.ldexp(terms.quantum, context.compute.significand)
    exact = (terms.inherited == 0) & (terms.magnitude <= limit)
    keep = exact | ~np.isfinite(total.value)
    total.error = np.where(keep, total.error, np.maximum(total.error, error))
    return total


@rule("subtract")
def subtract(first: Any, second: Any) -> Bounded:
    """a - b, correctly rounded; remembers its operands, for exp, variance and log-softmax."""
    context, a, b = pair(first, second)
    merged = _log_softmax(a, b)
    if merged is not None:
        return merged
    return _sum(context, "subtract", a, b, -b.value, Origin("difference", (a, b)))


def _sum(
    context: Context,
    name: str,
    a: Bounded,
    b: Bounded,
    addend: Array,
    origin: Origin | None = None,
    floor: float = -math.inf,
) -> Bounded:
    value = a.value + addend
    ea, eb = spread(a), spread(b)
    propagated = ea + eb
    exact = None
    if not propagated.all():
        shadow = value - a.value
        residual = (a.value - (value - shadow)) + (addend - shadow)
        exact = _unrounded(context, value, propagated, residual == 0)
    return finish(
        context,
        name,
        value,
        propagated,
        context.unit,
        doubt=doubtful(ea, eb),
        exact=exact,
        facts=Facts(floor),
        origin=origin,
    )


def _log_sum_exp(a: Bounded, b: Bounded) -> Bounded | None:
    """shift + log(sum(exp(x - shift))), written out, is log-sum-exp in any stable form."""
    terms = _shifted_terms(b)
    if terms is None or terms[1].size != a.size:
        return None
    x, shift, axes = terms
    if not np.array_equal(shift.value.ravel(), a.value.ravel()):
        return None
    merged = apply("logsumexp", x, axis=axes, keepdims=True)
    shape = np.broadcast_shapes(a.shape, b.shape)
    return merged.reshape(shape) if merged.size == math.prod(shape) else None


def _shifted_terms(number: Bounded) -> tuple[Bounded, Bounded, tuple[int, ...]] | None:
    """x, shift and axes when `number` is log(sum(exp(x - shift), axes))."""
    axes: tuple[int, ...] = ()
    for kind in ("log", "sum", "exp"):
        if number.origin is None or number.origin.kind != kind:
            return None
        axes = number.origin.axes or axes
        (number,) = number.origin.operands
    if number.origin is None or number.origin.kind != "difference":
        return None
    x, shift = number.origin.operands
    return x, shift, axes


def _log_softmax(a: Bounded, b: Bounded) -> Bounded | None:
    """(x - shift) - log(sum(exp(x - shift))) is x - logsumexp(x): other forms round there."""
    terms = _shifted_terms(b)
    if terms is None or a.origin is None or a.origin.kind != "difference":
        return None
    x, shift, axes = terms
    if a.origin.operands[0] is not x or a.origin.operands[1] is not shift:
        return None
    total = apply("logsumexp", x, axis=axes, keepdims=True)
    return _sum(x.context, "subtract", x, total, -total.value)


def _power_of_two(number: Bounded) -> bool:
    """Whether multiplying by this number only moves the exponent."""
    if number.size != 1 or number.error.any():
        return False
    return bool(abs(math.frexp(float(number.value.ravel()[0]))[0]) == 0.5)


@rule("multiply")
def multiply(first: Any, second: Any) -> Bounded:
    """a * b, correctly rounded. A product with itself has no negative execution."""
    context, a, b = pair(first, second)
    value = a.value * b.value
    ea, eb = spread(a), spread(b)
    propagated = np.abs(a.value) * eb + np.abs(b.value) * ea + ea * eb
    doubt = doubtful(ea, eb)
    if not np.isfinite(value).all():
        doubt = doubt | _uncertain_sign(a, eb, b) | _uncertain_sign(b, ea, a)
        propagated = np.where(np.isnan(propagated), 0.0, propagated)
    exact = _unrounded(context, value, propagated, np.True_)
    if _power_of_two(a) or _power_of_two(b):
        exact = (
            np.abs(value) >= 4 * context.compute.normal
            if exact is None
            else (exact | (np.abs(value) >= 4 * context.compute.normal))
        )
    square = _same(a, b)
    facts = Facts(_product_floor(a, b, square), a.facts.rescaled or b.facts.rescaled)
    origin = Origin("square", (a,)) if square else None
    return finish(
        context,
        "multiply",
        value,
        propagated,
        context.unit,
        doubt=doubt,
        exact=exact,
        facts=facts,
        origin=origin,
    )


def _uncertain_sign(infinite: Bounded, error: Array, other: Bounded) -> Any:
    return np.isinf(infinite.value) & (error > 0) & (np.abs(other.value) <= error)


def _same(a: Bounded, b: Bounded) -> bool:
    """Whether both operands are one number, or one difference written twice."""
    if a is b:
        return True
    if a.origin is None or b.origin is None:
        return False
    if a.origin.kind != "difference" or b.origin.kind != "difference":
        return False
    pairs = zip(a.origin.operands, b.origin.operands, strict=True)
    return all(x is y for x, y in pairs) and np.array_equal(a.value, b.value)


def _product_floor(a: Bounded, b: Bounded, square: bool) -> float:
    return 0.0 if square or (a.facts.floor >= 0 and b.facts.floor >= 0) else -math.inf


@rule("divide")
def divide(first: Any, second: Any) -> Bounded:
    """a / b, or a times the rounded reciprocal of b: two roundings.

    Dividing by a power of two is exact either way. Undecidable where b may be zero, unless both
    operands are exact.
    """
    context, a, b = pair(first, second)
    mean = _mean(a, b)
    if mean is not None:
        return mean
    value = a.value / b.value
    ea, eb = spread(a), spread(b)
    least = np.maximum(np.abs(b.value) - eb, b.facts.floor)
    sure = (least > 0) | (eb == 0)
    propagated = np.where(sure, (ea + np.abs(value) * eb) / np.where(sure, least, 1.0), np.inf)
    propagated = np.where((ea == 0) & (eb == 0), 0.0, propagated)
    doubt = doubtful(ea, eb) | ~sure | ((b.value == 0) & (ea > 0))
    exact = (a.value == 0) & (ea == 0) & (least > 0)
    if _power_of_two(b):
        exact = exact | (np.abs(value) >= 4 * context.compute.normal)
    floor = 0.0 if a.facts.floor >= 0 and b.facts.floor >= 0 else -math.inf
    return finish(
        context,
        "divide",
        value,
        propagated,
        2 * context.profile.relative("divide"),
        doubt=doubt,
        exact=exact,
        facts=Facts(floor, a.facts.rescaled),
    )


def _mean(a: Bounded, b: Bounded) -> Bounded | None:
    """A sum over the number of its terms is a mean, in any stable form."""
    if a.origin is None or a.origin.kind != "sum" or b.size != 1 or b.error.any():
        return None
    (terms,) = a.origin.operands
    if terms.size != float(b.value.ravel()[0]) * a.size:
        return None
    return apply("mean", terms, axis=a.origin.axes).reshape(a.shape)  # type: ignore[no-any-return]


@rule("negative")
def negative(number: Bounded) -> Bounded:
    """-x, exact."""
    return Bounded(number.context, -number.value, number.error)


@rule("positive", "copy")
def positive(number: Bounded) -> Bounded:
    """x itself, in memory of its own."""
    copied = Bounded(
        number.context,
        number.value.copy(),
        number.error.copy(),
        Facts(number.facts.floor, number.facts.rescaled),
        number.origin,
    )
    copied.terms = number.terms and number.terms.moved(np.copy)
    return copied


@rule("abs")
def absolute(number: Bounded) -> Bounded:
    """|x|, exact and never negative."""
    floor = max(number.facts.floor, 0.0)
    return Bounded(number.context, np.abs(number.value), number.error, Facts(floor))
