"""Rules of bounded numbers: arithmetic, comparison, choice and rounding to integers."""

import math
from typing import Any

import numpy as np

from trivet.oracles._bounded import (
    Bounded,
    Facts,
    Origin,
    context_of,
    doubtful,
    finish,
    hull,
    interval,
    lift,
    representable,
    rule,
    spread,
)
from trivet.oracles._context import Context
from trivet.oracles._discrete import decided_or_not, parts
from trivet.oracles._dispatch import Rule, apply
from trivet.oracles._formats import Array, format_of, round_to


def _pair(first: Any, second: Any) -> tuple[Context, Bounded, Bounded]:
    context = context_of(first, second)
    return context, lift(context, first), lift(context, second)


def _unrounded(context: Context, value: Array, propagated: Array, exact: Any) -> Any:
    """Where a correctly rounded operation on exact operands returns `value` itself."""
    if propagated.all():
        return None
    return (propagated == 0) & exact & representable(context, value)


@rule("add")
def add(first: Any, second: Any) -> Bounded:
    """a + b, correctly rounded; exact where the sum is a float32 number."""
    context, a, b = _pair(first, second)
    for shift, logarithm in ((a, b), (b, a)):
        merged = _log_sum_exp(shift, logarithm)
        if merged is not None:
            return merged
    return _sum(context, "add", a, b, b.value, None)


@rule("subtract")
def subtract(first: Any, second: Any) -> Bounded:
    """a - b, correctly rounded; remembers its operands, for exp, variance and log-softmax."""
    context, a, b = _pair(first, second)
    merged = _log_softmax(a, b)
    if merged is not None:
        return merged
    return _sum(context, "subtract", a, b, -b.value, Origin("difference", (a, b)))


def _sum(
    context: Context, name: str, a: Bounded, b: Bounded, addend: Array, origin: Origin | None
) -> Bounded:
    value = a.value + addend
    ea, eb = spread(a), spread(b)
    propagated = ea + eb
    shadow = value - a.value
    residual = (a.value - (value - shadow)) + (addend - shadow)
    exact = _unrounded(context, value, propagated, residual == 0)
    floor = a.facts.floor + b.facts.floor if origin is None else -math.inf
    facts = Facts(floor - abs(floor) * context.unit * 2 if floor > -math.inf else floor)
    doubt = doubtful(ea, eb)
    relative = context.unit
    return finish(
        context,
        name,
        value,
        propagated,
        relative,
        doubt=doubt,
        exact=exact,
        facts=facts,
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
    return _sum(x.context, "subtract", x, total, -total.value, None)


def _power_of_two(number: Bounded) -> bool:
    """Whether multiplying by this number only moves the exponent."""
    if number.size != 1 or number.error.any():
        return False
    return bool(abs(math.frexp(float(number.value.ravel()[0]))[0]) == 0.5)


@rule("multiply")
def multiply(first: Any, second: Any) -> Bounded:
    """a * b, correctly rounded. A product with itself has no negative execution."""
    context, a, b = _pair(first, second)
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
    if a is b:
        return True
    if a.origin is None or b.origin is None or a.origin.kind != b.origin.kind != "difference":
        return False
    return all(x is y for x, y in zip(a.origin.operands, b.origin.operands, strict=True))


def _product_floor(a: Bounded, b: Bounded, square: bool) -> float:
    return 0.0 if square or (a.facts.floor >= 0 and b.facts.floor >= 0) else -math.inf


@rule("divide")
def divide(first: Any, second: Any) -> Bounded:
    """a / b, or a times the rounded reciprocal of b: two roundings.

    Dividing by a power of two is exact either way. Undecidable where b may be zero, unless both
    operands are exact.
    """
    context, a, b = _pair(first, second)
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
    return Bounded(
        number.context,
        number.value.copy(),
        number.error.copy(),
        Facts(number.facts.floor, number.facts.rescaled),
        number.origin,
    )


@rule("abs")
def absolute(number: Bounded) -> Bounded:
    """|x|, exact and never negative."""
    floor = max(number.facts.floor, 0.0)
    return Bounded(number.context, np.abs(number.value), number.error, Facts(floor))


def _compare(name: str, decide: Rule) -> None:
    """Register a comparison: undecided where the intervals meet and something is inexact."""

    def compare(first: Any, second: Any) -> Any:
        context, a, b = _pair(first, second)
        (low_a, high_a), (low_b, high_b) = interval(a), interval(b)
        inexact = (a.error > 0) | (b.error > 0)
        meet = ~((high_a < low_b) | (high_b < low_a))
        return decided_or_not(context, decide(a.value, b.value), meet & inexact)

    rule(name)(compare)


_compare("less", np.less)
_compare("less_equal", np.less_equal)
_compare("greater", np.greater)
_compare("greater_equal", np.greater_equal)
_compare("equal", np.equal)
_compare("not_equal", np.not_equal)


def _between(name: str, function: Rule, floor: Rule | None = None) -> None:
    """Register an exact function of two numbers that grows with both."""

    def call(first: Any, second: Any) -> Bounded:
        context, a, b = _pair(first, second)
        (low_a, high_a), (low_b, high_b) = interval(a), interval(b)
        facts = Facts(floor(a.facts.floor, b.facts.floor) if floor else -math.inf)
        value = function(a.value, b.value)
        return hull(context, value, function(low_a, low_b), function(high_a, high_b), facts)

    rule(name)(call)


_between("maximum", np.maximum, max)
_between("minimum", np.minimum, min)
_between("fmax", np.fmax, max)
_between("fmin", np.fmin, min)


@rule("clip")
def clip(number: Any, low: Any = None, high: Any = None, **bounds: Any) -> Any:
    """x limited to [low, high]; either may be None."""
    low, high = bounds.get("min", low), bounds.get("max", high)
    if low is not None:
        number = apply("maximum", number, low)
    return number if high is None else apply("minimum", number, high)


@rule("where")
def where(condition: Any, chosen: Any, otherwise: Any) -> Bounded:
    """`chosen` or `otherwise`; where the condition is in doubt, the hull of both."""
    context = context_of(condition, chosen, otherwise)
    if isinstance(condition, Bounded):
        condition = condition != 0
    truth, undecided = parts(condition)
    a, b = lift(context, chosen), lift(context, otherwise)
    truth = np.asarray(truth, bool)
    value = np.where(truth, a.value, b.value)
    error = np.where(truth, a.error, b.error)
    if np.any(undecided):
        (low_a, high_a), (low_b, high_b) = interval(a), interval(b)
        both = hull(context, value, np.minimum(low_a, low_b), np.maximum(high_a, high_b))
        error = np.where(undecided, both.error, error)
    facts = Facts(min(a.facts.floor, b.facts.floor), a.facts.rescaled or b.facts.rescaled)
    return Bounded(context, value, error, facts)


def _step(name: str, function: Rule) -> None:
    """Register a growing step function: the hull of its values on the interval."""

    def call(number: Bounded, decimals: int = 0) -> Bounded:
        if decimals:
            scale = 10.0**decimals
            return apply("divide", apply(name, apply("multiply", number, scale)), scale)  # type: ignore[no-any-return]
        low, high = interval(number)
        floor = float(function(number.facts.floor))
        return hull(
            number.context, function(number.value), function(low), function(high), Facts(floor)
        )

    rule(name)(call)


for _name, _function in {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "round": np.rint,
    "sign": np.sign,
}.items():
    _step(_name, _function)


@rule("isnan")
def isnan(number: Bounded) -> Any:
    """Where x is NaN; in doubt where x is undecidable."""
    return decided_or_not(number.context, np.isnan(number.value), np.isinf(number.error))


@rule("isfinite")
def isfinite(number: Bounded) -> Any:
    """Where x is finite; in doubt where it may have overflowed."""
    return decided_or_not(number.context, np.isfinite(number.value), np.isinf(spread(number)))


@rule("isinf")
def isinf(number: Bounded) -> Any:
    """Where x is infinite; in doubt where it may have overflowed."""
    return decided_or_not(number.context, np.isinf(number.value), np.isinf(spread(number)))


@rule("astype", "cast")
def cast(number: Bounded, dtype: Any, **_: Any) -> Any:
    """x stored in `dtype` and read again.

    A float format narrower than the computing one rounds: the hull holds the rounded interval and
    the interval itself, for a kernel may keep more. float32 and wider do nothing. Integers are
    truncated, in doubt where the interval holds two; bool is `x != 0`.
    """
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name == "bool":
        return number != 0
    if name.startswith(("int", "uint")):
        low, high = (np.trunc(end) for end in interval(number))
        kind = np.dtype(name)
        finite = np.where(np.isfinite(number.value), number.value, 0.0)
        value = np.trunc(finite).astype(np.int64).astype(kind)
        return decided_or_not(number.context, value, ~(low == high))
    format = format_of(name)
    if format.significand >= number.context.compute.significand:
        return number
    low, high = interval(number)
    rounded_low, rounded_high = round_to(low, format), round_to(high, format)
    stored = hull(
        number.context,
        number.value,
        np.fmin(low, rounded_low),
        np.fmax(high, rounded_high),
        number.facts,
    )
    own = number.context.own("cast", np.fmax(stored.error - number.error, 0.0))
    return Bounded(number.context, number.value, number.error + own, number.facts)
