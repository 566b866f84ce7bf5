"""Reductions and scans with a region of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trivet.simulator.arithmetic import fold_halves
from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Code, Compiler
from trivet.simulator.ir import Operation
from trivet.simulator.operations.integers import integer_function
from trivet.simulator.operations.registry import Handler, effect, unpacked
from trivet.simulator.values import Mover, Value, fill_tile

_UNORDERED = ("addi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")


class _Fold:
    """Parts that reductions and scans share."""

    def __init__(self, operation: Operation, compiler: Compiler) -> None:
        axis = operation.attributes["axis"]
        assert isinstance(axis, int)
        self.axis = axis + 1
        self.kinds = operation.operand_types
        self.extent = self.kinds[0].shape[axis]
        self.movers: list[Mover] = [compiler.mover(kind) for kind in self.kinds]
        self.code: Code = compiler.region(operation.regions[0])[0]
        self.single = _single_operation(operation)
        self._head = (slice(None),) * self.axis

    def full(self, operands: tuple[Value, ...]) -> list[Value]:
        return [
            fill_tile(move, value, kind.shape)
            for move, value, kind in zip(self.movers, operands, self.kinds, strict=True)
        ]

    def part(self, values: list[Value], place: slice | int) -> list[Value]:
        index = (*self._head, place)
        return [
            move(lambda array: array[index], value)
            for move, value in zip(self.movers, values, strict=True)
        ]

    def join(self, pieces: list[list[Value]], join: Callable[..., np.ndarray]) -> list[Value]:
        """Put lists of values back together along the axis."""
        return [
            move(lambda *arrays: join(_broadcast(arrays), self.axis), *column)
            for move, column in zip(self.movers, zip(*pieces, strict=True), strict=True)
        ]

    def combine(self, chunk: Chunk, left: list[Value], right: list[Value]) -> list[Value]:
        for slot, value in zip(self.code.arguments, [*left, *right], strict=True):
            chunk.values[slot] = value
        return self.code.run(chunk)


def _broadcast(arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    count = max(array.shape[0] for array in arrays)
    return [np.broadcast_to(array, (count, *array.shape[1:])) for array in arrays]


def _single_operation(operation: Operation) -> str | None:
    """Name of the one operation a region folds with, None for anything richer."""
    block = operation.regions[0][0]
    first = block.operations[0]
    plain = len(block.operations) == 2 and first.operands == block.arguments
    return first.name if plain else None


def _direct_reduce(fold: _Fold, compiler: Compiler) -> Callable[..., Value] | None:
    """Function of (value, axis) for a region of one known operation."""
    element = fold.kinds[0].element
    if fold.single is None:
        return None
    if fold.kinds[0].is_float:
        return compiler.arithmetic.reduce(fold.single, element)
    function = integer_function(fold.single, element)
    if function is None or fold.single.rpartition(".")[2] not in _UNORDERED:
        return None
    if isinstance(function, np.ufunc) and element != "i1":
        ufunc = function
        return lambda value, axis: ufunc.reduce(value, axis=axis, dtype=value.dtype)
    by_halves = function
    return lambda value, axis: fold_halves(by_halves, value, axis)


@effect("tt.reduce")
def build_reduce(operation: Operation, compiler: Compiler) -> Handler:
    """Fold along an axis: by halves, or element by element where the arithmetic asks for it."""
    fold = _Fold(operation, compiler)
    direct = _direct_reduce(fold, compiler)
    if direct is not None:
        function = direct
        return lambda chunk, value: function(fold.full((value,))[0], fold.axis)
    sequential = compiler.arithmetic.sequential

    def in_order(chunk: Chunk, values: list[Value]) -> list[Value]:
        total = fold.part(values, 0)
        for place in range(1, fold.extent):
            total = fold.combine(chunk, total, fold.part(values, place))
        return total

    def by_halves(chunk: Chunk, values: list[Value]) -> list[Value]:
        extent = fold.extent
        while extent > 1:
            half = extent // 2
            lower = fold.part(values, slice(0, half))
            values = fold.combine(chunk, lower, fold.part(values, slice(half, extent)))
            extent = half
        return fold.part(values, 0)

    def run(chunk: Chunk, *operands: Value) -> Value:
        run_all = in_order if sequential else by_halves
        return unpacked(operation, run_all(chunk, fold.full(operands)))

    return run


def _direct_scan(fold: _Fold, compiler: Compiler) -> Callable[..., Value] | None:
    element = fold.kinds[0].element
    if fold.single is None:
        return None
    if fold.kinds[0].is_float:
        return compiler.arithmetic.scan(fold.single, element)
    function = integer_function(fold.single, element)
    if not isinstance(function, np.ufunc) or element == "i1":
        return None
    return lambda value, axis: function.accumulate(value, axis=axis, dtype=value.dtype)


def _scan_in_order(fold: _Fold, chunk: Chunk, values: list[Value]) -> list[Value]:
    columns = [fold.part(values, 0)]
    for place in range(1, fold.extent):
        columns.append(fold.combine(chunk, columns[-1], fold.part(values, place)))
    return fold.join(columns, np.stack)


def _scan_by_doubling(fold: _Fold, chunk: Chunk, values: list[Value]) -> list[Value]:
    distance = 1
    while distance < fold.extent:
        before = fold.part(values, slice(0, fold.extent - distance))
        moved = fold.combine(chunk, before, fold.part(values, slice(distance, None)))
        kept = fold.part(values, slice(0, distance))
        values = fold.join([kept, moved], np.concatenate)
        distance *= 2
    return values


@effect("tt.scan")
def build_scan(operation: Operation, compiler: Compiler) -> Handler:
    """Inclusive scan along an axis.

    A region of one known operation runs in order; any other by doubling distances (Kogge and
    Stone), or in order where the arithmetic asks for it.
    """
    fold = _Fold(operation, compiler)
    direct = _direct_scan(fold, compiler)
    reverse = operation.attributes.get("reverse") is True
    generic = _scan_in_order if compiler.arithmetic.sequential else _scan_by_doubling

    def flipped(values: list[Value]) -> list[Value]:
        if not reverse:
            return values
        return [
            move(lambda array: np.flip(array, fold.axis), value)
            for move, value in zip(fold.movers, values, strict=True)
        ]

    def run(chunk: Chunk, *operands: Value) -> Value:
        values = flipped(fold.full(operands))
        if direct is not None:
            values = [direct(values[0], fold.axis)]
        else:
            values = generic(fold, chunk, values)
        return unpacked(operation, flipped(values))

    return run
