"""Number systems of the machine: one strategy object decides what a float is.

The machine asks for a function once per operation, when it is built; integers, booleans and
pointers never reach the arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from trivet.simulator import _dots, _functions, _rounding
from trivet.simulator.values import Value

Function = Callable[..., Value]


class Arithmetic(ABC):
    """What the machine needs to know about floats.

    ``plain`` tells that values are ordinary arrays, which ``map`` hands through, ``bitwise`` that
    the bits of floats in memory say all about them. ``sequential`` asks for reductions and scans
    with a user's combine function to run element by element, as Triton's interpreter does, instead
    of by halves; ``fused`` for a sum of a product as one operation.
    """

    name: str
    plain = False
    bitwise = True
    sequential = False
    fused = False

    @abstractmethod
    def map(self, function: Callable[..., Any], *values: Value) -> Value:
        """Apply an array function that only moves elements."""

    @abstractmethod
    def constant(self, value: float, element: str) -> Value:
        """Zero-dimensional value of a constant of the source."""

    def argument(self, value: float, element: str) -> Value:
        """Zero-dimensional value of a float argument of the launch."""
        return self.constant(value, element)

    @abstractmethod
    def load(self, stored: Any, element: str) -> Value:
        """Value of elements as they lie in memory; a fresh one, that may be written to."""

    @abstractmethod
    def store(self, value: Value, dtype: np.dtype[Any]) -> Any:
        """Elements as they lie in memory of storage type ``dtype``."""

    @abstractmethod
    def binary(self, name: str, element: str) -> Function | None:
        """Function of two values for operation ``name``, None when there is none."""

    @abstractmethod
    def unary(self, name: str, element: str) -> Function | None:
        """Function of one value for ``name`` (``exp``, ``sqrt``, ...), None when there is none."""

    @abstractmethod
    def fma(self, element: str) -> Function:
        """``a * b + c`` rounded once."""

    @abstractmethod
    def compare(self, predicate: str) -> Function:
        """Boolean array of an MLIR float predicate such as ``oeq``."""

    @abstractmethod
    def cast(self, source: str, target: str, rounding: str) -> Function:
        """Conversion between float elements; ``rounding`` is ``rtne`` or ``rtz``."""

    @abstractmethod
    def from_integer(self, element: str) -> Function:
        """Conversion of an integer array."""

    @abstractmethod
    def to_integer(self, dtype: type[np.generic]) -> Function:
        """Conversion to an integer array, towards zero."""

    @abstractmethod
    def bits(self, element: str) -> Function:
        """Integer array with the bit patterns of the values in the format ``element``."""

    @abstractmethod
    def from_bits(self, element: str) -> Function:
        """Values of bit patterns in the format ``element``."""

    @abstractmethod
    def dot(self, sources: tuple[str, str], element: str, precision: str) -> Function:
        """``a @ b + c`` over the last two axes; ``sources`` are the elements of a and b."""

    @abstractmethod
    def reduce(self, name: str, element: str) -> Function | None:
        """Function of (value, axis) that folds ``name`` along an axis, None for the generic one."""

    @abstractmethod
    def scan(self, name: str, element: str) -> Function | None:
        """Inclusive scan of ``name`` along an axis, None for the generic one."""


def fold_halves(function: Function, value: np.ndarray, axis: int) -> np.ndarray:
    """Fold an axis by halves: ``x[:n/2] op x[n/2:]`` until one element is left.

    The order depends on the extent alone, so the result does not depend on the machine. An odd
    extent (a broadcast tile never has one) leaves its last element to the next round.
    """
    head = (slice(None),) * axis
    extent = value.shape[axis]
    while extent > 1:
        half = extent // 2
        folded = function(value[(*head, slice(0, half))], value[(*head, slice(half, 2 * half))])
        if extent % 2:
            folded = np.concatenate([folded, value[(*head, slice(2 * half, extent))]], axis)
        value, extent = folded, folded.shape[axis]
    index = (*head, slice(0, 1))
    return value[index].reshape(value.shape[:axis] + value.shape[axis + 1 :])


class Native(Arithmetic):
    """IEEE arithmetic in the types of the IR, the same bits on every CPU.

    float32 functions are computed in float64 and rounded once; sums fold by halves; scans of
    known operations run in order; dots add one product after the other, in ascending k, to the
    accumulator. bfloat16 and float8 values are carried as rounded float32. ``tf32`` says how dots
    that may use TF32 narrow their inputs: ``round`` (nearest, ties away, as ``cvt.rna``) or
    ``truncate`` (as tensor cores that are handed float32 bits). With ``fused`` a product that only
    a sum uses is not rounded by itself, in dots neither.
    """

    name = "native"
    plain = True

    def __init__(self, tf32: str = "round", fused: bool = False) -> None:
        if tf32 not in _dots.TF32:
            raise ValueError(f"tf32 {tf32!r}: expected one of {', '.join(_dots.TF32)}")
        self._tf32 = tf32
        self.fused = fused

    def map(self, function: Callable[..., Any], *values: Value) -> Value:
        """Arrays are their own values."""
        return function(*values)

    def constant(self, value: float, element: str) -> Value:
        """Rounded to the element."""
        return self._round(element)(np.asarray(value, _rounding.CARRIER[element]))

    def load(self, stored: Any, element: str) -> Value:
        """Widened to the carrier, exactly."""
        carrier = _rounding.CARRIER[element]
        return stored if stored.dtype == carrier else stored.astype(carrier)

    def store(self, value: Value, dtype: np.dtype[Any]) -> Any:
        """Narrowed to the storage type; carried values are representable in it."""
        return value if value.dtype == dtype else value.astype(dtype)

    def binary(self, name: str, element: str) -> Function | None:
        """Rounded once to the element."""
        function = _functions.BINARY.get(name)
        if function is None:
            wide = _functions.WIDE_BINARY.get(name)
            return None if wide is None else self._through_float64(wide, element)
        return _then(function, element)

    def unary(self, name: str, element: str) -> Function | None:
        """Exact, or through float64 and rounded once."""
        exact = _functions.EXACT_UNARY.get(name)
        if exact is not None:
            return exact
        if name == "sqrt":
            return _then(np.sqrt, element)
        wide = _functions.WIDE_UNARY.get(name)
        return None if wide is None else self._through_float64(wide, element)

    def _through_float64(self, function: Function, element: str) -> Function:
        if element == "f64":
            return function
        narrow = self._round(element)
        carrier = _rounding.CARRIER[element]

        def once(*values: np.ndarray) -> np.ndarray:
            wide = function(*(value.astype(np.float64) for value in values))
            rounded: np.ndarray = narrow(wide.astype(carrier))
            return rounded

        return once

    def fma(self, element: str) -> Function:
        """Rounded once."""
        if element == "f64":
            return _functions.fma_float64
        return _then(_functions.fma_float32, element)

    def compare(self, predicate: str) -> Function:
        """IEEE comparison."""
        return _functions.COMPARISONS[predicate]

    def cast(self, source: str, target: str, rounding: str) -> Function:
        """Rounded as asked; float8 saturates."""
        carrier = _rounding.CARRIER[target]
        narrow = _rounding.rounder(target, rounding)
        if rounding == "rtz" and target == "f16":
            return _rounding.truncate_float16
        return lambda value: narrow(value.astype(carrier, copy=False))

    def _round(self, element: str) -> Function:
        return _rounding.rounder(element)

    def from_integer(self, element: str) -> Function:
        """Rounded to nearest even."""
        carrier, narrow = _rounding.CARRIER[element], self._round(element)
        return lambda value: narrow(value.astype(carrier))

    def to_integer(self, dtype: type[np.generic]) -> Function:
        """Towards zero, saturating, NaN to zero."""
        return lambda value: _rounding.saturate(value, dtype)

    def bits(self, element: str) -> Function:
        """Bits of the storage format."""
        return lambda value: _rounding.to_bits(value, element)

    def from_bits(self, element: str) -> Function:
        """Value of the bits of the storage format."""
        return lambda value: _rounding.from_bits(value, element)

    def dot(self, sources: tuple[str, str], element: str, precision: str) -> Function:
        """Ascending k, each product and each sum rounded, starting from the accumulator."""
        narrow = _dots.input_rounding(sources, precision, self._tf32)
        add = self.fma(element) if self.fused else None
        return lambda a, b, c: _dots.ascending(narrow(a), narrow(b), c, add)

    def reduce(self, name: str, element: str) -> Function | None:
        """By halves."""
        function = self.binary(name, element)
        if function is None:
            return None
        return lambda value, axis: fold_halves(function, value, axis)

    def scan(self, name: str, element: str) -> Function | None:
        """In order for sums and the like, else None."""
        function = _functions.BINARY.get(name)
        if element not in ("f32", "f64") or not isinstance(function, np.ufunc):
            return None
        return lambda value, axis: function.accumulate(value, axis=axis, dtype=value.dtype)


def _then(function: Function, element: str) -> Function:
    """``function`` followed by the rounding of elements that are carried in a wider type."""
    if element in ("f16", "f32", "f64"):
        return function
    narrow = _rounding.rounder(element)
    return lambda *values: narrow(function(*values))


class AsInterpreter(Native):
    """NumPy's own float32 functions, reductions and products, bit for bit those of Triton's
    interpreter (``TRITON_INTERPRET=1``) for float32, float64 and integers.
    """

    name = "as_interpreter"
    sequential = True

    def binary(self, name: str, element: str) -> Function | None:
        """NumPy's maximum and minimum, signs of zero included."""
        return _functions.PLAIN_BINARY.get(name) or super().binary(name, element)

    def unary(self, name: str, element: str) -> Function | None:
        """NumPy's float32 functions."""
        return _functions.PLAIN_UNARY.get(name) or super().unary(name, element)

    def to_integer(self, dtype: type[np.generic]) -> Function:
        """NumPy's conversion."""
        return lambda value: value.astype(dtype)

    def dot(self, sources: tuple[str, str], element: str, precision: str) -> Function:
        """``np.matmul``, then the accumulator."""

        def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
            total: np.ndarray = np.matmul(_contiguous(a), _contiguous(b), dtype=c.dtype) + c
            return total

        return product

    def reduce(self, name: str, element: str) -> Function | None:
        """``np.sum``, ``np.fmax.reduce`` and the like; anything else element by element."""
        if name == "arith.addf":
            return lambda value, axis: np.sum(_contiguous(value), axis=axis)
        function = self.binary(name, element)
        if name.startswith(("arith.max", "arith.min")) and isinstance(function, np.ufunc):
            return lambda value, axis: function.reduce(value, axis=axis)
        return None


def _contiguous(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value)


class Shadow(Arithmetic):
    """float64 throughout: what the kernel would compute without rounding.

    A constant has the value written in the source, that is the shortest decimal that rounds to
    it; scalar arguments keep their Python value; storage is never rounded. A constant that
    float32 does not hold exactly may have been written with more digits: with a ``nudge`` each
    such constant moves by half an ulp, up or down by the number given, so that runs with several
    nudges show what the missing digits can change.
    """

    name = "shadow"
    plain = True
    bitwise = False

    def __init__(self, nudge: int = 0) -> None:
        self._nudge = nudge

    def map(self, function: Callable[..., Any], *values: Value) -> Value:
        """Arrays are their own values."""
        return function(*values)

    def constant(self, value: float, element: str) -> Value:
        """The shortest decimal that rounds to a float32 constant."""
        if element == "f32" and np.isfinite(value):
            stored = np.float32(value)
            value = float(np.format_float_scientific(stored, unique=True))
            if self._nudge and value != float(stored):
                up = crc32(f"{self._nudge} {value!r}".encode()) & 1
                value *= 1 + (2.0**-24 if up else -(2.0**-24))
        return np.asarray(value, np.float64)

    def argument(self, value: float, element: str) -> Value:
        """The Python value, as it was passed."""
        return np.asarray(value, np.float64)

    def load(self, stored: Any, element: str) -> Value:
        """Widened to float64."""
        return stored if stored.dtype == np.float64 else stored.astype(np.float64)

    def store(self, value: Value, dtype: np.dtype[Any]) -> Any:
        """Never rounded."""
        return value

    def binary(self, name: str, element: str) -> Function | None:
        """In float64."""
        return _functions.BINARY.get(name) or _functions.WIDE_BINARY.get(name)

    def unary(self, name: str, element: str) -> Function | None:
        """In float64."""
        if name == "sqrt":
            return np.sqrt
        return _functions.EXACT_UNARY.get(name) or _functions.WIDE_UNARY.get(name)

    def fma(self, element: str) -> Function:
        """In float64."""
        return lambda a, b, c: a * b + c

    def compare(self, predicate: str) -> Function:
        """IEEE comparison."""
        return _functions.COMPARISONS[predicate]

    def cast(self, source: str, target: str, rounding: str) -> Function:
        """Nothing to do."""
        return lambda value: value

    def from_integer(self, element: str) -> Function:
        """In float64."""
        return lambda value: value.astype(np.float64)

    def to_integer(self, dtype: type[np.generic]) -> Function:
        """Towards zero, saturating, NaN to zero."""
        return lambda value: _rounding.saturate(value, dtype)

    def bits(self, element: str) -> Function:
        """Bits of the value rounded to the format, as the kernel asks for them."""
        narrow = Native().cast("f64", element, "rtne")
        return lambda value: _rounding.to_bits(narrow(value), element)

    def from_bits(self, element: str) -> Function:
        """Value of the bits."""
        return lambda value: _rounding.from_bits(value, element).astype(np.float64)

    def dot(self, sources: tuple[str, str], element: str, precision: str) -> Function:
        """``np.matmul`` in float64."""
        return lambda a, b, c: np.matmul(a, b) + c

    def reduce(self, name: str, element: str) -> Function | None:
        """By halves."""
        function = self.binary(name, element)
        if function is None:
            return None
        return lambda value, axis: fold_halves(function, value, axis)

    def scan(self, name: str, element: str) -> Function | None:
        """In order, or None."""
        function = self.binary(name, element)
        if not isinstance(function, np.ufunc):
            return None
        return lambda value, axis: function.accumulate(value, axis=axis)
