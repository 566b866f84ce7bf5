"""Conversions between elements."""

from __future__ import annotations

import numpy as np

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
    """Integer towards zero; out of range to the nearest end, NaN to zero."""
    dtype = INTEGERS[operation.result_types[0].element]
    if dtype is np.bool_:
        convert = compiler.arithmetic.to_integer(np.int32)
        return lambda value: (convert(value) & 1).astype(np.bool_)
    if operation.name == "arith.fptosi":
        return compiler.arithmetic.to_integer(dtype)
    convert = compiler.arithmetic.to_integer(UNSIGNED[np.dtype(dtype)])
    return lambda value: convert(value).view(dtype)


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
