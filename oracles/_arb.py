"""The value of an oracle at 113 bits, enclosed by balls: python-flint's arb, the extra `flint`.

A check of the float64 value beside mpmath, a hundred times faster. A ball holds the exact value of
the oracle's formula; it says nothing of what a float32 kernel may make of it, which is a bound's
business (the number system of `_bounded`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trivet.oracles._bounded import Bounded
from trivet.oracles._context import Context
from trivet.oracles._dispatch import PLAIN, Rule
from trivet.oracles._errors import OracleError, Undecidable
from trivet.oracles._evaluate import Argument, Oracle, call_traced, outputs_of
from trivet.oracles._formats import Array
from trivet.oracles._namespace import Namespace
from trivet.oracles._operators import Operators
from trivet.oracles._precision import Precision
from trivet.oracles._profile import profile_named
from trivet.oracles._reductions import axes_of
from trivet.oracles._structure import MANY, ONE

Objects = npt.NDArray[np.object_]

BITS = 113


class MissingExtraError(ImportError):
    """python-flint is not installed; the message names the extra that brings it."""


@dataclass(frozen=True)
class Enclosure:
    """An output's exact value lies within `radius` of `middle`, float64 arrays of one shape.

    The radius counts the rounding of the middle to float64. Integers and bools have none (0).
    """

    middle: npt.NDArray[Any]
    radius: Array


@cache
def _flint() -> Any:
    try:
        return import_module("flint")
    except ImportError as error:
        raise MissingExtraError(
            f"values at {BITS} bits need python-flint: pip install 'trivet[flint]'"
        ) from error


def evaluate_arb(
    oracle: Oracle, arguments: Mapping[str, Argument], *, bits: int = BITS
) -> list[Enclosure | None]:
    """The outputs of `oracle` enclosed at `bits` bits, in order; None where it returns None.

    Float arguments are exact stored values. Raises MissingExtraError without python-flint,
    OracleError for an operation without a rule, Undecidable where a ball does not decide a
    comparison.
    """
    flint = _flint()
    context = Context(profile_named("simulator"), Precision())
    namespace = Namespace(context, lambda number: _ball(context, number.value))
    with flint.ctx.workprec(bits):
        traced = {name: _traced(context, value) for name, value in arguments.items()}
        outputs = outputs_of(call_traced(oracle, traced, namespace))
        return [None if output is None else _enclosure(output) for output in outputs]


def _traced(context: Context, value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return _ball(context, np.asarray(value))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return _ball(context, value)
    return value.copy() if isinstance(value, np.ndarray) else value


def _ball(context: Context, value: npt.NDArray[Any]) -> "Ball":
    return Ball(context, _balls(value))


def _balls(value: Any) -> Objects:
    """Plain numbers as exact balls; what is ball already stays."""
    array = np.asarray(value)
    if array.dtype == object:
        return array
    exact = np.empty(array.shape, object)
    exact.ravel()[:] = [_flint().arb(number) for number in array.ravel().tolist()]
    return exact


def _enclosure(output: Any) -> Enclosure:
    if not isinstance(output, Ball):
        plain = np.asarray(output)
        return Enclosure(plain, np.zeros(plain.shape))
    middle = np.array([float(x.mid()) for x in output.value.ravel()], np.float64)
    radius = np.array([float(x.rad()) for x in output.value.ravel()], np.float64)
    radius = radius + np.spacing(np.where(np.isfinite(middle), np.abs(middle), 0.0))
    return Enclosure(middle.reshape(output.shape), radius.reshape(output.shape))


class Ball(Operators):
    """An array of balls: `value` is an object array of arb."""

    __slots__ = ("value",)
    rules: ClassVar[dict[str, Rule]] = {}
    rank = 4

    def __init__(self, context: Context, value: Any) -> None:
        self.context = context
        self.value: Objects = np.asarray(value, object)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64: what the balls stand for."""
        return np.dtype(np.float64)

    def __setitem__(self, key: Any, item: Any) -> None:
        self.value[key] = _plain(item) if isinstance(item, Ball) else _balls(item)


def _plain(operand: Any) -> Any:
    """An operand as an object array of balls, or as it is where it is no number of ours."""
    if isinstance(operand, Ball):
        return operand.value
    if isinstance(operand, Bounded):
        return _balls(operand.value)
    if isinstance(operand, list | tuple):
        return type(operand)(map(_plain, operand))
    return operand


def _wrapped(context: Context, result: Any) -> Any:
    if isinstance(result, list | tuple):
        return type(result)(_wrapped(context, part) for part in result)
    return Ball(context, result)


def _context(operands: Any) -> Context:
    for operand in operands:
        if isinstance(operand, Ball):
            return operand.context
        if isinstance(operand, list | tuple) and any(isinstance(x, Ball) for x in operand):
            return _context(operand)
    raise OracleError("no ball among the operands")


def _rule(name: str, function: Rule) -> None:
    """Register a NumPy-like function of object arrays as the rule of balls."""

    def call(*operands: Any, **options: Any) -> Any:
        context = _context((*operands, *options.values()))
        settings = {key: _plain(value) for key, value in options.items()}
        return _wrapped(context, function(*map(_plain, operands), **settings))

    Ball.rules[name] = call


def _of_numbers(function: Callable[..., Any], count: int) -> Rule:
    """A function of `count` balls, elementwise; plain operands become balls."""
    each = np.frompyfunc(function, count, 1)
    return lambda *operands, **_: each(*map(_balls, operands))


def _reduced(function: Callable[..., Any]) -> Rule:
    """A function of two balls over axes."""
    each = np.frompyfunc(function, 2, 1)

    def call(array: Objects, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
        for place in reversed(axes_of(array.ndim, axis)):
            folded = each.reduce(array, axis=place)
            array = np.expand_dims(np.asarray(folded, object), place) if keepdims else folded
        return np.asarray(array, object)

    return call


def _comparison(
    name: str, sure: Callable[[Any, Any], Any], never: Callable[[Any, Any], Any]
) -> None:
    """Register a comparison that raises Undecidable where the balls overlap."""

    def one(a: Any, b: Any) -> bool:
        if sure(a, b):
            return True
        if never(a, b) or a.is_nan() or b.is_nan():
            return False
        raise Undecidable(f"a ball does not decide {name}", name)

    each = np.frompyfunc(one, 2, 1)

    def call(first: Any, second: Any, **_: Any) -> Any:
        decided = each(_balls(_plain(first)), _balls(_plain(second)))
        return np.asarray(decided, bool)

    Ball.rules[name] = call


def _mean(array: Objects, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
    total = np.sum(array, axis=axis, keepdims=keepdims)
    return total / (array.size // max(np.size(total), 1))


def _log_sum_exp(array: Objects, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
    weights = np.sum(_EXP(array), axis=axis, keepdims=keepdims)
    return np.frompyfunc(lambda x: x.log(), 1, 1)(weights)


def _linear_scan(a: Any, b: Any, initial: Any = None, axis: int = -1) -> Any:
    a, b = (np.moveaxis(part, axis, 0) for part in np.broadcast_arrays(_balls(a), _balls(b)))
    state = np.broadcast_to(_balls(0.0 if initial is None else initial), b.shape[1:])
    states = np.empty(b.shape, object)
    for step in range(len(b)):
        state = states[step] = a[step] * state + b[step]
    return np.moveaxis(states, 0, axis)


def _cast(ball: Ball, dtype: Any, **_: Any) -> Any:
    """Floats keep their exact value, as in float64; whole numbers need one that decides."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if not name.startswith(("int", "uint", "bool")):
        return ball
    raise OracleError(f"a ball has no cast to {name}", "cast")


_EXP = np.frompyfunc(lambda x: x.exp(), 1, 1)
_ONE_NUMBER: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: x.exp(), "exp2": lambda x: _flint().arb(2) ** x, "expm1": lambda x: x.expm1(),
    "log": lambda x: x.log(), "log2": lambda x: x.log() / _flint().arb.const_log2(),
    "log10": lambda x: x.log() / _flint().arb.const_log10(), "log1p": lambda x: x.log1p(),
    "sqrt": lambda x: x.sqrt(), "rsqrt": lambda x: x.rsqrt(), "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()), "softplus": lambda x: x.exp().log1p(),
    "sin": lambda x: x.sin(), "cos": lambda x: x.cos(), "erf": lambda x: x.erf(),
    "sinh": lambda x: x.sinh(), "arctan": lambda x: x.atan(), "arcsin": lambda x: x.asin(),
    "arccos": lambda x: x.acos(), "arcsinh": lambda x: x.asinh(), "arctanh": lambda x: x.atanh(),
    "abs": abs, "negative": lambda x: -x, "positive": lambda x: +x, "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
}  # fmt: skip
_TWO_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b, "power": lambda a, b: a**b, "maximum": lambda a, b: a.max(b),
    "minimum": lambda a, b: a.min(b),
}  # fmt: skip

for _name, _function in {**ONE, **MANY}.items():
    _rule(_name, _function)
for _name in ("sum", "prod", "cumsum", "cumprod", "where", "copy", "put", "asarray", "array"):
    _rule(_name, PLAIN[_name])
for _name, _function in _ONE_NUMBER.items():
    _rule(_name, _of_numbers(_function, 1))
for _name, _pair in _TWO_NUMBERS.items():
    _rule(_name, _of_numbers(_pair, 2))
for _name, _pair in (("max", _TWO_NUMBERS["maximum"]), ("min", _TWO_NUMBERS["minimum"])):
    _rule(_name, _reduced(_pair))
for _name in ("matmul", "dot"):
    _rule(_name, lambda a, b: _balls(a) @ _balls(b))
_rule("einsum", lambda text, *parts, **_: np.einsum(text, *map(_balls, parts), optimize=False))
_rule("mean", _mean)
_rule("logsumexp", _log_sum_exp)
_rule("linear_scan", _linear_scan)
_comparison("less", lambda a, b: a < b, lambda a, b: a >= b)
_comparison("less_equal", lambda a, b: a <= b, lambda a, b: a > b)
_comparison("greater", lambda a, b: a > b, lambda a, b: a <= b)
_comparison("greater_equal", lambda a, b: a >= b, lambda a, b: a < b)
_comparison("equal", lambda a, b: a == b, lambda a, b: a != b)
_comparison("not_equal", lambda a, b: a != b, lambda a, b: a == b)
Ball.rules["astype"] = Ball.rules["cast"] = _cast
for _name in ("shape", "ndim", "size"):
    Ball.rules[_name] = Bounded.rules[_name]
