"""Run-time values of the machine.

A value is an array whose first axis runs over the programs of a chunk (extent 1 when all programs
agree) followed by one axis per tile dimension, each of the tile's extent or, while a broadcast is
pending, 1. Floats belong to the arithmetic and are moved only through its ``map``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.simulator.ir import Type

if TYPE_CHECKING:
    from trivet.simulator.arithmetic import Arithmetic

Value = Any
Mover = Callable[..., Value]

INTEGERS: dict[str, type[np.generic]] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
UNSIGNED: dict[np.dtype[Any], type[np.generic]] = {
    np.dtype(np.bool_): np.bool_,
    np.dtype(np.int8): np.uint8,
    np.dtype(np.int16): np.uint16,
    np.dtype(np.int32): np.uint32,
    np.dtype(np.int64): np.uint64,
}


class Pointer:
    """Element offsets (int64) into the argument numbered ``argument``.

    Where pointers to several arguments met in one tile, ``argument`` is an integer array with the
    shape of the offsets.
    """

    __slots__ = ("argument", "offsets")

    def __init__(self, argument: int | np.ndarray, offsets: np.ndarray) -> None:
        self.argument = argument
        self.offsets = offsets

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the offsets."""
        return self.offsets.shape


class Descriptor:
    """Tensor descriptor: base pointer, extents and strides in elements, block shape, padding."""

    __slots__ = ("block", "extents", "padding", "pointer", "strides")

    def __init__(
        self,
        pointer: Pointer,
        extents: list[np.ndarray],
        strides: list[np.ndarray],
        block: tuple[int, ...],
        padding: str,
    ) -> None:
        self.pointer = pointer
        self.extents = extents
        self.strides = strides
        self.block = block
        self.padding = padding


def move_plain(function: Callable[..., Any], *values: Any) -> Any:
    """Apply an array function to integers or booleans."""
    return function(*values)


def move_pointers(function: Callable[..., Any], *pointers: Pointer) -> Pointer:
    """Apply an array function to the offsets of ``pointers``."""
    offsets = function(*(pointer.offsets for pointer in pointers))
    first = pointers[0].argument
    if isinstance(first, int) and all(
        isinstance(pointer.argument, int) and pointer.argument == first for pointer in pointers
    ):
        return Pointer(first, offsets)
    arguments = (np.broadcast_to(pointer.argument, pointer.shape) for pointer in pointers)
    return Pointer(function(*arguments), offsets)


def mover(kind: Type, arithmetic: Arithmetic) -> Mover:
    """How structure (reshape, where, take, ...) reaches values of type ``kind``."""
    if kind.is_pointer:
        return move_pointers
    return arithmetic.map if kind.is_float and not arithmetic.plain else move_plain


def moving(move: Mover, function: Callable[[np.ndarray], np.ndarray]) -> Mover:
    """``function`` as a function of one value; the function itself where values are arrays."""
    return function if move is move_plain else lambda value: move(function, value)


def fill_tile(move: Mover, value: Value, shape: tuple[int, ...]) -> Value:
    """``value`` with every tile axis at its full extent (a read-only view)."""
    return move(lambda array: np.broadcast_to(array, (array.shape[0], *shape)), value)


def lanes(flags: np.ndarray, rank: int) -> np.ndarray:
    """A per-program array as a column that broadcasts over ``rank`` tile axes."""
    return flags.reshape((-1,) + (1,) * rank)


def merge(move: Mover, flags: np.ndarray | None, rank: int, new: Value, old: Value) -> Value:
    """``new`` for the programs in ``flags`` (all when None), ``old`` for the others."""
    if flags is None or new is old:
        return new
    column = lanes(flags, rank)
    return move(lambda one, other: np.where(column, one, other), new, old)
