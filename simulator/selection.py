"""Which programs of a launch stand for all of them, where all are too many to run."""

from collections.abc import Iterable
from itertools import product

# Where 32-bit offsets wrap: every odd multiple makes them negative, every even one small again.
_WRAP = 2**31
_MOST_WRAPS = 4
# Multiples of the golden ratio's fraction spread evenly and meet no power of two.
_GOLDEN = 0.6180339887498949


def chosen_programs(
    grid: tuple[int, int, int], count: int, spans: Iterable[int] = ()
) -> tuple[int, ...]:
    """Choose about ``count`` linear program numbers, besides the corners of the grid.

    ``spans`` are the elements that each argument spans: along every axis those programs are
    chosen whose offsets are the first beyond a multiple of 2^31, if the axis runs evenly over the
    argument; the rest is spread over the axis.
    """
    first, second, _ = grid
    found = set(product(*({0, extent - 1} for extent in grid)))
    wide = [axis for axis in range(3) if grid[axis] > 2]
    for axis in wide:
        inner = _inner(grid[axis], max(1, count // len(wide)), spans)
        for number, place in enumerate(inner):
            others = (0 if number % 2 else extent - 1 for extent in grid)
            found.add(_with(tuple(others), axis, place))
    return tuple(sorted(x + first * (y + second * z) for x, y, z in found))


def _inner(extent: int, count: int, spans: Iterable[int]) -> list[int]:
    """Places along an axis: at the wraps of each span, then spread."""
    wraps = [
        extent * _WRAP * times // span + 1
        for span in set(spans)
        for times in range(1, min(span // _WRAP, _MOST_WRAPS) + 1)
    ]
    spread = [int(extent * (number * _GOLDEN % 1.0)) for number in range(1, count + 1)]
    return sorted({min(place, extent - 1) for place in (*wraps, *spread)})


def _with(place: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*place[:axis], value, *place[axis + 1 :])
