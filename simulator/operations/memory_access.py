"""Loads and stores through pointers."""

from __future__ import annotations

import numpy as np

from trivet.simulator.access import load, store
from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation, Type
from trivet.simulator.operations.registry import Handler, Unsupported, effect
from trivet.simulator.stored import Access
from trivet.simulator.values import Pointer, Value


def access_of(operation: Operation, kind: Type, compiler: Compiler) -> Access:
    """Prepared access of a memory operation that moves a tile of type ``kind``."""
    if kind.is_pointer:
        raise Unsupported("pointers in memory")
    return Access(
        kind,
        compiler.site(operation),
        compiler.arithmetic,
        compiler.mover(kind),
        operation.attributes.get("isVolatile") is True,
    )


@effect("tt.load")
def build_load(operation: Operation, compiler: Compiler) -> Handler:
    """Load of a tile; operands are pointer, mask, other."""
    access = access_of(operation, operation.result_types[0], compiler)

    def run(
        chunk: Chunk, pointer: Pointer, mask: np.ndarray | None = None, other: Value | None = None
    ) -> Value:
        return load(access, chunk, pointer, mask, other)

    return run


@effect("tt.store")
def build_store(operation: Operation, compiler: Compiler) -> Handler:
    """Store of a tile; operands are pointer, value, mask."""
    pointer_kind = operation.operand_types[0]
    kind = Type(pointer_kind.shape, pointer_kind.pointee)
    access = access_of(operation, kind, compiler)

    def run(chunk: Chunk, pointer: Pointer, value: Value, mask: np.ndarray | None = None) -> None:
        store(access, chunk, pointer, value, mask)

    return run
