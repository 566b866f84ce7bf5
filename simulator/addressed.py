"""Tensors whose addresses a host function has asked for, so that kernels may take pointers to
them from memory: a table of pointers holds what `data_ptr` returned.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, NamedTuple

from torch.multiprocessing.reductions import StorageWeakRef

from trivet.simulator._torch import torch


class _Seen(NamedTuple):
    """A tensor without a hold on its memory."""

    storage: StorageWeakRef
    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Addressed:
    """The tensors of one run whose `data_ptr` was called, oldest first."""

    def __init__(self) -> None:
        self._seen: dict[object, _Seen] = {}

    def note(self, tensor: torch.Tensor) -> None:
        """Remember ``tensor``, but do not keep its memory alive."""
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        seen = _Seen(
            StorageWeakRef(storage),  # type: ignore[no-untyped-call]
            tensor.dtype,
            int(tensor.storage_offset()),
            tuple(tensor.shape),
            tuple(tensor.stride()),
        )
        self._seen[storage._cdata, *seen[1:]] = seen

    def tensors(self) -> list[torch.Tensor]:
        """Return those whose memory still lives."""
        found = []
        for seen in self._seen.values():
            storage = torch.UntypedStorage._new_with_weak_ptr(seen.storage.cdata)
            if storage is not None:
                tensor = torch.empty(0, dtype=seen.dtype)
                found.append(tensor.set_(storage, seen.offset, seen.shape, seen.strides))
        return found


_CURRENT: ContextVar[Addressed | None] = ContextVar("addressed", default=None)
_ADDRESS_OF = torch.Tensor.data_ptr
_LOCK = Lock()
_watching = 0


def _data_ptr(tensor: torch.Tensor) -> Any:
    current = _CURRENT.get()
    if current is not None:
        current.note(tensor)
    return _ADDRESS_OF(tensor)


@contextmanager
def addresses_noted(addressed: Addressed) -> Iterator[None]:
    """Note every tensor of this context whose `data_ptr` is called."""
    token = _CURRENT.set(addressed)
    _patch(1)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        _patch(-1)


def _patch(change: int) -> None:
    """Replace `torch.Tensor.data_ptr` while anybody watches."""
    global _watching
    with _LOCK:
        _watching += change
        if _watching == 1 and change == 1:
            torch.Tensor.data_ptr = _data_ptr  # type: ignore[assignment,method-assign]
        elif _watching == 0:
            del torch.Tensor.data_ptr
