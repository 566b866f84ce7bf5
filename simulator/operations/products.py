"""Matrix products."""

from __future__ import annotations

import numpy as np

from trivet.simulator._dots import ascending
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation
from trivet.simulator.operations.registry import Handler, pure
from trivet.simulator.values import INTEGERS, Value, fill_tile


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


def _integer_dot(operation: Operation) -> Handler:
    left, right = (kind.shape for kind in operation.operand_types[:2])
    result = operation.result_types[0]
    dtype = INTEGERS[result.element]

    def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        a = np.broadcast_to(a.astype(dtype), (a.shape[0], *left))
        b = np.broadcast_to(b.astype(dtype), (b.shape[0], *right))
        return ascending(a, b, np.broadcast_to(c, (c.shape[0], *result.shape)))

    return dot
