"""Tensor descriptors: blocks of a tensor, clipped at its edges."""

from __future__ import annotations

import numpy as np

from trivet.simulator.access import load, store
from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation, Type
from trivet.simulator.operations.memory_access import access_of
from trivet.simulator.operations.registry import Handler, effect, pure
from trivet.simulator.stored import Access
from trivet.simulator.values import Descriptor, Pointer, Value, fill_tile

_PAD_NAN = 2


@pure("tt.make_tensor_descriptor")
def build_descriptor(operation: Operation, compiler: Compiler) -> Handler:
    """Descriptor of a base pointer, its extents and its strides."""
    block = operation.result_types[0].shape
    padding = "nan" if operation.attributes.get("padding") == _PAD_NAN else "zero"

    def make(pointer: Pointer, *numbers: np.ndarray) -> Descriptor:
        half = len(numbers) // 2
        return Descriptor(pointer, list(numbers[:half]), list(numbers[half:]), block, padding)

    return make


def block_of(
    descriptor: Descriptor, starts: list[np.ndarray], lines: np.ndarray | None = None
) -> tuple[Pointer, np.ndarray]:
    """Pointers to a descriptor's block at ``starts`` and the mask of those inside the tensor.

    ``lines`` gives the indices along the first axis where they are not consecutive.
    """
    rank = len(descriptor.block)
    column = (-1,) + (1,) * rank
    offsets = descriptor.pointer.offsets.reshape(column)
    inside: np.ndarray = np.ones((1,) * (rank + 1), bool)
    for axis, extent in enumerate(descriptor.block):
        shape = [1] * (rank + 1)
        shape[axis + 1] = -1
        if axis == 0 and lines is not None:
            index = lines.reshape(lines.shape[0], *shape[1:]).astype(np.int64)
        else:
            index = starts[axis].reshape(column).astype(np.int64) + np.arange(extent).reshape(shape)
        limit = descriptor.extents[axis].reshape(column)
        offsets = offsets + index * descriptor.strides[axis].reshape(column)
        inside = inside & (index >= 0) & (index < limit)
    return Pointer(descriptor.pointer.argument, offsets), inside


def _padding(access: Access, descriptor: Descriptor) -> Value:
    if access.kind.is_float:
        value = float("nan") if descriptor.padding == "nan" else 0.0
        return access.arithmetic.constant(value, access.kind.element)
    return access.poison("zero")


@effect("tt.descriptor_load")
def build_descriptor_load(operation: Operation, compiler: Compiler) -> Handler:
    """Block of a tensor; elements outside it read as the padding."""
    result = operation.result_types[0]
    block = operation.operand_types[0]
    access = access_of(operation, Type(block.shape, result.element), compiler)
    move = compiler.mover(result)

    def run(chunk: Chunk, descriptor: Descriptor, *starts: np.ndarray) -> Value:
        pointer, inside = block_of(descriptor, list(starts))
        value = load(access, chunk, pointer, inside, _padding(access, descriptor))
        return move(lambda array: array.reshape(array.shape[0], *result.shape), value)

    return run


@effect("tt.descriptor_store")
def build_descriptor_store(operation: Operation, compiler: Compiler) -> Handler:
    """Block into a tensor; elements outside it are dropped."""
    block, value_kind = operation.operand_types[0], operation.operand_types[-1]
    access = access_of(operation, Type(block.shape, block.pointee), compiler)
    move = compiler.mover(value_kind)

    def run(chunk: Chunk, descriptor: Descriptor, *operands: Value) -> None:
        *starts, value = operands
        pointer, inside = block_of(descriptor, starts)
        full = fill_tile(move, value, value_kind.shape)
        shaped = move(lambda array: array.reshape(array.shape[0], *block.shape), full)
        store(access, chunk, pointer, shaped, inside)

    return run


@effect("tt.descriptor_gather")
def build_descriptor_gather(operation: Operation, compiler: Compiler) -> Handler:
    """Lines of a tensor picked by an index tile, from one column on."""
    result = operation.result_types[0]
    access = access_of(operation, result, compiler)

    def run(chunk: Chunk, descriptor: Descriptor, lines: np.ndarray, column: np.ndarray) -> Value:
        lines = np.broadcast_to(lines, (lines.shape[0], result.shape[0]))
        pointer, inside = block_of(descriptor, [lines, column], lines)
        return load(access, chunk, pointer, inside, _padding(access, descriptor))

    return run


@effect("tt.descriptor_scatter")
def build_descriptor_scatter(operation: Operation, compiler: Compiler) -> Handler:
    """Lines of a tensor picked by an index tile, written from one column on."""
    kind = operation.operand_types[-1]
    access = access_of(operation, kind, compiler)

    def run(
        chunk: Chunk,
        descriptor: Descriptor,
        lines: np.ndarray,
        column: np.ndarray,
        value: Value,
    ) -> None:
        lines = np.broadcast_to(lines, (lines.shape[0], kind.shape[0]))
        pointer, inside = block_of(descriptor, [lines, column], lines)
        store(access, chunk, pointer, value, inside)

    return run
