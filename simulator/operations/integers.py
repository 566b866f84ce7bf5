"""Integer and boolean operations; all wrap around."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation
from trivet.simulator.operations.registry import Handler, pure
from trivet.simulator.values import UNSIGNED

Array = np.ndarray
Function = Callable[..., Array]


def _truncating_division(a: Array, b: Array) -> Array:
    """Division towards zero; by zero it gives 0, as no lane that is used may do it."""
    quotient: Array = (a - np.fmod(a, b)) // b
    return quotient


def _single_bit(function: Function) -> Function:
    """Arithmetic of i1, which wraps as any other integer."""

    def wrapped(a: Array, b: Array) -> Array:
        bits: Array = (function(a.astype(np.int8), b.astype(np.int8)) & 1).astype(np.bool_)
        return bits

    return wrapped


def _unsigned(function: Function) -> Function:
    def reinterpreted(a: Array, b: Array) -> Array:
        kind = UNSIGNED[a.dtype]
        result: Array = function(a.view(kind), b.view(kind))
        return result if result.dtype == np.bool_ else result.view(a.dtype)

    return reinterpreted


def _shift_limit(function: Function) -> Function:
    """Shift whose amounts are unsigned; NumPy shifts everything out beyond the width."""

    def shifted(a: Array, b: Array) -> Array:
        width = 8 * a.itemsize
        out_of_range = (b < 0) | (b >= width)
        if not out_of_range.any():
            return function(a, b)
        return function(a, np.where(out_of_range, width - 1, b).astype(b.dtype))

    return shifted


def _multiply_high(a: Array, b: Array) -> Array:
    if a.itemsize < 8:
        wide = a.astype(np.uint64) * b.astype(np.uint64)
        high: Array = (wide >> np.uint64(8 * a.itemsize)).astype(a.dtype)
        return high
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & low, a >> shift, b & low, b >> shift
    middle = a_high * b_low + (a_low * b_low >> shift)
    carry = (a_low * b_high + (middle & low)) >> shift
    product: Array = a_high * b_high + (middle >> shift) + carry
    return product


_BINARY: dict[str, Function] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": _truncating_division,
    "arith.remsi": np.fmod,
    "arith.divui": _unsigned(np.floor_divide),
    "arith.remui": _unsigned(np.remainder),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.shli": np.left_shift,
    "arith.shrsi": _shift_limit(np.right_shift),
    "arith.shrui": _unsigned(np.right_shift),
    "tt.mulhiui": _unsigned(_multiply_high),
}

_ON_BITS = frozenset({"arith.addi", "arith.subi", "arith.muli"})

_ORDER: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
    "ult": _unsigned(np.less),
    "ule": _unsigned(np.less_equal),
    "ugt": _unsigned(np.greater),
    "uge": _unsigned(np.greater_equal),
}


def integer_function(name: str, element: str) -> Function | None:
    """Array function of an integer operation of two operands, None when there is none."""
    function = _BINARY.get(name)
    if function is not None and element == "i1" and name in _ON_BITS:
        return _single_bit(function)
    return function


@pure(*_BINARY)
def build_binary(operation: Operation, compiler: Compiler) -> Handler:
    """Integer operation of two operands."""
    return integer_function(operation.name, operation.result_types[0].element) or np.add


@pure("arith.cmpi")
def build_compare(operation: Operation, compiler: Compiler) -> Handler:
    """Integer comparison; signed predicates of i1 order true below false."""
    predicate = operation.words[0]
    if operation.operand_types[0].element == "i1" and predicate[0] == "s":
        order = _ORDER[predicate]
        return lambda a, b: order(-a.astype(np.int8), -b.astype(np.int8))
    return _ORDER[predicate]


def _bits(value: Array) -> Array:
    return value.view(UNSIGNED[value.dtype])


def _leading_zeros(value: Array) -> Array:
    bits = _bits(value).copy()
    width = 8 * value.itemsize
    for distance in (1, 2, 4, 8, 16, 32):
        if distance < width:
            bits |= bits >> bits.dtype.type(distance)
    zeros: Array = (width - np.bitwise_count(bits)).astype(value.dtype)
    return zeros


def _trailing_zeros(value: Array) -> Array:
    below = ~value & (value - 1)
    zeros: Array = np.bitwise_count(_bits(below)).astype(value.dtype)
    return zeros


COUNTS: dict[str, Function] = {
    "math.ctpop": lambda value: np.bitwise_count(_bits(value)).astype(value.dtype),
    "math.ctlz": _leading_zeros,
    "math.cttz": _trailing_zeros,
}
"""Counts of bits, in the type of the operand."""


@pure(*COUNTS)
def build_bit_count(operation: Operation, compiler: Compiler) -> Handler:
    """Number of set, leading zero or trailing zero bits."""
    return COUNTS[operation.name]


@pure("arith.mulsi_extended", "arith.mului_extended")
def build_extended_product(operation: Operation, compiler: Compiler) -> Handler:
    """Low and high half of a product."""
    unsigned = operation.name == "arith.mului_extended"
    high = _unsigned(_multiply_high)

    def multiply(a: Array, b: Array) -> list[Array]:
        upper = high(a, b)
        if not unsigned:
            upper = upper - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)
        return [a * b, upper.astype(a.dtype)]

    return multiply


@pure("math.absi")
def build_absolute(operation: Operation, compiler: Compiler) -> Handler:
    """Absolute value; the smallest integer stays itself."""
    return np.abs
