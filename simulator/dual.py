"""Dual numbers: the directional derivative of a kernel, by the kernel's own operations.

A value carries its tangent, both in float64. What is not differentiable takes one side: the larger
operand of a maximum (the first where equal), zero at the kink of an absolute value and for
everything that is constant in pieces (floor, rounding, comparisons).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivet.simulator.arithmetic import Arithmetic, Function, Shadow, fold_halves
from trivet.simulator.values import Value

STORED = np.dtype([("value", np.float64), ("tangent", np.float64)])
"""How dual numbers lie in memory."""

_PLAIN = Shadow()
_Array = np.ndarray
_LN2, _LN10 = math.log(2), math.log(10)


@dataclass(eq=False)
class Dual:
    """A value and its derivative along the direction asked for; float64, same shape."""

    value: _Array
    tangent: _Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return self.value.shape


def _digamma(x: float) -> float:
    """Derivative of lgamma: recurrence up to 10, then the asymptotic series (DLMF 5.11.2)."""
    if x <= 0 and x == math.floor(x):
        return math.nan
    if x < 0:
        return _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    total = 0.0
    while x < 10:
        total -= 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return total + math.log(x) - 0.5 / x - series


digamma = np.vectorize(_digamma, otypes=[np.float64])

_UNARY: dict[str, Callable[[_Array, _Array], Any]] = {
    "absf": lambda x, y: np.sign(x),
    "fabs": lambda x, y: np.sign(x),
    "negf": lambda x, y: -1.0,
    **dict.fromkeys(
        ("floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round", "logb"),
        lambda x, y: 0.0,
    ),
    "sqrt": lambda x, y: 0.5 / y,
    "rsqrt": lambda x, y: -0.5 * y / x,
    "rcp": lambda x, y: -y * y,
    "cbrt": lambda x, y: 1 / (3 * y * y),
    "rcbrt": lambda x, y: -y / (3 * x),
    "exp": lambda x, y: y,
    "exp2": lambda x, y: _LN2 * y,
    "exp10": lambda x, y: _LN10 * y,
    "expm1": lambda x, y: np.exp(x),
    "log": lambda x, y: 1 / x,
    "log2": lambda x, y: 1 / (_LN2 * x),
    "log10": lambda x, y: 1 / (_LN10 * x),
    "log1p": lambda x, y: 1 / (1 + x),
    "sin": lambda x, y: np.cos(x),
    "cos": lambda x, y: -np.sin(x),
    "tan": lambda x, y: 1 + y * y,
    "sinpi": lambda x, y: np.pi * np.cos(np.pi * x),
    "cospi": lambda x, y: -np.pi * np.sin(np.pi * x),
    "asin": lambda x, y: 1 / np.sqrt(1 - x * x),
    "acos": lambda x, y: -1 / np.sqrt(1 - x * x),
    "atan": lambda x, y: 1 / (1 + x * x),
    "sinh": lambda x, y: np.cosh(x),
    "cosh": lambda x, y: np.sinh(x),
    "tanh": lambda x, y: 1 - y * y,
    "asinh": lambda x, y: 1 / np.sqrt(x * x + 1),
    "acosh": lambda x, y: 1 / np.sqrt(x * x - 1),
    "atanh": lambda x, y: 1 / (1 - x * x),
    "erf": lambda x, y: 2 / math.sqrt(math.pi) * np.exp(-x * x),
    "erfc": lambda x, y: -2 / math.sqrt(math.pi) * np.exp(-x * x),
    "tgamma": lambda x, y: y * digamma(x),
    "lgamma": lambda x, y: digamma(x),
    "erfcx": lambda x, y: 2 * x * y - 2 / math.sqrt(math.pi),
    "erfinv": lambda x, y: math.sqrt(math.pi) / 2 * np.exp(y * y),
    "erfcinv": lambda x, y: -math.sqrt(math.pi) / 2 * np.exp(y * y),
    "normcdf": lambda x, y: np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "normcdfinv": lambda x, y: np.exp(y * y / 2) * math.sqrt(2 * math.pi),
    "cyl_bessel_i0": lambda x, y: _wide("cyl_bessel_i1", x),
    "cyl_bessel_i1": lambda x, y: _wide("cyl_bessel_i0", x) - y / x,
    "j0": lambda x, y: -_wide("j1", x),
    "j1": lambda x, y: _wide("j0", x) - y / x,
    "y0": lambda x, y: -_wide("y1", x),
    "y1": lambda x, y: _wide("y0", x) - y / x,
    "saturate": lambda x, y: np.where((x > 0) & (x < 1), 1.0, 0.0),
}
"""Derivative of each function by x and its value y."""


def _wide(name: str, x: _Array) -> Any:
    """Another function of x, in float64."""
    function = Shadow().unary(name, "f64")
    assert function is not None
    return function(x)


def _larger(x: _Array, y: _Array, dx: _Array, dy: _Array) -> _Array:
    return np.where((x >= y) | np.isnan(y), dx, dy)


def _smaller(x: _Array, y: _Array, dx: _Array, dy: _Array) -> _Array:
    return np.where((x <= y) | np.isnan(y), dx, dy)


def _power(x: _Array, y: _Array, dx: _Array, dy: _Array) -> _Array:
    by_base = np.where(dx == 0, 0.0, y * np.power(x, y - 1) * dx)
    by_exponent = np.where(dy == 0, 0.0, np.power(x, y) * np.log(x) * dy)
    total: _Array = by_base + by_exponent
    return total


def _quotient(x: _Array, y: _Array, dx: _Array, dy: _Array) -> _Array:
    total: _Array = (dx - x / y * dy) / y
    return total


_BINARY: dict[str, Callable[[_Array, _Array, _Array, _Array], Any]] = {
    "arith.addf": lambda x, y, dx, dy: dx + dy,
    "arith.subf": lambda x, y, dx, dy: dx - dy,
    "arith.mulf": lambda x, y, dx, dy: dx * y + x * dy,
    "arith.divf": _quotient,
    "tt.precise_divf": _quotient,
    "tt.approx_divf": _quotient,
    "arith.remf": lambda x, y, dx, dy: dx - np.trunc(x / y) * dy,
    "arith.maxnumf": _larger,
    "arith.maximumf": _larger,
    "arith.minnumf": _smaller,
    "arith.minimumf": _smaller,
    "math.copysign": lambda x, y, dx, dy: np.where(np.signbit(x) == np.signbit(y), dx, -dx),
    "math.powf": _power,
    "math.atan2": lambda x, y, dx, dy: (y * dx - x * dy) / (x * x + y * y),
    "hypot": lambda x, y, dx, dy: (x * dx + y * dy) / np.hypot(x, y),
    "rhypot": lambda x, y, dx, dy: -(x * dx + y * dy) / np.hypot(x, y) ** 3,
    "ldexp": lambda x, y, dx, dy: np.ldexp(dx, np.asarray(y).astype(np.int64)),
    "nextafter": lambda x, y, dx, dy: dx,
    "fdim": lambda x, y, dx, dy: np.where(x > y, dx - dy, 0.0),
}
"""Derivative of each function of x and y along dx and dy."""


class DualArithmetic(Arithmetic):
    """Forward mode: what a kernel makes of its inputs, and how that changes along a direction."""

    name = "dual"
    bitwise = False

    def map(self, function: Callable[..., Any], *values: Value) -> Value:
        """Move values and tangents alike."""
        value = function(*(number.value for number in values))
        return Dual(value, function(*(number.tangent for number in values)))

    def constant(self, value: float, element: str) -> Value:
        """The value written in the source; it does not change."""
        return Dual(_PLAIN.constant(value, element), np.asarray(0.0))

    def argument(self, value: float, element: str) -> Value:
        """The Python value; it does not change."""
        return Dual(np.asarray(value, np.float64), np.asarray(0.0))

    def load(self, stored: Any, element: str) -> Value:
        """Numbers of STORED memory; plain memory has no tangent."""
        if stored.dtype == STORED:
            return Dual(stored["value"].copy(), stored["tangent"].copy())
        value = stored.astype(np.float64)
        return Dual(value, np.zeros(value.shape))

    def store(self, value: Value, dtype: np.dtype[Any]) -> Any:
        """Numbers as they lie in STORED memory, the value alone in plain memory."""
        if dtype != STORED:
            return value.value
        stored = np.empty(value.shape, STORED)
        stored["value"], stored["tangent"] = value.value, value.tangent
        return stored

    def binary(self, name: str, element: str) -> Function | None:
        """Value in float64, derivative by the rule."""
        function, rule = _PLAIN.binary(name, element), _BINARY.get(name)
        if function is None or rule is None:
            return None
        return lambda a, b: _dual(
            function(a.value, b.value), rule(a.value, b.value, a.tangent, b.tangent)
        )

    def unary(self, name: str, element: str) -> Function | None:
        """Value in float64, derivative by the chain rule; a constant stays one at a pole."""
        function, rule = _PLAIN.unary(name, element), _UNARY.get(name)
        if function is None or rule is None:
            return None

        def apply(number: Dual) -> Dual:
            value = function(number.value)
            slope = rule(number.value, value)
            return _dual(value, np.where(number.tangent == 0, 0.0, slope * number.tangent))

        return apply

    def fma(self, element: str) -> Function:
        """``a * b + c``."""
        return lambda a, b, c: _dual(
            a.value * b.value + c.value, a.tangent * b.value + a.value * b.tangent + c.tangent
        )

    def compare(self, predicate: str) -> Function:
        """Of the values."""
        function = _PLAIN.compare(predicate)
        return lambda a, b: function(a.value, b.value)

    def cast(self, source: str, target: str, rounding: str) -> Function:
        """Nothing to do."""
        return lambda number: number

    def from_integer(self, element: str) -> Function:
        """A constant."""
        return lambda value: Dual(value.astype(np.float64), np.zeros(value.shape))

    def to_integer(self, dtype: type[np.generic]) -> Function:
        """Of the value."""
        function = _PLAIN.to_integer(dtype)
        return lambda number: function(number.value)

    def bits(self, element: str) -> Function:
        """Bits of the value."""
        function = _PLAIN.bits(element)
        return lambda number: function(number.value)

    def from_bits(self, element: str) -> Function:
        """A constant."""
        function = _PLAIN.from_bits(element)
        return lambda value: Dual(function(value), np.zeros(value.shape))

    def dot(self, sources: tuple[str, str], element: str, precision: str) -> Function:
        """``a @ b + c``."""
        return lambda a, b, c: _dual(
            np.matmul(a.value, b.value) + c.value,
            np.matmul(a.tangent, b.value) + np.matmul(a.value, b.tangent) + c.tangent,
        )

    def reduce(self, name: str, element: str) -> Function | None:
        """Sums at once; anything else by the generic fold."""
        if name != "arith.addf":
            return None
        return lambda number, axis: Dual(
            fold_halves(np.add, number.value, axis), fold_halves(np.add, number.tangent, axis)
        )

    def scan(self, name: str, element: str) -> Function | None:
        """Sums at once; anything else by the generic scan."""
        if name != "arith.addf":
            return None
        return lambda number, axis: Dual(
            np.add.accumulate(number.value, axis), np.add.accumulate(number.tangent, axis)
        )


def _dual(value: Any, tangent: Any) -> Dual:
    value = np.asarray(value)
    return Dual(value, np.broadcast_to(np.asarray(tangent, np.float64), value.shape))
