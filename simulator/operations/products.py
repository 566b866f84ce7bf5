"""Matrix products."""

from __future__ import annotations

import numpy as np

from trivet.simulator._dots import ascending
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation, Type
from trivet.simulator.operations.registry import Handler, pure
from trivet.simulator.values import INTEGERS, Value, fill_tile, move_plain


def _precision(operation: Operation) -> str:
    words = operation.words
    return words[words.index("inputPrecision") + 1] if "inputPrecision" in words else "ieee"


@pure("tt.dot")
def build_dot(operation: Operation, compiler: Compiler) -> Handler:
    """``a @ b + c`` for a batch of matrices."""
    left, right = operation.operand_types[:2]
    result = operation.result_types[0]
    kinds = (left, right, result)
    if not result.is_float:
        return _integer_dot(operation)
    sources = (left.element, right.element)
    function = compiler.arithmetic.dot(sources, result.element, _precision(operation))
    move = compiler.arithmetic.map

    def dot(*operands: Value) -> Value:
        full = (
            fill_tile(move, value, kind.shape) for value, kind in zip(operands, kinds, strict=True)
        )
        return function(*full)

    return dot


_TWO_BIT_MANTISSA = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], np.float32)
_LARGEST_EXPONENT = 255


@pure("tt.dot_scaled")
def build_scaled_dot(operation: Operation, compiler: Compiler) -> Handler:
    """``(a * scale) @ (b * scale) + c`` of microscaling formats, products unrounded.

    A scale is an E8M0 byte, 2 to its value less 127, for a group of elements along k.
    """
    arithmetic, scaled = compiler.arithmetic, operation.attributes["scaled"]
    assert isinstance(scaled, list)
    kinds = operation.operand_types
    right = 2 if scaled[0] else 1
    left = _ScaledOperand(operation, compiler, kinds[0], False)
    other = _ScaledOperand(operation, compiler, kinds[right], True)
    product = arithmetic.dot(("f32", "f32"), "f32", "ieee")
    shape = operation.result_types[0].shape

    def dot(*operands: Value) -> Value:
        scales = [operands[1] if scaled[0] else None, operands[right + 1] if scaled[1] else None]
        a, b = left(operands[0], scales[0]), other(operands[right], scales[1])
        return product(a, b, fill_tile(arithmetic.map, operands[-1], shape))

    return dot


class _ScaledOperand:
    """Decodes one operand of a scaled product to float32 values."""

    def __init__(
        self, operation: Operation, compiler: Compiler, kind: Type, is_right: bool
    ) -> None:
        words, side = operation.words, "rhs" if is_right else "lhs"
        self._packed = words[words.index(side) + 1] == "e2m1"
        along_k = operation.attributes.get(f"{side}_k_pack", True) is not False
        self._axis = -2 if is_right == along_k else -1
        self._is_right, self._kind = is_right, kind
        self._arithmetic = compiler.arithmetic

    def __call__(self, value: Value, scale: np.ndarray | None) -> Value:
        arithmetic = self._arithmetic
        move = move_plain if self._packed else arithmetic.map
        value = fill_tile(move, value, self._kind.shape)
        if self._packed:
            value = arithmetic.load(_unpacked(value, self._axis), "f32")
        multiply = arithmetic.binary("arith.mulf", "f32")
        if scale is None or multiply is None:
            return value
        factor = _power_of_two(scale)
        extent = value.shape[-2 if self._is_right else -1] // factor.shape[-1]
        factor = np.repeat(factor, extent, axis=-1)
        if self._is_right:
            factor = np.swapaxes(factor, -1, -2)
        return multiply(value, arithmetic.load(factor, "f32"))


def _unpacked(packed: np.ndarray, axis: int) -> np.ndarray:
    """Two E2M1 numbers of each byte, the low half first, along ``axis``."""
    octets = np.moveaxis(packed.view(np.uint8), axis, -1)
    pairs = np.stack([octets & 15, octets >> 4], -1).reshape(*octets.shape[:-1], -1)
    sizes = _TWO_BIT_MANTISSA[pairs & 7]
    return np.moveaxis(np.where(pairs & 8, -sizes, sizes), -1, axis)


def _power_of_two(scale: np.ndarray) -> np.ndarray:
    exponent = scale.view(np.uint8).astype(np.int32)
    power = np.ldexp(np.float32(1), exponent - 127)
    return np.where(exponent == _LARGEST_EXPONENT, np.float32(np.nan), power)


def _integer_dot(operation: Operation) -> Handler:
    left, right = (kind.shape for kind in operation.operand_types[:2])
    result = operation.result_types[0]
    dtype = INTEGERS[result.element]

    def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        a = np.broadcast_to(a.astype(dtype), (a.shape[0], *left))
        b = np.broadcast_to(b.astype(dtype), (b.shape[0], *right))
        return ascending(a, b, np.broadcast_to(c, (c.shape[0], *result.shape)))

    return dot
