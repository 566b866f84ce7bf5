"""What is known of each tensor storage during one run: which elements were written, and a shadow.

A storage is known by its address in torch, which a weak reference keeps from being reused, so
nothing recorded of one storage is ever read as another's.
"""

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.multiprocessing.reductions import StorageWeakRef

from trivet.simulator._torch import torch
from trivet.simulator.elements import ElementType, element_type, has_element_type
from trivet.simulator.memory import sparse_zeros

Map = NDArray[np.bool_]
_UNSIGNED = {width: np.dtype(f"u{width}") for width in (1, 2, 4, 8)}
_PRUNE_ABOVE = 4096
_PRUNE_BYTES = 1 << 26
# Larger storages are taken as written: filling and mapping them would commit memory that a launch
# of chosen programs at production size never touches.
_WATCHED_BYTES = 1 << 30


class TooLargeError(MemoryError):
    """Something would take more memory than a run of chosen programs may."""


class Storage:
    """One storage: ``written`` per element of ``unit`` bytes (None = all), ``shadow`` in float64.

    ``origin`` says where unwritten memory came from; ``poison`` is the pattern it was filled with,
    so that an element written by means nobody watches (NumPy, C++) still counts as written.
    """

    __slots__ = ("origin", "poison", "shadow", "shadow_dtype", "unit", "weak", "written")

    def __init__(self, weak: StorageWeakRef) -> None:
        self.weak = weak
        self.written: Map | None = None
        self.unit = 1
        self.origin = ""
        self.poison: ElementType | None = None
        self.shadow: torch.Tensor | None = None
        self.shadow_dtype: torch.dtype | None = None

    def map_in(self, unit: int) -> Map:
        """Return the written map per element of ``unit`` bytes; writes into it are kept."""
        assert self.written is not None
        if unit != self.unit:
            self._refuse_large()
            per_byte = np.repeat(self.written, self.unit)
            whole = len(per_byte) // unit * unit
            self.written = np.asarray(per_byte[:whole].reshape(-1, unit).all(axis=1))
            self.unit = unit
        return self.written

    @property
    def expired(self) -> bool:
        """Whether torch has freed the storage."""
        return bool(self.weak.expired())  # type: ignore[no-untyped-call]

    def _refuse_large(self) -> None:
        if self.size > _WATCHED_BYTES:
            raise TooLargeError(
                f"memory from {self.origin} is seen in elements of two widths, which takes more "
                f"memory than there may be at its {self.size / 2**30:.1f} GiB"
            )

    @property
    def size(self) -> int:
        """Bytes that the map stands for, 0 without one."""
        return 0 if self.written is None else self.written.size * self.unit

    def settle(self) -> None:
        """Forget the map once everything was written; large ones are kept."""
        if self.written is not None and self.size <= _WATCHED_BYTES and self.written.all():
            self.written = None
            self.poison = None


class Storages:
    """Every storage of a run about which something is known."""

    def __init__(self) -> None:
        self._known: dict[int, Storage] = {}
        self._limit = _PRUNE_ABOVE
        self._bytes = 0

    def find(self, tensor: torch.Tensor) -> Storage | None:
        """Return what is known of the storage behind ``tensor``, None when nothing is."""
        return self._known.get(tensor.untyped_storage()._cdata)

    def of(self, tensor: torch.Tensor) -> Storage:
        """Return the record of the storage behind ``tensor``, new if need be."""
        storage = tensor.untyped_storage()
        found = self._known.get(storage._cdata)
        if found is None:
            self._bytes += storage.nbytes()
            self._prune()
            weak = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            found = self._known[storage._cdata] = Storage(weak)
        return found

    def forget(self) -> None:
        """Drop everything at the end of a run."""
        self._known.clear()

    def __iter__(self) -> Iterator[Storage]:
        return iter(self._known.values())

    def _prune(self) -> None:
        if len(self._known) < self._limit and self._bytes < _PRUNE_BYTES:
            return
        self._bytes = 0
        self._known = {k: s for k, s in self._known.items() if not s.expired}
        self._limit = max(_PRUNE_ABOVE, 2 * len(self._known))


def is_plain(value: object) -> bool:
    """Return whether ``value`` is a dense tensor in the CPU's memory that kernels can see."""
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and has_element_type(value.dtype)
    )


def flat_array(tensor: torch.Tensor, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the whole storage behind ``tensor`` as a flat array that shares its memory.

    The array does not keep the storage alive.
    """
    storage = tensor.untyped_storage()
    count = storage.nbytes() // dtype.itemsize
    if not count:
        return np.empty(0, dtype)
    address = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    return np.frombuffer(memoryview(address), dtype, count)


def window(
    flat: NDArray[Any], offset: int, shape: Sequence[int], strides: Sequence[int]
) -> NDArray[Any]:
    """Return a strided view of ``flat``; offset and strides in elements."""
    if 0 in shape:
        return np.empty(tuple(shape), flat.dtype)
    size = flat.itemsize
    return np.ndarray(
        tuple(shape), flat.dtype, flat, offset * size, tuple(stride * size for stride in strides)
    )


def window_of(flat: NDArray[Any], tensor: torch.Tensor) -> NDArray[Any]:
    """Return the part of ``flat``, an array per element of the storage, that ``tensor`` shows."""
    return window(flat, int(tensor.storage_offset()), tensor.shape, tensor.stride())


def written_map(storage: Storage, tensor: torch.Tensor) -> Map:
    """Return the written map in ``tensor``'s elements, with what unwatched writers wrote added."""
    unit = element_type(tensor.dtype).size
    if storage.poison is not None:
        changed = _differs(tensor, storage.poison)
        width = storage.poison.size
        if width != storage.unit:
            changed = np.repeat(changed, width)
            whole = len(changed) // storage.unit * storage.unit
            changed = np.asarray(changed[:whole].reshape(-1, storage.unit).any(axis=1))
        assert storage.written is not None
        storage.written[: len(changed)] |= changed
    return storage.map_in(unit)


def _differs(tensor: torch.Tensor, poison: ElementType) -> Map:
    bits = flat_array(tensor, _UNSIGNED[poison.size])
    return np.asarray(bits != _UNSIGNED[poison.size].type(poison.poison))


def mark_sparse(storages: Storages, tensor: torch.Tensor, origin: str) -> None:
    """Record that nothing has been written yet to the storage of ``tensor``, of any size.

    The map takes memory only where something is written; what the storage holds stays.
    """
    storage = storages.of(tensor)
    storage.unit = tensor.dtype.itemsize
    storage.written = sparse_zeros(tensor.untyped_storage().nbytes() // storage.unit, bool)
    storage.origin, storage.poison, storage.shadow = origin, None, None


def mark_unwritten(storages: Storages, tensor: torch.Tensor, origin: str) -> None:
    """Record that nothing has been written yet to the storage of ``tensor``, and poison it."""
    kind = element_type(tensor.dtype)
    bits = flat_array(tensor, _UNSIGNED[kind.size])
    if not 0 < bits.nbytes <= _WATCHED_BYTES:
        return
    bits[...] = _UNSIGNED[kind.size].type(kind.poison)
    storage = storages.of(tensor)
    storage.written = np.zeros(bits.size, bool)
    storage.unit, storage.origin, storage.poison = kind.size, origin, kind
    storage.shadow = None


def mark_view_unwritten(storages: Storages, tensor: torch.Tensor, origin: str) -> None:
    """Record that the elements ``tensor`` shows, and only they, are unwritten; poison them."""
    kind = element_type(tensor.dtype)
    flat = flat_array(tensor, _UNSIGNED[kind.size])
    if not math.prod(tensor.shape) or flat.nbytes > _WATCHED_BYTES:
        return
    storage = storages.of(tensor)
    if storage.written is None:
        storage.written, storage.unit = np.ones(flat.size, bool), kind.size
    window_of(storage.map_in(kind.size), tensor)[...] = False
    window_of(flat, tensor)[...] = _UNSIGNED[kind.size].type(kind.poison)
    storage.origin, storage.poison = origin, kind
    storage.shadow = None
