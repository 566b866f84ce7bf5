"""Memory of a launch: allocations, argument views and the exact set of elements each one owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trivet.simulator.pages import zero_pages

_SPARSE_BYTES = 1 << 26
# Up to so many elements a mask of a view's holes is cheaper than arithmetic on every place.
_MASKED_SPAN = 1 << 22


@dataclass(eq=False)
class Allocation:
    """Flat storage in elements; several arguments may point into it.

    ``data`` is the whole storage (zero-copy on a tensor's for native runs; float64 for a shadow;
    bfloat16 and float8 as ml_dtypes arrays). ``initialised`` tells which elements were ever
    written, None when all were; it outlives the launch. ``base`` is the address that the kernel
    knows it by, None for that of ``data``.
    """

    data: np.ndarray
    element: str
    initialised: np.ndarray | None = None
    name: str = ""
    base: int | None = None

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(self.data.ctypes.data) if self.base is None else self.base


@dataclass(eq=False)
class Argument:
    """A pointer argument and the view it stands for, in elements of its allocation.

    The legal elements are those of ``shape`` and ``strides`` counted from ``offset``, or the
    whole storage when ``whole_storage`` is set. A ``guard`` restricts ``read_only`` to some
    elements of the allocation.
    """

    name: str
    allocation: Allocation
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    read_only: bool = False
    whole_storage: bool = False
    guard: np.ndarray | None = None


@dataclass(eq=False)
class View:
    """An argument prepared for a launch; offsets are relative to its pointer."""

    argument: Argument
    lowest: int = field(init=False)
    extent: int = field(init=False)
    valid: np.ndarray | _Nested | None = field(init=False)

    def __post_init__(self) -> None:
        argument = self.argument
        if argument.whole_storage:
            self.lowest, self.extent = -argument.offset, argument.allocation.data.size
            self.valid = None
            return
        self.lowest = 0
        self.extent = _span(argument.shape, argument.strides)
        self.valid = _holes(argument.shape, argument.strides, self.extent)

    @cached_property
    def data(self) -> np.ndarray:
        """The legal span of the storage, indexed from ``lowest``."""
        start = self.argument.offset + self.lowest
        return self.argument.allocation.data[start : start + self.extent]

    def outside(self, places: np.ndarray) -> np.ndarray | None:
        """Which ``places`` (offsets counted from ``lowest``) are illegal; None if none is."""
        beyond: np.ndarray = places.view(np.uint64) >= np.uint64(self.extent)
        if self.valid is None:
            return beyond if beyond.any() else None
        if beyond.any():
            holes = ~self.valid.take(np.where(beyond, 0, places)) if self.extent else beyond
            outside: np.ndarray = beyond | holes
            return outside
        holes = ~self.valid.take(places)
        return holes if holes.any() else None

    def describe(self, offset: int) -> str:
        """Element ``offset`` in words a person can check: position, argument, shape."""
        argument = self.argument
        position = _position(offset, argument.shape, argument.strides)
        where = f"element {offset}" if position is None else f"element {position}"
        return f"{where} of {argument.name} {_shape_text(argument.shape)}"


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last of a view, 0 when it is empty."""
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


@dataclass(frozen=True)
class _Nested:
    """Membership of a view each of whose axes steps over all that the finer ones reach.

    ``axes`` are (stride, extent), coarsest first.
    """

    axes: tuple[tuple[int, int], ...]

    def take(self, places: np.ndarray) -> np.ndarray:
        """Which ``places`` are elements of the view."""
        rest, inside = places, np.ones(places.shape, bool)
        for stride, extent in self.axes:
            index = rest // stride
            inside &= index < extent
            rest = rest - index * stride
        inside &= rest == 0
        return inside


def _nested(dims: Sequence[tuple[int, int]]) -> _Nested | None:
    """Arithmetic membership for dims (stride, extent), finest first; None where they overlap."""
    steps = [(stride, count) for stride, count in dims if stride]
    reach = 1
    for stride, count in steps:
        if stride < reach:
            return None
        reach += (count - 1) * stride
    return _Nested(tuple(reversed(steps)))


def _holes(
    shape: Sequence[int], strides: Sequence[int], extent: int
) -> np.ndarray | _Nested | None:
    """Membership of the elements of a view within its span, None when it has them all."""
    dims = sorted(
        (stride, extent) for extent, stride in zip(shape, strides, strict=True) if extent > 1
    )
    reach = 1
    for stride, count in dims:
        if stride > reach:
            break
        reach += (count - 1) * stride
    else:
        return None
    nested = _nested(dims) if extent > _MASKED_SPAN else None
    if nested is not None:
        return nested
    mask = np.zeros(extent, bool)
    item = mask.strides[0]
    window = np.lib.stride_tricks.as_strided(mask, shape, [item * stride for stride in strides])
    window[...] = True
    return mask


def _position(offset: int, shape: Sequence[int], strides: Sequence[int]) -> str | None:
    """Index tuple of a legal element of a view without overlap, else None."""
    index, rest = [0] * len(shape), offset
    for axis in sorted(range(len(shape)), key=lambda axis: -strides[axis]):
        if strides[axis] <= 0 or shape[axis] <= 1:
            continue
        index[axis] = rest // strides[axis]
        rest -= index[axis] * strides[axis]
        if not 0 <= index[axis] < shape[axis]:
            return None
    if rest or not shape or 0 in shape:
        return None
    return "[" + ", ".join(map(str, index)) + "]"


def _shape_text(shape: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def sparse_zeros(count: int, dtype: Any) -> np.ndarray:
    """Zeros that take memory only where they are touched, however large ``count`` is.

    Large ones are anonymous memory that is never reserved, so that tensors of production size
    fit on a small machine while few programs touch them.
    """
    size = count * np.dtype(dtype).itemsize
    if size < _SPARSE_BYTES:
        return np.zeros(count, dtype)
    return np.frombuffer(zero_pages(size), dtype, count)
