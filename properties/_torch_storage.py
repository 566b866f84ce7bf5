"""What a tracer knows of torch storages, and of the tensors that show parts of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet.oracles._bounded import Bounded, Origin, part_origin, terms_of

Part = NDArray[Any]
Geometry = tuple[int, tuple[int, ...], tuple[int, ...]]


class Storage:
    """What is known of one storage: a flat Bounded over its memory, or the doubt of integers.

    ``seen`` are the numbers handed out since the last write, by geometry: the same tensor is the
    same number, and keeps how it was made.
    """

    __slots__ = ("base", "doubt", "owner", "seen")

    def __init__(self, owner: object, base: Bounded | None) -> None:
        self.owner = owner
        self.base = base
        self.doubt: Part | None = None
        self.seen: dict[Geometry, Bounded] = {}

    def freeze(self) -> None:
        """Give the numbers handed out their own memory: it is about to be written."""
        for number in self.seen.values():
            number.value, number.error = number.value.copy(), number.error.copy()
            number.terms = number.terms and number.terms.moved(np.copy)
        self.seen.clear()


def same_place(first: torch.Tensor, second: Any) -> bool:
    """Whether two tensors show the same part of one storage in the same way."""
    if not isinstance(second, torch.Tensor) or first.data_ptr() != second.data_ptr():
        return False
    return bool(first.shape == second.shape) and first.stride() == second.stride()


def strided(flat: Part, tensor: torch.Tensor) -> Part:
    """The part of a flat array that a tensor shows of its storage; writable."""
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), flat.dtype)
    width = flat.itemsize
    strides = [step * width for step in tensor.stride()]
    offset = int(tensor.storage_offset()) * width
    return np.ndarray(tuple(tensor.shape), flat.dtype, flat, offset, strides)


def reshaped_origin(number: Bounded, place: Geometry, known: Storage) -> Origin | None:
    """How a number was made, where a view shows it: a folded matrix product, or a part."""
    for seen, other in known.seen.items():
        folded = seen[0] == place[0] and other.size == number.size
        if folded and other.origin is not None and number.value.flags.c_contiguous:
            return other.origin if other.origin.kind == "product" else None
        key = _slices(place, seen)
        if key is not None:
            return part_origin(other, key)
    return None


def _slices(place: Geometry, whole: Geometry) -> tuple[slice, ...] | None:
    """The slices of a tensor that give a part of it, where both have the same strides."""
    (offset, shape, strides), (start, sizes, steps) = place, whole
    if strides != steps or shape == sizes or 0 in strides:
        return None
    left, key = offset - start, [slice(None)] * len(shape)
    for axis in sorted(range(len(shape)), key=lambda each: -strides[each]):
        first, left = divmod(left, strides[axis])
        if first < 0 or first + shape[axis] > sizes[axis]:
            return None
        key[axis] = slice(first, first + shape[axis])
    return tuple(key) if left == 0 else None


def owned(number: Bounded, operands: Sequence[Any]) -> Bounded:
    """`number` if its arrays are its own and dense, else a copy."""
    parts = (number.value, number.error)
    own = all(p.base is None and p.flags.c_contiguous and p.flags.writeable for p in parts)
    if own and not any(number is operand for operand in operands):
        return number
    value, error = (np.array(part, order="C") for part in parts)
    copied = Bounded(number.context, value, error, number.facts, number.origin)
    terms = terms_of(number)
    copied.terms = terms and terms.moved(np.array)
    return copied
