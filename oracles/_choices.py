"""Rules of bounded numbers: comparison, choice, rounding to integers and storage formats."""

import math
from typing import Any

import numpy as np

from trivet.oracles._arithmetic import pair
from trivet.oracles._bounded import (
    Bounded,
    Facts,
    context_of,
    hull,
    interval,
    lift,
    rule,
    spread,
)
from trivet.oracles._discrete import decided_or_not, parts
from trivet.oracles._dispatch import Rule, apply
from trivet.oracles._formats import format_of, round_to


def _compare(name: str, decide: Rule) -> None:
    """Register a comparison: undecided where the intervals meet and something is inexact."""

    def compare(first: Any, second: Any) -> Any:
        context, a, b = pair(first, second)
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
        context, a, b = pair(first, second)
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
    low = bounds.get("min", bounds.get("a_min", low))
    high = bounds.get("max", bounds.get("a_max", high))
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
