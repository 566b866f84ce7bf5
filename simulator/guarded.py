"""Which bytes of which storages no launch may write: those of read-only arguments alone."""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from trivet.simulator._torch import torch
from trivet.simulator.storages import is_plain, window

Guard = NDArray[np.bool_]


def guarded_storages(
    arguments: Mapping[str, object], read_only: Collection[str]
) -> dict[int, Guard | None]:
    """Return a guard for each storage, by address, that an argument in ``read_only`` lies in.

    None guards the whole storage. Where further arguments lie in it (tensors of one pool) it is
    an array over its bytes: those that a read-only argument shows and no other one does.
    """
    tensors = {name: t for name, t in arguments.items() if isinstance(t, torch.Tensor)}
    kept = [tensor for name, tensor in tensors.items() if name in read_only]
    others = [tensor for name, tensor in tensors.items() if name not in read_only]
    shared = {_address(tensor) for tensor in others}
    return {
        address: _guard(address, kept, others) if address in shared else None
        for address in map(_address, kept)
    }


def in_elements(guard: Guard, size: int) -> Guard:
    """Return ``guard`` over elements of ``size`` bytes: kept where any of their bytes is."""
    whole = guard[: len(guard) // size * size]
    return np.asarray(whole.reshape(-1, size).any(axis=1))


def _guard(address: int, kept: list[torch.Tensor], others: list[torch.Tensor]) -> Guard:
    mine = [tensor for tensor in kept if _address(tensor) == address]
    guard = np.zeros(mine[0].untyped_storage().nbytes(), bool)
    for tensors, value in ((mine, True), (others, False)):
        for tensor in tensors:
            if _address(tensor) == address and is_plain(tensor):
                _bytes_of(guard, tensor)[...] = value
    return guard


def _bytes_of(flat: Guard, tensor: torch.Tensor) -> Guard:
    size = tensor.dtype.itemsize
    strides = [stride * size for stride in tensor.stride()]
    start = int(tensor.storage_offset()) * size
    return window(flat, start, [*tensor.shape, size], [*strides, 1])


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
