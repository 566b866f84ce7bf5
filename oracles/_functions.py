"""Rules of bounded numbers: functions of one number, and powers.

Each rule widens the argument's interval through the function (exactly, for growing or falling
ones) and adds the function's own error. A name stands for every stable form of the function: exp
also for exp2(x * log2(e)), log for log2(x) * ln(2), rsqrt for 1 / sqrt(x), sigmoid for
1 / (1 + exp(-x)).
"""

import math
from typing import Any

import numpy as np

from trivet.oracles import _composed, _special
from trivet.oracles._bounded import (
    Bounded,
    Facts,
    Origin,
    all_finite,
    context_of,
    doubtful,
    finish,
    interval,
    lift,
    rule,
    spread,
)
from trivet.oracles._dispatch import Rule, apply
from trivet.oracles._formats import Array


def _monotone(
    number: Bounded,
    name: str,
    function: Rule,
    relative: Any,
    *,
    falling: bool = False,
    floor: float = -math.inf,
    extra: Any = None,
    origin: Origin | None = None,
    rescaled: bool = False,
) -> Bounded:
    """A growing (or falling) function; `extra` is an absolute error of its approximations."""
    context = number.context
    low, high = interval(number)
    value = function(number.value)
    below, above = function(low), function(high)
    if falling:
        below, above = above, below
    propagated = np.maximum(above - value, value - below)
    outside = np.isnan(propagated) & (number.error > 0)
    propagated = np.where(outside, np.inf, np.where(np.isnan(propagated), 0.0, propagated))
    if not falling and extra is None:
        floor = max(floor, _floor_of(number, function, np.max(relative, initial=0.0)))
    zero = (value == 0) & (propagated == 0) & np.isfinite(number.value)
    if extra is not None:
        propagated = propagated + context.own(name, extra)
    return finish(
        context,
        name,
        value,
        propagated,
        relative,
        doubt=doubtful(number.error) | outside,
        exact=zero if extra is None else None,
        facts=Facts(floor, rescaled),
        origin=origin,
    )


def _floor_of(number: Bounded, function: Rule, relative: float) -> float:
    """What a growing function of `number` cannot fall below."""
    least = float(function(number.facts.floor))
    if math.isnan(least) or number.facts.floor == -math.inf:
        return -math.inf
    return least - 2 * abs(least) * relative - number.context.profile.underflow * (least != 0)


# Products of constants and arguments in exp2(x * log2(e)), the constant possibly folded with
# another factor: one rounding each.
_SCALED = 2.0


@rule("exp")
def exp(number: Bounded) -> Bounded:
    """exp(x), also as exp2(x * c) with c = log2(e) rounded: relative error (2 |x| + 1) u.

    exp(a - b) with b one number for a whole row (its maximum, a log-sum-exp) is a weight that
    stable forms compute as exp2(a * c - b * c), where products round before the difference:
    2 u (|a| + |b|); and that they split: partial results relative to a maximum of their own are
    weighted by exp(part - total), where parts and total are log-sum-exps rounded at their own
    size, |b| + log(n): 3 u (|b| + log(n) + 2). The rounding of a - b is in its error already.
    """
    context = number.context
    value = np.exp(number.value)
    error = spread(number)
    weight = _is_weight(number)
    exact = np.isneginf(number.value) & (number.error == 0)
    if not weight:
        exact = exact | ((number.value == 0) & (number.error == 0))
    argument = _weight_argument(number) if weight else _SCALED * np.abs(number.value)
    propagated = value * growth(error)
    relative = context.profile.relative("exp") + growth(context.unit * argument)
    if not (all_finite(propagated) and all_finite(relative)):
        propagated = np.where(np.isnan(propagated), np.where(error > 0, np.inf, 0), propagated)
        relative = np.where((value == 0) | ~np.isfinite(argument), 0.0, relative)
    return finish(
        context,
        "exp",
        value,
        propagated,
        relative,
        doubt=doubtful(error),
        exact=exact,
        facts=Facts(0.0, weight),
        origin=Origin("exp", (number,)),
    )


def growth(exponent: Any) -> Any:
    """At least e^x - 1, for x >= 0: x + x^2 below 1.7."""
    if exponent.max(initial=0.0) < 1.5:
        return exponent + exponent * exponent
    return np.expm1(exponent)


def _weight_argument(number: Bounded) -> Array:
    """Error of the exponent of a weight exp(a - b), in unit roundoffs."""
    assert number.origin is not None
    a, b = number.origin.operands
    count = a.size / b.size
    shared = (_SCALED + 3) * np.abs(b.value) + 3 * (math.log(count) + 2)
    argument: Array = _SCALED * np.abs(a.value) + shared
    return argument


def _is_weight(number: Bounded) -> bool:
    """Whether a number is a difference from something shared along an axis."""
    if number.origin is None or number.origin.kind != "difference":
        return False
    a, b = number.origin.operands
    return 0 < b.size < a.size == number.size


@rule("exp2")
def exp2(number: Bounded) -> Bounded:
    """2 to the power x."""
    relative = number.context.profile.relative("exp2")
    return _monotone(number, "exp2", np.exp2, relative, floor=0.0, rescaled=_is_weight(number))


@rule("expm1")
def expm1(number: Bounded) -> Bounded:
    """exp(x) - 1, composed or not; with "expm1" in the contract's approx also as written."""
    context = number.context
    extra = None
    if context.allows("expm1"):
        extra = context.unit * np.exp(number.value) * (2 * np.abs(number.value) + 3)
    return _monotone(
        number,
        "expm1",
        np.expm1,
        _composed.relative(context, "expm1", number.value),
        floor=-1.0,
        extra=extra,
    )


@rule("log")
def log(number: Bounded) -> Bounded:
    """Natural logarithm, also as log2(x) * ln(2): three roundings."""
    relative = number.context.profile.relative("log") + 2 * number.context.unit
    return _monotone(number, "log", np.log, relative, origin=Origin("log", (number,)))


@rule("log2")
def log2(number: Bounded) -> Bounded:
    """Logarithm to base 2."""
    return _monotone(number, "log2", np.log2, number.context.profile.relative("log2"))


@rule("log10")
def log10(number: Bounded) -> Bounded:
    """Logarithm to base 10, also as log2(x) * log10(2)."""
    relative = number.context.profile.relative("log10") + 2 * number.context.unit
    return _monotone(number, "log10", np.log10, relative)


@rule("log1p")
def log1p(number: Bounded) -> Bounded:
    """log(1 + x), composed or not; with "log1p" in the contract's approx also as written."""
    context = number.context
    extra = None
    if context.allows("log1p"):
        value = np.abs(np.log1p(number.value))
        extra = context.unit * np.where(np.isfinite(value), 1.0 + 3 * value, 0.0)
    own = _composed.relative(context, "log1p", number.value)
    return _monotone(number, "log1p", np.log1p, own, extra=extra)


@rule("sqrt")
def sqrt(number: Bounded) -> Bounded:
    """Square root, correctly rounded."""
    root = _monotone(number, "sqrt", np.sqrt, number.context.profile.relative("sqrt"), floor=0.0)
    whole = (number.error == 0) & (root.value * root.value == number.value)
    whole &= root.value.astype(np.float32) == root.value
    root.error = np.where(whole, 0.0, root.error)
    return root


@rule("rsqrt")
def rsqrt(number: Bounded) -> Bounded:
    """1 / sqrt(x), also as written: two roundings."""
    relative = 2 * number.context.profile.relative("rsqrt")
    return _monotone(number, "rsqrt", _special.rsqrt, relative, falling=True, floor=0.0)


@rule("tanh")
def tanh(number: Bounded) -> Bounded:
    """Hyperbolic tangent, composed or not.

    With "tanh" in the contract's approx also as 2 sigmoid(2x) - 1.
    """
    context = number.context
    extra = None
    if context.allows("tanh"):
        extra = context.unit * (4.0 + 8 * np.minimum(np.abs(number.value), 1.0))
    own = _composed.relative(context, "tanh", number.value)
    return _monotone(number, "tanh", np.tanh, own, floor=-1.0, extra=extra)


@rule("sigmoid")
def sigmoid(number: Bounded) -> Bounded:
    """1 / (1 + exp(-x)) or exp(x) / (1 + exp(x)), whichever does not overflow.

    The error of the exponential counts by 1 - sigmoid(x), the derivative of log sigmoid; sum and
    quotient round. Below -88 the exponential may overflow and the result vanish.
    """
    unit = number.context.unit
    magnitude = np.where(np.isfinite(number.value), np.abs(number.value), 0.0)
    exponential = (_SCALED * magnitude + 1.01) * _special.sigmoid(-number.value)
    relative = unit * (exponential + 3.02)
    gone = np.where(number.value < -87.0, _special.sigmoid(number.value), 0.0)
    return _monotone(number, "sigmoid", _special.sigmoid, relative, floor=0.0, extra=gone)


@rule("softplus")
def softplus(number: Bounded) -> Bounded:
    """log(1 + exp(x)) by log1p, in either stable form.

    log1p(exp(x)): the exponential's relative error counts by the slope sigmoid(x).
    max(x, 0) + log1p(exp(-|x|)): by less, and the sum rounds. With "softplus" in the contract's
    approx log(1 + exp(x)) as written.
    """
    context = number.context
    finite = np.isfinite(number.value)
    magnitude = np.where(finite, np.abs(number.value), 0.0)
    extra = context.unit * (_SCALED * magnitude + 1.01) * _special.sigmoid(number.value)
    if context.allows("softplus"):
        value = np.where(finite, _special.softplus(number.value), 0.0)
        extra = extra + context.unit * (2.0 + 3 * value)
    own = _composed.relative(context, "log1p", number.value) + context.unit
    return _monotone(number, "softplus", _special.softplus, own, floor=0.0, extra=extra)


def _wave(name: str, function: Rule) -> None:
    """Register sine or cosine: 1-Lipschitz, between -1 and 1, NaN of an infinity."""

    def call(number: Bounded) -> Bounded:
        error = spread(number)
        return finish(
            number.context,
            name,
            function(number.value),
            np.minimum(error, 2.0),
            number.context.profile.relative(name),
            doubt=doubtful(error),
            exact=(number.value == 0) & (error == 0),
            facts=Facts(-1.0),
        )

    rule(name)(call)


_wave("sin", np.sin)
_wave("cos", np.cos)


def _plain(name: str, function: Rule, *, falling: bool = False, floor: float = -math.inf) -> None:
    def call(number: Bounded) -> Bounded:
        relative = number.context.profile.relative(name)
        return _monotone(number, name, function, relative, falling=falling, floor=floor)

    rule(name)(call)


_plain("erf", _special.erf, floor=-1.0)
_plain("sinh", np.sinh)
_plain("arctan", np.arctan)
_plain("arcsinh", np.arcsinh)
_plain("arcsin", np.arcsin)
_plain("arccos", np.arccos, falling=True, floor=0.0)
_plain("arctanh", np.arctanh)
_plain("cbrt", np.cbrt)


@rule("square")
def square(number: Bounded) -> Bounded:
    """x * x."""
    return apply("multiply", number, number)  # type: ignore[no-any-return]


@rule("reciprocal")
def reciprocal(number: Bounded) -> Bounded:
    """1 / x."""
    return apply("divide", 1.0, number)  # type: ignore[no-any-return]


_SIMPLE_POWERS = {0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal", 1.0: "positive", 2.0: "square"}


@rule("power")
def power(base: Any, exponent: Any) -> Bounded:
    """base ** exponent: small integers by any tree of products, others by exp2(y log2(x))."""
    plain = np.asarray(exponent) if not isinstance(exponent, Bounded) else None
    if plain is not None and plain.ndim == 0 and isinstance(base, Bounded):
        number = float(plain)
        if number in _SIMPLE_POWERS:
            return apply(_SIMPLE_POWERS[number], base)  # type: ignore[no-any-return]
        if number.is_integer() and 0 <= number <= 64:
            return _whole_power(base, int(number))
    context = context_of(base, exponent)
    a, b = lift(context, base), lift(context, exponent)
    logarithm = np.log(a.value)
    value = np.power(a.value, b.value)
    low, _ = interval(a)
    wander = np.where(a.error == 0, 0.0, a.error / np.where(low > 0, low, 1.0))
    drift = np.abs(b.value) * wander + b.error * (np.abs(logarithm) + wander)
    relative = np.expm1(drift + 4 * context.unit * (np.abs(b.value * logarithm) + 1))
    sure = (low > 0) | ((a.error == 0) & (b.error == 0))
    size = np.abs(value) * np.where(np.isfinite(relative), relative, 4 * context.unit)
    propagated = np.where(sure, np.where(np.isfinite(value), size, 0.0), np.inf)
    return finish(
        context,
        "power",
        value,
        propagated,
        context.profile.relative("power"),
        doubt=doubtful(a.error, b.error) | ~sure,
        facts=Facts(0.0 if a.facts.floor >= 0 else -math.inf),
    )


def _whole_power(number: Bounded, exponent: int) -> Bounded:
    """x ** n for n = 0 or 3 to 64: n - 1 products in any tree, or one rounding of pow."""
    if exponent == 0:
        return Bounded(number.context, np.ones(number.shape), 0.0, Facts(1.0))
    value: Array = number.value**exponent
    error = spread(number)
    magnitude = np.abs(number.value)
    propagated = (magnitude + error) ** exponent - magnitude**exponent
    floor = 0.0 if exponent % 2 == 0 or number.facts.floor >= 0 else -math.inf
    return finish(
        number.context,
        "power",
        value,
        propagated,
        number.context.gamma(exponent - 1, number.context.unit),
        doubt=doubtful(error),
        exact=(magnitude <= 1) & (value == np.rint(value)) & (error == 0),
        facts=Facts(floor),
    )
