"""Torch tensors with a given layout, whose storage outside the view holds poison."""

from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from trivet.properties._dtypes import DTYPES, Dtype
from trivet.properties._layouts import Geometry
from trivet.properties._stream import Shape

Array = NDArray[Any]

# Torch shares memory with NumPy only for the types that NumPy knows; others travel as integers.
_CARRIERS = {1: np.int8, 2: np.int16}
_INTEGER_POISON = 0x5A


def poison(dtype: Dtype) -> object:
    """What stands where nobody may look: NaN, or bytes 0x5A; True for bool."""
    if dtype.family == "float":
        return np.nan
    if dtype.family == "bool":
        return True
    return int.from_bytes(bytes([_INTEGER_POISON] * dtype.numpy.itemsize), "little")


def empty_storage(elements: int, dtype: Dtype) -> Array:
    """Flat storage full of poison."""
    with np.errstate(all="ignore"):
        return np.full(max(1, elements), poison(dtype)).astype(dtype.numpy)


def view(storage: Array, shape: Shape, place: Geometry) -> Array:
    """The elements of a view of flat storage, writable (not along repeated axes)."""
    strides = tuple(step * storage.itemsize for step in place.strides)
    # NumPy strides only types of its own: the others are viewed as integers of their width.
    own = storage.dtype.isbuiltin == 1
    bits = storage if own else storage.view(_CARRIERS[storage.itemsize])
    return as_strided(bits[place.offset :], shape, strides).view(storage.dtype)


def write(storage: Array, values: Array, place: Geometry) -> Array:
    """Write ``values`` (of a repeated axis only the first) and return what the view then holds."""
    target = view(storage, values.shape, place)
    index = tuple(slice(0, 1) if k in place.repeated else slice(None) for k in range(values.ndim))
    with np.errstate(all="ignore"):
        target[index] = values[index].astype(storage.dtype)
    held: Array = target.copy()
    return held


def as_torch(storage: Array, dtype: Dtype) -> torch.Tensor:
    """Flat storage as a torch tensor that shares its memory."""
    kind: torch.dtype = getattr(torch, dtype.name)
    if storage.dtype.isbuiltin == 1:
        return torch.from_numpy(storage)
    return torch.from_numpy(storage.view(_CARRIERS[storage.itemsize])).view(kind)


def torch_view(flat: torch.Tensor, shape: Shape, place: Geometry) -> torch.Tensor:
    """A strided view of flat storage."""
    return flat.as_strided(shape, place.strides, place.offset)


def stored_tensor(values: Array, dtype: str) -> torch.Tensor:
    """A dense tensor of ``values`` rounded to the storage type called ``dtype``, same shape."""
    storage = DTYPES[dtype]
    with np.errstate(all="ignore"):
        flat = np.ascontiguousarray(values).astype(storage.numpy).reshape(-1)
    if not flat.size:
        return torch.empty(values.shape, dtype=getattr(torch, storage.name))
    return as_torch(flat, storage).reshape(values.shape)
