"""The value of an oracle at 113 bits, enclosed by balls: python-flint's arb, the extra `flint`.

A check of the float64 value beside mpmath, a hundred times faster. A ball holds the exact value of
the oracle's formula; it says nothing of what a float32 kernel may make of it, which is a bound's
business (the number system of `_bounded`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from trivet.oracles._errors import Undecidable
from trivet.oracles._evaluate import Argument, Oracle
from trivet.oracles._formats import Array
from trivet.oracles._numbers import BITS, Algebra, Numbers, install, outputs


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
    comparison, an order or a whole number.
    """
    with _flint().ctx.workprec(bits):
        results = outputs(_system(), oracle, arguments)
        return [None if output is None else _enclosure(output) for output in results]


def _enclosure(output: Any) -> Enclosure:
    if not isinstance(output, Numbers):
        plain = np.asarray(output)
        return Enclosure(plain, np.zeros(plain.shape))
    middle = np.array([float(x.mid()) for x in output.value.ravel()], np.float64)
    radius = np.array([float(x.rad()) for x in output.value.ravel()], np.float64)
    radius = radius + np.spacing(np.where(np.isfinite(middle), np.abs(middle), 0.0))
    return Enclosure(middle.reshape(output.shape), radius.reshape(output.shape))


def _decided(
    name: str, sure: Callable[[Any, Any], Any], never: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], bool]:
    """A comparison that raises Undecidable where the balls overlap."""

    def one(a: Any, b: Any) -> bool:
        if sure(a, b):
            return True
        if never(a, b) or a.is_nan() or b.is_nan():
            return False
        raise Undecidable(f"a ball does not decide {name}", name)

    return one


def _whole(ball: Any) -> int:
    """The integer that every number of the ball is cut to."""
    part = ball.floor() if ball >= 0 else ball.ceil()
    whole = part.unique_fmpz() if part.is_finite() else None
    if whole is None:
        raise Undecidable("a ball does not decide a whole number", "cast")
    return int(whole)


def _nearest(ball: Any) -> Any:
    """To the nearest integer, ties to even; the hull where the ball holds a tie."""
    half = _flint().arb(1) / 2
    above, below = (ball + half).floor(), (ball - half).ceil()
    if above == below:
        return above
    even = [number for number in (above, below) if not (number.unique_fmpz() or 0) % 2]
    return even[0] if ball.is_exact() else above.union(below)


_ONE: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: x.exp(), "exp2": lambda x: _flint().arb(2) ** x, "expm1": lambda x: x.expm1(),
    "log": lambda x: x.log(), "log2": lambda x: x.log() / _flint().arb.const_log2(),
    "log10": lambda x: x.log() / _flint().arb.const_log10(), "log1p": lambda x: x.log1p(),
    "sqrt": lambda x: x.sqrt(), "rsqrt": lambda x: x.rsqrt(), "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()), "softplus": lambda x: x.exp().log1p(),
    "sin": lambda x: x.sin(), "cos": lambda x: x.cos(), "erf": lambda x: x.erf(),
    "sinh": lambda x: x.sinh(), "arctan": lambda x: x.atan(), "arcsin": lambda x: x.asin(),
    "arccos": lambda x: x.acos(), "arcsinh": lambda x: x.asinh(), "arctanh": lambda x: x.atanh(),
    "abs": abs, "negative": lambda x: -x, "positive": lambda x: +x, "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x, "sign": lambda x: x.sgn(), "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(), "rint": _nearest,
    "trunc": lambda x: x.sgn() * abs(x).floor(),
}  # fmt: skip
_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b, "power": lambda a, b: a**b, "maximum": lambda a, b: a.max(b),
    "minimum": lambda a, b: a.min(b),
}  # fmt: skip


@cache
def _system() -> type[Numbers]:
    """The number system of balls; python-flint is imported with it."""

    class Ball(Numbers):
        """An array of balls."""

        __slots__ = ()
        rules = {}  # noqa: RUF012 - declared in the base
        rank = 4
        algebra = Algebra(
            kind=_flint().arb,
            make=_flint().arb,
            one=_ONE,
            two=_TWO,
            less=_decided("less", lambda a, b: a < b, lambda a, b: a >= b),
            equal=_decided("equal", lambda a, b: a == b, lambda a, b: a != b),
            is_nan=lambda x: bool(x.is_nan()),
            is_finite=lambda x: bool(x.is_finite()),
            whole=_whole,
        )

    install(Ball)
    return Ball
