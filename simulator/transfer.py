"""Tensors on their way to another process or device: sharing, strides and offsets survive."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.simulator._torch import torch
from trivet.simulator.nested import mapped
from trivet.simulator.storages import flat_array, is_plain

_BYTES = np.dtype(np.uint8)


@dataclass(frozen=True)
class Packed:
    """One tensor as a view: its place in a list of storages, dtype, shape, strides, offset."""

    storage: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    requires_grad: bool


@dataclass
class Parcel:
    """Values with every tensor packed, and the storages' bytes as NumPy arrays."""

    values: Any
    storages: list[NDArray[np.uint8]] = field(default_factory=list)


class Packing:
    """Packs values one after the other; a storage packed before keeps its number."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self._numbers: dict[int, int] = {}

    def pack(self, values: Any) -> Parcel:
        """Return ``values`` packed, with the bytes of every storage packed so far.

        Raises TypeError for tensors that do not lie dense in the CPU's memory.
        """
        packed = mapped(self._one, values)
        return Parcel(packed, [flat_array(t, _BYTES).copy() for t in self.tensors])

    def take_back(self, storages: list[NDArray[np.uint8]]) -> None:
        """Write bytes that came back into the storages they were packed from."""
        for tensor, content in zip(self.tensors, storages, strict=False):
            flat_array(tensor, _BYTES)[...] = content

    def known(self, tensors: list[torch.Tensor]) -> None:
        """Give storages the numbers they have on the other side."""
        for tensor in tensors:
            self._number(tensor)

    def _number(self, tensor: torch.Tensor) -> int:
        address = tensor.untyped_storage()._cdata
        if address not in self._numbers:
            self._numbers[address] = len(self.tensors)
            self.tensors.append(tensor)
        return self._numbers[address]

    def _one(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if not is_plain(value):
            raise TypeError(f"a {value.layout} tensor of {value.dtype} on {value.device}")
        return packed_view(value, self._number(value))


def packed_view(tensor: torch.Tensor, storage: int = 0) -> Packed:
    """Describe ``tensor`` as a view of the storage of that number."""
    return Packed(
        storage=storage,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        offset=int(tensor.storage_offset()),
        requires_grad=tensor.requires_grad and tensor.is_leaf,
    )


def unpack(
    parcel: Parcel, held: list[torch.Tensor] | None = None
) -> tuple[Any, list[torch.Tensor]]:
    """Return the values with tensors made of the parcel, and one tensor for each storage.

    The first storages are those of ``held``, where given: their tensors are used as they are.
    """
    bases = list(held or [])
    for content in parcel.storages[len(bases) :]:
        base = torch.empty(len(content), dtype=torch.uint8)
        flat_array(base, _BYTES)[...] = content
        bases.append(base)

    def one(value: Any) -> Any:
        return view_of(bases[value.storage], value) if isinstance(value, Packed) else value

    return mapped(one, parcel.values), bases


def view_of(base: torch.Tensor, packed: Packed) -> torch.Tensor:
    """Return a tensor on the storage of ``base`` as ``packed`` describes it."""
    empty = torch.empty(0, dtype=getattr(torch, packed.dtype), device=base.device)
    view: torch.Tensor = empty.set_(
        base.untyped_storage(), packed.offset, packed.shape, packed.strides
    )
    return view.requires_grad_(packed.requires_grad)
