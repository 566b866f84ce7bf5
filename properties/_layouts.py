"""Layouts: how the elements of an argument lie in its storage."""

import enum
import itertools
from dataclasses import dataclass

from trivet.properties._stream import Shape


class Layout(enum.Enum):
    """A family of layouts that a kernel promises to take."""

    DENSE = "DENSE"
    UNIT_LAST = "UNIT_LAST"
    ANY = "ANY"

    def __repr__(self) -> str:
        return self.value


DENSE = Layout.DENSE
UNIT_LAST = Layout.UNIT_LAST
ANY = Layout.ANY

_OFFSET = 3
_ROOM = 3
_MOST_PERMUTED = 4


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where a view lies: elements of storage, offset of its first element, and strides.

    ``repeated`` names the axes of stride 0.
    """

    storage: int
    offset: int
    strides: tuple[int, ...]
    repeated: tuple[int, ...] = ()


def _permutations(rank: int) -> list[tuple[int, ...]]:
    if rank <= _MOST_PERMUTED:
        return list(itertools.permutations(range(rank)))[1:]
    return [(*range(k, rank), *range(k)) for k in range(1, rank)]


def layout_kinds(layout: Layout, rank: int, *, repeats: bool = True) -> tuple[str, ...]:
    """The names of the layouts of a family for a tensor of ``rank`` dims, plain ones first.

    ``offset`` starts inside its storage; ``first:k`` and ``last:k`` are the first and last part of
    a longer dim k; ``order:2,0,1`` stores dim 2 outermost; ``every:k`` takes every second element
    of dim k; ``repeat:k`` and ``repeat:all`` have stride 0. ``repeats=False`` leaves those out:
    arguments that a kernel writes, and domains whose elements depend on one another.

    >>> layout_kinds(UNIT_LAST, 2, repeats=False)
    ('dense', 'offset', 'first:0', 'last:0', 'first:1', 'last:1', 'every:0')
    """
    plain = ["dense", "offset"]
    if layout is DENSE or rank == 0:
        return tuple(plain)
    parts = [f"{end}:{axis}" for axis in range(rank) for end in ("first", "last")]
    free = range(rank) if layout is ANY else range(rank - 1)
    orders = [order for order in _permutations(rank) if layout is ANY or order[-1] == rank - 1]
    kinds = plain + parts + ["order:" + ",".join(map(str, order)) for order in orders]
    kinds += [f"every:{axis}" for axis in free]
    if repeats:
        kinds += [f"repeat:{axis}" for axis in free]
        kinds += ["repeat:all"] if layout is ANY and rank > 1 else []
    return tuple(kinds)


def _dense(shape: Shape) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def _elements(shape: Shape) -> int:
    total = 1
    for size in shape:
        total *= max(1, size)
    return total


def geometry(kind: str, shape: Shape) -> Geometry:
    """The geometry of a layout kind (a name from ``layout_kinds``) for a shape."""
    name, _, detail = kind.partition(":")
    if name == "dense":
        return Geometry(_elements(shape), 0, _dense(shape))
    if name == "offset":
        return Geometry(_elements(shape) + 2 * _OFFSET, _OFFSET, _dense(shape))
    if name == "order":
        order = [int(axis) for axis in detail.split(",")]
        inner = _dense(tuple(shape[axis] for axis in order))
        strides = [inner[order.index(axis)] for axis in range(len(shape))]
        return Geometry(_elements(shape), 0, tuple(strides))
    axes = range(len(shape)) if detail == "all" else [int(detail)]
    return _stretched(name, shape, tuple(axes))


def _stretched(name: str, shape: Shape, axes: tuple[int, ...]) -> Geometry:
    axis = axes[0]
    if name == "repeat":
        kept = tuple(1 if k in axes else size for k, size in enumerate(shape))
        strides = [0 if k in axes else step for k, step in enumerate(_dense(kept))]
        return Geometry(_elements(kept), 0, tuple(strides), axes)
    wide = list(shape)
    wide[axis] = 2 * shape[axis] if name == "every" else shape[axis] + _ROOM
    inner = list(_dense(tuple(wide)))
    offset = _ROOM * inner[axis] if name == "last" else 0
    if name == "every":
        inner[axis] *= 2
    return Geometry(_elements(tuple(wide)), offset, tuple(inner))
