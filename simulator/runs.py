"""Consecutive places: what a tile of neighbouring elements reaches is a slice, not a gather."""

from __future__ import annotations

from typing import Any

import numpy as np

Where = slice | np.ndarray
_WORTH, _BLOCK = 64, 8192
_RAMP = np.arange(_BLOCK)


def run_of(places: np.ndarray) -> Where:
    """``places`` (flat) as a slice if each follows the one before, else as they are."""
    count = places.size
    if count < _WORTH:
        return places
    first = int(places[0])
    if int(places[-1]) - first != count - 1 or not _ascends(places, first):
        return places
    return slice(first, first + count)


def _ascends(places: np.ndarray, first: int) -> bool:
    """Whether place i is ``first`` + i; in blocks that fit the cache."""
    for start in range(0, places.size, _BLOCK):
        block = places[start : start + _BLOCK]
        if not (block - _RAMP[: block.size] == first + start).all():
            return False
    return True


def pick(array: np.ndarray, where: Where) -> Any:
    """Elements of ``array``; a view of it for a slice."""
    return array[where] if isinstance(where, slice) else array.take(where)
