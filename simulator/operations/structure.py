"""Operations that make, shape, select and move elements."""

from __future__ import annotations

import re
import struct

import numpy as np

from trivet.simulator._rounding import from_bits
from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Compiler, as_column
from trivet.simulator.ir import Operation
from trivet.simulator.operations.registry import Handler, effect, pure
from trivet.simulator.values import INTEGERS, Pointer, Value, fill_tile, moving

_DENSE = re.compile(r"dense<(.*)>$")
_FLOAT_BITS = {"f16": ("H", "e"), "f32": ("I", "f"), "f64": ("Q", "d")}


def _float(word: str, element: str) -> float:
    """Value of a printed float; NaN, infinity and inexact ones are printed as bits."""
    if not word.startswith("0x"):
        return float(word)
    bits = int(word, 16)
    if element in _FLOAT_BITS:
        integer, real = _FLOAT_BITS[element]
        return float(struct.unpack(real, struct.pack(integer, bits))[0])
    if element == "bf16":
        return float(struct.unpack("f", struct.pack("I", bits << 16))[0])
    return float(from_bits(np.array([bits], np.uint8), element)[0])


@pure("arith.constant")
def build_constant(operation: Operation, compiler: Compiler) -> Handler:
    """Scalar or uniform tile, kept at extent 1."""
    kind = operation.result_types[0]
    dense = _DENSE.match(operation.words[0])
    word = dense[1] if dense else operation.words[0]
    move = compiler.mover(kind)
    value: Value
    if kind.is_float:
        value = compiler.arithmetic.constant(_float(word, kind.element), kind.element)
    elif word in ("true", "false"):
        value = np.array(word == "true")
    else:
        value = np.array(int(word, 0)).astype(INTEGERS[kind.element])
    constant = move(lambda array: as_column(array, len(kind.shape)), value)
    return lambda: constant


@pure("ub.poison")
def build_poison(operation: Operation, compiler: Compiler) -> Handler:
    """Value that nothing may depend on: zero."""
    kind = operation.result_types[0]
    rank = len(kind.shape)
    zero: Value
    if kind.is_pointer:
        zero = Pointer(0, as_column(np.int64(0), rank))
    elif kind.is_float:
        constant = compiler.arithmetic.constant(0.0, kind.element)
        zero = compiler.arithmetic.map(lambda array: as_column(array, rank), constant)
    else:
        zero = as_column(np.zeros((), INTEGERS[kind.element]), rank)
    return lambda: zero


@effect("tt.get_program_id")
def build_program_id(operation: Operation, compiler: Compiler) -> Handler:
    """Grid coordinate of each program."""
    axis = "xyz".index(operation.words[0])
    return lambda chunk: chunk.axes[axis]


@effect("tt.get_num_programs")
def build_program_count(operation: Operation, compiler: Compiler) -> Handler:
    """Extent of the grid."""
    axis = "xyz".index(operation.words[0])

    def extent(chunk: Chunk) -> np.ndarray:
        return np.array([chunk.launch.grid[axis]], np.int32)

    return extent


@pure("tt.make_range")
def build_range(operation: Operation, compiler: Compiler) -> Handler:
    """Consecutive int32."""
    start, end = operation.attributes["start"], operation.attributes["end"]
    values = np.arange(start, end, dtype=np.int32)[None]  # type: ignore[call-overload]
    return lambda: values


@pure("tt.splat")
def build_splat(operation: Operation, compiler: Compiler) -> Handler:
    """Scalar as a tile of extent 1."""
    kind = operation.result_types[0]
    move, ones = compiler.mover(kind), (1,) * len(kind.shape)
    return moving(move, lambda array: array.reshape(array.shape[0], *ones))


@pure("tt.unsplat")
def build_unsplat(operation: Operation, compiler: Compiler) -> Handler:
    """The only element of a tile."""
    move = compiler.mover(operation.result_types[0])
    return moving(move, lambda array: array.reshape(array.shape[0]))


@pure("tt.expand_dims")
def build_expand(operation: Operation, compiler: Compiler) -> Handler:
    """New tile axis of extent 1."""
    axis = _axis(operation)
    move = compiler.mover(operation.result_types[0])
    index = (slice(None),) * axis + (None,)
    return moving(move, lambda array: array[index])


def _axis(operation: Operation) -> int:
    """Array axis of the operation's tile axis."""
    axis = operation.attributes["axis"]
    assert isinstance(axis, int)
    return axis + 1


@pure("tt.reshape")
def build_reshape(operation: Operation, compiler: Compiler) -> Handler:
    """Same elements in row-major order."""
    source, target = operation.operand_types[0].shape, operation.result_types[0].shape
    move = compiler.mover(operation.result_types[0])

    def reshape(value: Value) -> Value:
        full = fill_tile(move, value, source)
        return move(lambda array: array.reshape(array.shape[0], *target), full)

    return reshape


@pure("tt.trans")
def build_transpose(operation: Operation, compiler: Compiler) -> Handler:
    """Tile axes in another order."""
    order = operation.attributes["order"]
    assert isinstance(order, list)
    axes = (0, *(axis + 1 for axis in order))
    move = compiler.mover(operation.result_types[0])
    return moving(move, lambda array: array.transpose(axes))


def _same_programs(*arrays: np.ndarray) -> list[np.ndarray]:
    count = max(array.shape[0] for array in arrays)
    return [np.broadcast_to(array, (count, *array.shape[1:])) for array in arrays]


@pure("tt.join")
def build_join(operation: Operation, compiler: Compiler) -> Handler:
    """Two tiles side by side along a new last axis."""
    shape, move = operation.operand_types[0].shape, compiler.mover(operation.result_types[0])

    def join(one: Value, other: Value) -> Value:
        full = (fill_tile(move, value, shape) for value in (one, other))
        return move(lambda *arrays: np.stack(_same_programs(*arrays), -1), *full)

    return join


@pure("tt.cat")
def build_concatenation(operation: Operation, compiler: Compiler) -> Handler:
    """Two tiles one after the other along the first axis."""
    shape, move = operation.operand_types[0].shape, compiler.mover(operation.result_types[0])

    def concatenate(one: Value, other: Value) -> Value:
        full = (fill_tile(move, value, shape) for value in (one, other))
        return move(lambda *arrays: np.concatenate(_same_programs(*arrays), 1), *full)

    return concatenate


@pure("tt.split")
def build_split(operation: Operation, compiler: Compiler) -> Handler:
    """The two halves of a last axis of extent 2."""
    shape, move = operation.operand_types[0].shape, compiler.mover(operation.result_types[0])

    def halves(value: Value) -> list[Value]:
        full = fill_tile(move, value, shape)
        return [move(lambda array, half=half: array[..., half], full) for half in (0, 1)]

    return halves


@pure("tt.gather")
def build_gather(operation: Operation, compiler: Compiler) -> Handler:
    """Elements of a tile picked along an axis by an index tile."""
    axis, move = _axis(operation), compiler.mover(operation.result_types[0])
    shape, tile = (kind.shape for kind in operation.operand_types)
    extent = shape[axis - 1]

    def gather(value: Value, places: np.ndarray) -> Value:
        places = np.broadcast_to(places, (places.shape[0], *tile)) % extent
        full = fill_tile(move, value, shape)

        def pick(array: np.ndarray) -> np.ndarray:
            source, index = _same_programs(array, places)
            return np.take_along_axis(source, index, axis)

        return move(pick, full)

    return gather


@pure("arith.select")
def build_select(operation: Operation, compiler: Compiler) -> Handler:
    """First operand where the condition holds, else the second."""
    kind = operation.result_types[0]
    move = compiler.mover(kind)
    scalar = operation.operand_types[0].shape == () and kind.shape != ()
    column = (-1,) + (1,) * len(kind.shape)

    def select(condition: np.ndarray, one: Value, other: Value) -> Value:
        if scalar:
            condition = condition.reshape(column)
        return move(lambda a, b: np.where(condition, a, b), one, other)

    return select


@effect("tt.addptr")
def build_pointer_offset(operation: Operation, compiler: Compiler) -> Handler:
    """Pointer moved by an integer number of elements."""

    def add(chunk: Chunk, pointer: Pointer, offset: np.ndarray) -> Pointer:
        before = pointer.offsets
        starts = type(before) is np.ndarray and before.size == 1 and not before.flat[0]
        if starts and before.ndim == offset.ndim:
            offsets = chunk.widened(offset)
        else:
            offsets = np.add(before, offset, dtype=np.int64)
        argument = pointer.argument
        if not isinstance(argument, int):
            argument = np.broadcast_to(argument, offsets.shape)
        return Pointer(argument, offsets)

    return add


@pure("tt.histogram")
def build_histogram(operation: Operation, compiler: Compiler) -> Handler:
    """Counts of the values 0, 1, ..., bins - 1 among the lanes of the mask."""
    shape, bins = operation.operand_types[0].shape, operation.result_types[0].shape[0]

    def count(values: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        programs = max(values.shape[0], 1 if mask is None else mask.shape[0])
        values = np.broadcast_to(values, (programs, *shape)).astype(np.int64)
        live = (values >= 0) & (values < bins)
        if mask is not None:
            live &= mask
        rows = np.arange(programs)[:, None] * bins
        places = (values + rows)[live]
        counts = np.bincount(places, minlength=programs * bins)
        return counts.reshape(programs, bins).astype(np.int32)

    return count
