"""Rules of dual numbers: the derivative of every operation an oracle may use.

Partial derivatives are bounded numbers themselves, so their rounding is in the bound. Where a
derivative depends on a comparison in doubt, or on which of two equal numbers is the larger, the
gradient is undecidable there (a kink).
"""

import math
from typing import Any

import numpy as np

from trivet.oracles._bounded import Bounded, lift
from trivet.oracles._discrete import parts
from trivet.oracles._dispatch import Rule, apply
from trivet.oracles._dual import STEPS, Dual, Tape, combine, dual, dual_rule, lose, tape_of
from trivet.oracles._formats import format_of


def _number(tape: Tape, value: Any) -> Bounded:
    return lift(tape.context, value)


# Elementwise ------------------------------------------------------------------------------------


def _widened(partial: Bounded, roundings: float) -> Bounded:
    """A partial that may also be computed from the result, as expm1(x) + 1 for exp(x)."""
    own = roundings * partial.context.unit * (1.0 + np.abs(partial.value))
    return Bounded(partial.context, partial.value, partial.error + own)


# Each partial takes the argument and the result, both bounded.
_PARTIALS: dict[str, Rule] = {
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2),
    "expm1": lambda x, y: _widened(apply("exp", x), 2.0),
    "log": lambda x, y: 1.0 / x,
    "log2": lambda x, y: 1.0 / (x * math.log(2)),
    "log10": lambda x, y: 1.0 / (x * math.log(10)),
    "log1p": lambda x, y: 1.0 / (1.0 + x),
    "sqrt": lambda x, y: 0.5 / y,
    "rsqrt": lambda x, y: -0.5 * y / x,
    "tanh": lambda x, y: 1.0 - y * y,
    "sigmoid": lambda x, y: y * (1.0 - y),
    "softplus": lambda x, y: apply("sigmoid", x),
    "erf": lambda x, y: 2 / math.sqrt(math.pi) * apply("exp", -(x * x)),
    "sin": lambda x, y: apply("cos", x),
    "cos": lambda x, y: -apply("sin", x),
    "sinh": lambda x, y: apply("sqrt", 1.0 + y * y),
    "arctan": lambda x, y: 1.0 / (1.0 + x * x),
    "arcsinh": lambda x, y: apply("rsqrt", 1.0 + x * x),
    "arcsin": lambda x, y: apply("rsqrt", 1.0 - x * x),
    "arccos": lambda x, y: -apply("rsqrt", 1.0 - x * x),
    "arctanh": lambda x, y: 1.0 / (1.0 - x * x),
    "cbrt": lambda x, y: y / (3.0 * x),
    "square": lambda x, y: 2.0 * x,
    "reciprocal": lambda x, y: -(y * y),
}


# Of partials with several factors: those that may still come when one product has underflowed,
# for each product of the edge but its last, from the size of the argument and the result.
_REACHED: dict[str, Rule] = {
    "rsqrt": lambda x, y: y + y**2 + y**3,
    "cbrt": lambda x, y: (1 + y) / x,
    "reciprocal": lambda x, y: y,
}


def _size(number: Bounded) -> Any:
    return np.abs(number.value) + number.error


def _function(name: str, partial: Rule) -> None:
    def call(x: Dual) -> Dual:
        y = apply(name, x.primal)
        slope = lift(x.tape.context, partial(x.primal, y))
        if name in _REACHED:
            lose(x, _REACHED[name](_size(x.primal), _size(y)))
        return combine(x.tape, y, [(x, slope, STEPS)])

    Dual.rules[name] = call


for _name, _partial in _PARTIALS.items():
    _function(_name, _partial)


def _flat(name: str) -> None:
    """Register a step function: its derivative is zero, taken so at its jumps too."""

    def call(x: Dual, *settings: Any) -> Dual:
        return combine(x.tape, apply(name, x.primal, *settings), [])

    Dual.rules[name] = call


for _name in ("floor", "ceil", "trunc", "rint", "round", "sign"):
    _flat(_name)


@dual_rule("add")
def add(a: Any, b: Any) -> Dual:
    """a + b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    return combine(tape, apply("add", x.primal, y.primal), [(x, None, 0), (y, None, 0)])


@dual_rule("subtract")
def subtract(a: Any, b: Any) -> Dual:
    """a - b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    minus = _number(tape, -1.0)
    return combine(tape, apply("subtract", x.primal, y.primal), [(x, None, 0), (y, minus, 0)])


@dual_rule("negative")
def negative(x: Dual) -> Dual:
    """-x."""
    return combine(x.tape, apply("negative", x.primal), [(x, _number(x.tape, -1.0), 0)])


@dual_rule("positive", "copy", "asarray", "array", "ascontiguousarray")
def positive(x: Any, *_: Any, **__: Any) -> Dual:
    """x itself."""
    tape = tape_of(x)
    number = dual(tape, x)
    return combine(tape, apply("positive", number.primal), [(number, None, 0)])


@dual_rule("multiply")
def multiply(a: Any, b: Any) -> Dual:
    """a * b; a square passes its adjoint along one edge, 2 a."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    product = apply("multiply", x.primal, y.primal)
    if x is y:
        return combine(tape, product, [(x, x.primal * 2.0, STEPS)])
    return combine(tape, product, [(x, y.primal, STEPS), (y, x.primal, STEPS)])


@dual_rule("divide")
def divide(a: Any, b: Any) -> Dual:
    """a / b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    quotient = apply("divide", x.primal, y.primal)
    inverse = apply("divide", 1.0, y.primal)
    edges = [(x, inverse, STEPS + 1)]
    if isinstance(b, Dual):
        edges.append((y, -(quotient * inverse), STEPS + 2))
        # As g q / y, or g a / (y y); once for each quotient that it divides.
        least = _size(inverse)
        lose(y, (least + least * least) * (quotient.value.size / max(y.size, 1)))
    return combine(tape, quotient, edges)


@dual_rule("power")
def power(a: Any, b: Any) -> Dual:
    """a ** b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    if not isinstance(b, Dual):
        exponent = np.asarray(b, np.float64)
        if exponent.ndim == 0 and float(exponent) == 2.0:
            return multiply(x, x)
        result = apply("power", x.primal, b)
        factor = apply("power", x.primal, exponent - 1.0)
        lose(x, _size(factor).max(initial=0.0) * factor.size / max(x.size, 1))
        slope = factor * exponent
        return combine(tape, result, [(x, slope, STEPS + 1)])
    result = apply("power", x.primal, y.primal)
    factor, logarithm = apply("power", x.primal, y.primal - 1.0), apply("log", x.primal)
    by_base, by_exponent = y.primal * factor, result * logarithm
    lose(x, _size(factor).max(initial=0.0) * factor.size / max(x.size, 1))
    lose(y, _size(logarithm).max(initial=0.0) * result.size / max(y.size, 1))
    return combine(tape, result, [(x, by_base, STEPS + 1), (y, by_exponent, STEPS + 1)])


@dual_rule("abs")
def absolute(x: Dual) -> Dual:
    """|x|, with a kink at zero."""
    slope = apply("sign", x.primal)
    kink = x.primal.value == 0
    slope = Bounded(slope.context, slope.value, np.where(kink, np.inf, slope.error))
    return combine(x.tape, apply("abs", x.primal), [(x, slope, 0)])


# Choice -----------------------------------------------------------------------------------------


@dual_rule("where")
def where(condition: Any, chosen: Any, otherwise: Any) -> Dual:
    """A choice; its tangent is undecidable where the condition is in doubt."""
    tape = tape_of(condition, chosen, otherwise)
    if isinstance(condition, Dual):
        condition = condition.primal != 0
    x, y = dual(tape, chosen), dual(tape, otherwise)
    primal = apply("where", condition, x.primal, y.primal)
    truth, doubt = parts(condition)
    truth = np.asarray(truth, bool)
    return _choose(tape, primal, truth, doubt, x, y)


def _choose(tape: Tape, primal: Bounded, truth: Any, doubt: Any, x: Dual, y: Dual) -> Dual:
    """x where `truth`, else y; undecidable where in doubt and the two tangents could differ."""
    shape = primal.shape
    truth, doubt = np.broadcast_to(truth, shape), np.broadcast_to(doubt, shape)
    for number, used in ((x, truth), (y, ~truth)):
        _mark_selected(number, used)
    components = []
    for part in ("tangent", "reach", "slip"):
        left, right = (_spread(getattr(z, part), shape) for z in (x, y))
        components.append(np.where(truth, left, right))
    if np.any(doubt):
        alive = np.zeros((tape.count, *shape), bool)
        for component in (x.reach, x.slip, y.reach, y.slip):
            alive |= _spread(component, shape) != 0
        components[2] = np.where(doubt & alive, np.inf, components[2])
    return Dual(tape, primal, *components)


def _spread(part: Any, shape: tuple[int, ...]) -> Any:
    lead = part.reshape(part.shape[0], *(1,) * (len(shape) - part.ndim + 1), *part.shape[1:])
    return np.broadcast_to(lead, (part.shape[0], *shape))


def _mark_selected(number: Dual, used: Any) -> None:
    """Count the uses of a broadcast number at the positions `used`."""
    extra = used.ndim - len(number.shape)
    count = used.astype(np.float64)
    count = count.sum(tuple(range(extra))) if extra else count
    axes = tuple(i for i, n in enumerate(number.shape) if n == 1)
    number.uses += count.sum(axes, keepdims=True) if axes else count


def _extremum(name: str, compare: str) -> None:
    """Register the larger or smaller of two; equal numbers make a kink."""

    def call(a: Any, b: Any) -> Dual:
        tape = tape_of(a, b)
        x, y = dual(tape, a), dual(tape, b)
        truth, doubt = parts(apply(compare, x.primal, y.primal))
        tie, unsure = parts(apply("equal", x.primal, y.primal))
        primal = apply(name, x.primal, y.primal)
        return _choose(tape, primal, truth, doubt | tie | unsure, x, y)

    Dual.rules[name] = call


_extremum("maximum", "greater")
_extremum("minimum", "less")
_extremum("fmax", "greater")
_extremum("fmin", "less")


@dual_rule("clip")
def clip(x: Any, low: Any = None, high: Any = None, **bounds: Any) -> Any:
    """x limited to [low, high]."""
    low = bounds.get("min", bounds.get("a_min", low))
    high = bounds.get("max", bounds.get("a_max", high))
    if low is not None:
        x = apply("maximum", x, low)
    return x if high is None else apply("minimum", x, high)


@dual_rule("astype", "cast")
def cast(x: Dual, dtype: Any, **_: Any) -> Any:
    """x stored in `dtype`: the gradient passes and may be stored so itself."""
    primal = apply("cast", x.primal, dtype)
    if not isinstance(primal, Bounded):
        return primal
    if primal is x.primal:
        return x
    steps = format_of(dtype).unit / x.context.unit
    return combine(x.tape, primal, [(x, _number(x.tape, 1.0), steps)])


def _on_primals(name: str) -> None:
    """Register an operation whose result has no tangent."""

    def call(*operands: Any, **options: Any) -> Any:
        plain = [x.primal if isinstance(x, Dual) else x for x in operands]
        return apply(name, *plain, **options)

    Dual.rules[name] = call


for _name in [
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "isnan",
    "isfinite",
    "isinf",
    "argmax",
    "argmin",
    "argsort",
    "searchsorted",
    "shape",
    "ndim",
    "size",
]:
    _on_primals(_name)
