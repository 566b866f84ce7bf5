"""Conversions between elements."""

from __future__ import annotations

import numpy as np

from trivet.simulator.arithmetic import Arithmetic
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation
from trivet.simulator.operations.registry import Handler, Unsupported, pure
from trivet.simulator.values import INTEGERS, UNSIGNED, Value

_WIDTH = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32}


def _elements(operation: Operation) -> tuple[str, str]:
    return operation.operand_types[0].element, operation.result_types[0].element


@pure("arith.extsi", "arith.index_cast")
def build_sign_extension(operation: Operation, compiler: Compiler) -> Handler:
    """Wider integer; a true i1 becomes -1."""
    source, target = _elements(operation)
    dtype = INTEGERS[target]
    if source == "i1":
        return lambda value: -value.astype(dtype)
    return lambda value: value.astype(dtype)


@pure("arith.extui", "arith.index_castui")
def build_zero_extension(operation: Operation, compiler: Compiler) -> Handler:
    """Wider integer of the same unsigned value."""
    dtype = INTEGERS[operation.result_types[0].element]
    return lambda value: value.view(UNSIGNED[value.dtype]).astype(dtype)


@pure("arith.trunci")
def build_truncation(operation: Operation, compiler: Compiler) -> Handler:
    """Lowest bits of an integer."""
    target = operation.result_types[0].element
    if target == "i1":
        return lambda value: (value & 1).astype(np.bool_)
    dtype = INTEGERS[target]
    return lambda value: value.astype(dtype)


@pure("arith.sitofp", "arith.uitofp")
def build_from_integer(operation: Operation, compiler: Compiler) -> Handler:
    """Float of an integer, rounded to nearest even."""
    source, target = _elements(operation)
    convert = compiler.arithmetic.from_integer(target)
    if operation.name == "arith.uitofp":
        return lambda value: convert(value.view(UNSIGNED[value.dtype]))
    if source == "i1":
        return lambda value: convert(-value.astype(np.int8))
    return convert


@pure("arith.fptosi", "arith.fptoui")
def build_to_integer(operation: Operation, compiler: Compiler) -> Handler:
    """Integer towards zero, as PTX has it for what no integer can hold: the nearest end.

    Eight bits are the lowest of sixteen, which the conversion is made to.
    """
    source, target = _elements(operation)
    if target == "i1":
        convert = compiler.arithmetic.to_integer(np.int32)
        return lambda value: (convert(value) & 1).astype(np.bool_)
    signed: type[np.generic] = np.int16 if target == "i8" else INTEGERS[target]
    unsigned = UNSIGNED[np.dtype(signed)]
    wanted = signed if operation.name == "arith.fptosi" else unsigned
    convert = to_integer(compiler.arithmetic, source, wanted)
    return lambda value: convert(value).view(signed).astype(INTEGERS[target], copy=False)


def to_integer(arithmetic: Arithmetic, source: str, dtype: type[np.generic]) -> Handler:
    """Conversion of ``source`` floats towards zero; out of range to the nearest end.

    NaN gives 0, but only the highest bit where either side has 64 bits (PTX ISA, ``cvt``).
    """
    convert, unordered = arithmetic.to_integer(dtype), arithmetic.compare("uno")
    width = 8 * np.dtype(dtype).itemsize
    if source != "f64" and width < 64:
        return convert
    highest = np.array([1 << (width - 1)], UNSIGNED.get(np.dtype(dtype), dtype)).view(dtype)

    def converted(value: Value) -> np.ndarray:
        missing, result = unordered(value, value), convert(value)
        return np.where(missing, highest, result) if missing.any() else result

    return converted


@pure("arith.extf", "arith.truncf", "tt.fp_to_fp")
def build_float_cast(operation: Operation, compiler: Compiler) -> Handler:
    """Conversion between floats: to nearest even, or towards zero where the operation says so."""
    source, target = _elements(operation)
    rounding = "rtz" if {"rtz", "toward_zero"} & set(operation.words) else "rtne"
    return compiler.arithmetic.cast(source, target, rounding)


@pure("arith.bitcast", "tt.bitcast")
def build_bit_cast(operation: Operation, compiler: Compiler) -> Handler:
    """The same bits as another element; pointers keep their offsets."""
    source, target = operation.operand_types[0], operation.result_types[0]
    if source.is_pointer:
        return _pointer_cast(source.pointee, target.pointee)
    arithmetic = compiler.arithmetic
    if source.is_float and target.is_float:
        to_bits, from_bits = arithmetic.bits(source.element), arithmetic.from_bits(target.element)
        return lambda value: from_bits(to_bits(value))
    if source.is_float:
        return arithmetic.bits(source.element)
    if target.is_float:
        return arithmetic.from_bits(target.element)
    dtype = INTEGERS[target.element]
    return lambda value: value.view(dtype) if value.itemsize > 1 else value.astype(dtype)


def _pointer_cast(source: str, target: str) -> Handler:
    """Pointers count elements, so only elements of one size may stand for each other."""

    def width(element: str) -> int:
        return 8 if element.startswith("f8") else max(8, _WIDTH.get(element, 64))

    if width(source) != width(target):
        raise Unsupported(f"a pointer to {source} taken as a pointer to {target}")

    def keep(pointer: Value) -> Value:
        return pointer

    return keep
