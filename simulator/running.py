"""Running errors: a kernel's float64 shadow with a bound on what its rounding can have done.

Every operation of the launch hands on the errors of its operands and adds its own rounding under
the precision that a contract declares: float32, the accumulator's format for sums and products of
matrices, and a narrower format only where it is declared. A cast to a format that is not declared
counts as none, so that what it does to the native run lies outside the bound.

Where a decision (a comparison, a conversion to an integer, bits) depends on rounding, there is no
bound; ``Running.doubt`` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivet.oracles._formats import FORMATS, Format
from trivet.oracles._precision import Precision
from trivet.simulator import _functions
from trivet.simulator.arithmetic import Arithmetic, Function, Native, Shadow
from trivet.simulator.values import Value

STORED = np.dtype([("value", np.float64), ("error", np.float64)])
"""How numbers with running errors lie in memory."""

_PLAIN, _NATIVE = Shadow(), Native()
_Array = np.ndarray
_FORMATS = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16"} | {
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
}
# The float64 rounding of value and error themselves, a few thousand operations deep, and that of
# functions which are computed in float64 before they round.
_SLACK = 1 + 2.0**-10
# Operands of a dot that may be truncated to tf32 lose 2^-10 each.
_TF32 = 2 * 2.0**-10 + 2.0**-20
_STEPS = frozenset({"floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round", "logb"})
_SIGNED = frozenset({"absf", "fabs", "negf"})
_EXTREMES = {
    "arith.maxnumf": 1.0,
    "arith.maximumf": 1.0,
    "arith.minnumf": -1.0,
    "arith.minimumf": -1.0,
}
_CORNERED = frozenset({"math.powf", "math.atan2", "hypot", "rhypot", "fdim", "ldexp"})


@dataclass(eq=False)
class Number:
    """A value and how far the native run may lie from it; float64, same shape."""

    value: _Array
    error: _Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return self.value.shape


class Running(Arithmetic):
    """Running errors under one ``precision``; ``doubt`` says what depended on rounding."""

    name = "running"
    bitwise = False

    def __init__(self, precision: Precision) -> None:
        accumulator = FORMATS[precision.accumulate]
        single = FORMATS["float32"]
        self.doubt = ""
        self._sums = max((accumulator, single), key=lambda known: known.unit)
        self._declared = {*precision.storage.values(), precision.accumulate}
        self._tf32 = "tf32" in precision.approx

    def _format(self, element: str) -> Format:
        """The format that results of ``element`` round to: float32 for a narrow undeclared one."""
        name = _FORMATS[element]
        return FORMATS[name if name == "float64" or name in self._declared else "float32"]

    def _sum_format(self, element: str) -> Format:
        known = self._format(element)
        return known if known.name == "float64" else max(known, self._sums, key=lambda f: f.unit)

    def map(self, function: Callable[..., Any], *values: Value) -> Value:
        """Move values and errors alike."""
        value = function(*(number.value for number in values))
        return Number(value, function(*(number.error for number in values)))

    def constant(self, value: float, element: str) -> Value:
        """The value written in the source; half an ulp off where it may have had more digits."""
        written = _PLAIN.constant(value, element)
        stored = np.asarray(_NATIVE.constant(value, element), np.float64)
        lost = FORMATS[_FORMATS[element]].unit * np.abs(stored)
        return Number(written, np.where(_distance(written, stored) > 0, lost, 0.0))

    def argument(self, value: float, element: str) -> Value:
        """The Python value, and what the launch's argument lacks of it."""
        given = np.asarray(value, np.float64)
        with np.errstate(over="ignore"):
            passed = given if element == "f64" else given.astype(np.float32).astype(np.float64)
        return Number(given, _distance(given, passed))

    def load(self, stored: Any, element: str) -> Value:
        """Numbers of STORED memory; plain memory is exact."""
        if stored.dtype == STORED:
            return Number(stored["value"].copy(), stored["error"].copy())
        value = stored.astype(np.float64)
        return Number(value, np.zeros(value.shape))

    def store(self, value: Value, dtype: np.dtype[Any]) -> Any:
        """Numbers as they lie in STORED memory, the value alone in plain memory."""
        if dtype != STORED:
            return value.value
        stored = np.empty(np.shape(value.value), STORED)
        stored["value"], stored["error"] = value.value, value.error
        return stored

    def binary(self, name: str, element: str) -> Function | None:
        """Value in float64; the operands' errors and one rounding."""
        function = _PLAIN.binary(name, element)
        if name in _EXTREMES and function is not None:
            return _extreme(function, _EXTREMES[name])
        rule = _corners if name in _CORNERED else _BINARY.get(name)
        if function is None or rule is None:
            return None
        sums = name in ("arith.addf", "arith.subf")
        format = self._sum_format(element) if sums else self._format(element)

        def apply(a: Number, b: Number) -> Number:
            with np.errstate(all="ignore"):
                value = np.asarray(function(a.value, b.value))
                return _rounded(value, rule(function, value, a, b), format)

        return apply

    def unary(self, name: str, element: str) -> Function | None:
        """Value in float64; how far the argument's error moves it, and one rounding."""
        function = _PLAIN.unary(name, element)
        if function is None:
            return None
        format = self._format(element)

        def apply(number: Number) -> Number:
            with np.errstate(all="ignore"):
                value = np.asarray(function(number.value))
                if name in _SIGNED:
                    return Number(value, number.error)
                moved = _moved(function, value, number)
                if name in _STEPS:
                    return Number(value, np.where(moved > 0, np.inf, 0.0))
                return _rounded(value, moved, format)

        return apply

    def fma(self, element: str) -> Function:
        """``a * b + c`` with one rounding."""
        format = self._sum_format(element)

        def apply(a: Number, b: Number, c: Number) -> Number:
            with np.errstate(all="ignore"):
                product = a.value * b.value
                error = _product(np.multiply, product, a, b) + c.error
                # In float64 the product rounds, so that the sum is never known to be exact.
                value = np.asarray(product + c.value)
                return _rounded(value, error, format, exact=False)

        return apply

    def compare(self, predicate: str) -> Function:
        """Of the values; in doubt where their errors could turn it."""
        function = _PLAIN.compare(predicate)

        def apply(a: Number, b: Number) -> Any:
            with np.errstate(all="ignore"):
                reach = a.error + b.error
                if ((np.abs(a.value - b.value) <= reach) & (reach > 0)).any():
                    self.doubt = "a comparison in the kernel depends on rounding"
            return function(a.value, b.value)

        return apply

    def cast(self, source: str, target: str, rounding: str) -> Function:
        """One rounding where the target is declared, or float32; any other counts as none."""
        wider = FORMATS[_FORMATS[target]].unit <= FORMATS[_FORMATS[source]].unit
        declared = target == "f32" or _FORMATS[target] in self._declared
        if wider or not declared:
            return lambda number: number
        format = FORMATS[_FORMATS[target]]
        times = 2.0 if rounding == "rtz" else 1.0
        return lambda number: _rounded(number.value, number.error, format, times=times)

    def from_integer(self, element: str) -> Function:
        """One rounding."""
        format = self._format(element)
        return lambda value: _rounded(value.astype(np.float64), np.zeros(value.shape), format)

    def to_integer(self, dtype: type[np.generic]) -> Function:
        """Of the value; in doubt where the error reaches another integer."""
        function = _PLAIN.to_integer(dtype)

        def apply(number: Number) -> Any:
            ends = (function(number.value + number.error), function(number.value - number.error))
            if (ends[0] != ends[1]).any():
                self.doubt = "a conversion to an integer depends on rounding"
            return function(number.value)

        return apply

    def bits(self, element: str) -> Function:
        """Bits of the value; in doubt where it is not exact."""
        function = _PLAIN.bits(element)

        def apply(number: Number) -> Any:
            if (number.error > 0).any():
                self.doubt = "the kernel reads the bits of a rounded number"
            return function(number.value)

        return apply

    def from_bits(self, element: str) -> Function:
        """Exact."""
        function = _PLAIN.from_bits(element)

        def apply(value: Any) -> Number:
            known = function(value)
            return Number(known, np.zeros(known.shape))

        return apply

    def dot(self, sources: tuple[str, str], element: str, precision: str) -> Function:
        """``a @ b + c`` in any order: each term passes at most k + 1 roundings."""
        unit = self._sum_format(element).unit
        narrow = _TF32 if self._tf32 and precision == "tf32" and sources == ("f32", "f32") else 0.0

        def apply(a: Number, b: Number, c: Number) -> Number:
            with np.errstate(all="ignore"):
                magnitude = np.abs(a.value) @ np.abs(b.value)
                reach = (np.abs(a.value) + a.error) @ (np.abs(b.value) + b.error)
                count = a.shape[-1] + 1
                own = math.expm1(count * math.log1p(unit)) + narrow
                whole = reach + np.abs(c.value) + c.error
                error = reach - magnitude + c.error + own * whole + count * 2.0**-149
                value = a.value @ b.value + c.value
            return Number(value, _settled(value, error * _SLACK))

        return apply

    def reduce(self, name: str, element: str) -> Function | None:
        """Operation by operation, as the native run folds."""
        return None

    def scan(self, name: str, element: str) -> Function | None:
        """In order for sums and the like, as the native run, else None."""
        function = self.binary(name, element)
        if not isinstance(_functions.BINARY.get(name), np.ufunc) or function is None:
            return None
        combine = function

        def apply(number: Number, axis: int) -> Number:
            parts = [_at(number, axis, 0)]
            for place in range(1, number.shape[axis]):
                parts.append(combine(parts[-1], _at(number, axis, place)))
            columns = ([p.value for p in parts], [p.error for p in parts])
            return Number(*(np.stack(column, axis) for column in columns))

        return apply


def _at(number: Number, axis: int, place: int) -> Number:
    return Number(number.value.take(place, axis), number.error.take(place, axis))


def _distance(first: _Array, second: _Array) -> _Array:
    with np.errstate(invalid="ignore"):
        apart = np.abs(first - second)
    return np.asarray(np.where((first == second) | np.isnan(first), 0.0, apart))


def _rounded(
    value: _Array, error: Any, format: Format, *, exact: bool = True, times: float = 1.0
) -> Number:
    """A result that rounds to ``format`` once; not at all where it is a float32 number anyway."""
    with np.errstate(all="ignore"):
        reach = np.abs(value) + error
        unit = format.unit if format.name != "float64" else 2 * format.unit
        own = times * (unit * reach + format.subnormal / 2)
        if exact and format.name == "float32":
            known = (error == 0) & (value.astype(np.float32) == value)
            own = np.where(known, 0.0, own)
        total = np.where(own == 0, error, (error + own) * _SLACK)
        beyond = (reach > format.largest) & np.isfinite(value)
    return Number(value, _settled(value, np.where(beyond, np.inf, total)))


def _settled(value: _Array, error: Any) -> _Array:
    """Infinite where nothing is known; 0 for a NaN or infinity of exact operands."""
    known = np.asarray(np.where(np.isnan(error), np.where(np.isfinite(value), np.inf, 0.0), error))
    return np.broadcast_to(known, np.shape(value))


def _moved(function: Function, value: _Array, number: Number) -> _Array:
    """How far ``function`` moves within the error of its argument, by the interval's ends.

    A function that turns inside so short an interval is flattest there: an end lies further off.
    """
    ends = (function(number.value - number.error), function(number.value + number.error))
    apart = np.maximum(*(np.abs(end - value) for end in ends))
    lost = ~np.isfinite(apart) & (number.error > 0)
    return np.where(number.error == 0, 0.0, np.where(lost, np.inf, apart))


def _extreme(function: Function, sign: float) -> Function:
    """Maximum (sign 1) or minimum (-1): the winner's error where the winner is certain."""

    def apply(a: Number, b: Number) -> Number:
        value = np.asarray(function(a.value, b.value))
        with np.errstate(all="ignore"):
            ahead, margin = sign * (a.value - b.value), a.error + b.error
        error = np.where(ahead > margin, a.error, np.maximum(a.error, b.error))
        return Number(value, np.where(ahead < -margin, b.error, error))

    return apply


def _corners(function: Function, value: _Array, a: Number, b: Number) -> _Array:
    """How far a function that is monotone in each operand moves within both errors."""
    apart = np.zeros(value.shape)
    for one in (a.value - a.error, a.value + a.error):
        for other in (b.value - b.error, b.value + b.error):
            apart = np.maximum(apart, np.abs(function(one, other) - value))
    exact = (a.error == 0) & (b.error == 0)
    return np.where(exact, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _product(function: Function, value: _Array, a: Number, b: Number) -> _Array:
    error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    return np.where((a.error == 0) & (b.error == 0), 0.0, error)


def _quotient(function: Function, value: _Array, a: Number, b: Number) -> _Array:
    least = np.abs(b.value) - b.error
    error = (a.error + np.abs(value) * b.error) / np.where(least > 0, least, 1.0)
    exact = (a.error == 0) & (b.error == 0)
    return np.where(exact, 0.0, np.where(least > 0, error, np.inf))


def _remainder(function: Function, value: _Array, a: Number, b: Number) -> _Array:
    exact = (a.error == 0) & (b.error == 0)
    return np.where(exact, 0.0, np.inf)


def _sign_of(function: Function, value: _Array, a: Number, b: Number) -> _Array:
    return np.where((b.error > 0) & (np.abs(b.value) <= b.error), np.inf, a.error)


def _total(function: Function, value: _Array, a: Number, b: Number) -> _Array:
    return np.asarray(a.error + b.error)


_BINARY: dict[str, Callable[[Function, _Array, Number, Number], _Array]] = {
    "arith.addf": _total,
    "arith.subf": _total,
    "arith.mulf": _product,
    "arith.divf": _quotient,
    "tt.precise_divf": _quotient,
    "tt.approx_divf": _quotient,
    "arith.remf": _remainder,
    "math.copysign": _sign_of,
}
