"""Array functions behind the float operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from trivet.simulator._special import SPECIAL_UNARY

Function = Callable[..., Any]
_LARGE = 2.0**960


def _fix_zeros(result: np.ndarray, a: np.ndarray, b: np.ndarray, positive: bool) -> np.ndarray:
    """Give a zero result the sign that IEEE 754-2019 wants.

    NumPy's vector and scalar loops disagree about max(-0.0, 0.0), so the position of an element in
    its array would show in the result.
    """
    zero = result == 0
    if not zero.any():
        return result
    both = np.signbit(a) & np.signbit(b) if positive else np.signbit(a) | np.signbit(b)
    signed = np.where(both, np.asarray(-0.0, result.dtype), np.asarray(0.0, result.dtype))
    return np.where(zero, signed, result)


def maximum_number(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Larger operand; a NaN loses to a number; +0 beats -0."""
    return _fix_zeros(np.fmax(a, b), a, b, True)


def minimum_number(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Smaller operand; a NaN loses to a number; -0 beats +0."""
    return _fix_zeros(np.fmin(a, b), a, b, False)


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Larger operand; a NaN wins; +0 beats -0."""
    return _fix_zeros(np.maximum(a, b), a, b, True)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Smaller operand; a NaN wins; -0 beats +0."""
    return _fix_zeros(np.minimum(a, b), a, b, False)


def _each(function: Callable[[float], float]) -> Function:
    """Elementwise float64 version of a function of the standard library."""

    def guarded(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return np.vectorize(guarded, otypes=[np.float64])


erf = _each(math.erf)


def _gamma(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else math.gamma(x)


def _log_gamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _round_half_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    rounded: np.ndarray = whole + np.copysign(np.abs(x - whole) >= 0.5, x)
    return rounded


EXACT_UNARY: dict[str, Function] = {
    "absf": np.abs,
    "fabs": np.abs,
    "negf": np.negative,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "roundeven": np.rint,
    "round": _round_half_away,
}
"""Functions whose result is exact in any format."""

WIDE_UNARY: dict[str, Function] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "logb": lambda x: np.frexp(x)[1] - 1.0,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": erf,
    "erfc": _each(math.erfc),
    "tgamma": _each(_gamma),
    "lgamma": _each(_log_gamma),
    "cbrt": np.cbrt,
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "rcp": lambda x: 1.0 / x,
    **SPECIAL_UNARY,
}
"""Functions computed in float64 and rounded once."""

BINARY: dict[str, Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "tt.precise_divf": np.divide,
    "tt.approx_divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maxnumf": maximum_number,
    "arith.minnumf": minimum_number,
    "arith.maximumf": maximum,
    "arith.minimumf": minimum,
    "math.copysign": np.copysign,
    "nextafter": np.nextafter,
}
"""Functions of two values that round once in any format."""

WIDE_BINARY: dict[str, Function] = {
    "math.powf": np.power,
    "math.atan2": np.arctan2,
    "hypot": np.hypot,
    "ldexp": lambda a, b: np.ldexp(a, b.astype(np.int32)),
    "rhypot": lambda a, b: 1.0 / np.hypot(a, b),
    "fdim": lambda a, b: np.where(a > b, a - b, np.where(np.isnan(a + b), np.nan, 0.0)),
}
"""Functions of two values computed in float64 and rounded once."""

PLAIN_BINARY: dict[str, Function] = {
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
}
"""Functions as Triton's interpreter calls them, where they differ from ours."""

PLAIN_UNARY: dict[str, Function] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": lambda x: erf(x).astype(x.dtype),
}

COMPARISONS: dict[str, Function] = {
    "oeq": np.equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "olt": np.less,
    "ole": np.less_equal,
    "one": lambda a, b: (a < b) | (a > b),
    "une": np.not_equal,
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
}


def _odd_sum(product: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``product + c`` in float64, rounded to odd: a second rounding then rounds correctly."""
    total: np.ndarray = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)
    inexact = (error != 0) & np.isfinite(total)
    if not inexact.any():
        return total
    bits = total.view(np.int64)
    even = inexact & ((bits & 1) == 0)
    towards = np.where((error > 0) == (total > 0), 1, -1)
    odd: np.ndarray = np.where(even, bits + towards, bits).view(np.float64)
    return odd


def fma_float32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``a * b + c`` rounded once, for float32 and narrower."""
    product = np.asarray(a.astype(np.float64) * b.astype(np.float64))
    return np.asarray(_odd_sum(product, c.astype(np.float64))).astype(c.dtype)


def fma_float64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``a * b + c`` in float64 rounded once (Boldo and Melquiond, IEEE Trans. Computers 57, 2008).

    Where a part of the product would over- or underflow, exact fractions take over.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    high = a * b
    upper, lower = _exact_sum(c, _product_error(a, b, high))
    total, rest = _exact_sum(high, upper)
    result = np.asarray(total + _odd_sum(lower, rest))
    size = np.maximum(np.maximum(np.abs(a), np.abs(b)), np.maximum(np.abs(high), np.abs(c)))
    safe = (size < _LARGE) & (np.abs(high) > 1 / _LARGE)
    if safe.all():
        return result
    result = np.where(safe, result, high + c)
    doubtful = ~safe & np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0)
    for lane in map(tuple, np.argwhere(doubtful)):
        result[lane] = _fma_exactly(float(a[lane]), float(b[lane]), float(c[lane]))
    return result


def _fma_exactly(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    # A sum that is zero is positive; one that underflows to zero keeps its sign.
    sign = -1.0 if exact < 0 else 1.0
    try:
        return sign * float(abs(exact))
    except OverflowError:
        return sign * math.inf


def _exact_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounded sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product_error(a: np.ndarray, b: np.ndarray, product: np.ndarray) -> np.ndarray:
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    cross = (a_high * b_high - product) + a_high * b_low + a_low * b_high
    error: np.ndarray = cross + a_low * b_low
    return error


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high
