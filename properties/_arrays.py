"""Tensors as NumPy arrays of the same bits, and copies that keep strides, offsets and sharing."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray

# NumPy has no 8 or 16 bit brain floats of its own: the bits travel as integers.
_NARROW = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.int8, ml_dtypes.float8_e4m3fn),
    torch.float8_e4m3fnuz: (torch.int8, ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2: (torch.int8, ml_dtypes.float8_e5m2),
    torch.float8_e5m2fnuz: (torch.int8, ml_dtypes.float8_e5m2fnuz),
}
_INTEGER_OF_WIDTH: dict[int, type[np.generic]] = {
    1: np.uint8,
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
}


def numpy_of(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a contiguous NumPy copy of ``tensor``, same shape, same bits."""
    plain = tensor.detach().cpu()
    if plain.dtype not in _NARROW:
        return np.ascontiguousarray(plain.numpy()).copy().reshape(plain.shape)
    integer, narrow = _NARROW[plain.dtype]
    dense = torch.empty(plain.shape, dtype=plain.dtype)
    dense.copy_(plain)
    bits = dense.reshape(-1).view(integer).numpy().copy()
    values: NDArray[Any] = bits.view(narrow).reshape(tuple(plain.shape))
    return values


def bits_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the elements of ``array`` as unsigned integers, so that NaN and -0.0 compare."""
    flat = np.ascontiguousarray(array)
    if flat.dtype == np.bool_:
        return flat.view(np.uint8)
    return flat.view(_INTEGER_OF_WIDTH[flat.dtype.itemsize])


def differing(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two arrays of one shape and dtype differ in any bit; all NaNs are one value."""
    unlike = np.asarray(bits_of(first) != bits_of(second))
    if first.dtype.kind in "fV":
        both = np.isnan(first.astype(np.float64)) & np.isnan(second.astype(np.float64))
        unlike = unlike & ~both
    return unlike.reshape(first.shape)


def exact(array: NDArray[Any]) -> NDArray[Any]:
    """Return floats as float64 of the same value; integers and booleans as they are."""
    return array if array.dtype.kind in "iub" else array.astype(np.float64)


def copies_of(arguments: Mapping[str, object]) -> dict[str, object]:
    """Copy every tensor with its strides and offset; tensors that share storage go on sharing."""
    storages: dict[int, torch.Tensor] = {}
    return {
        name: _copy(value, storages) if isinstance(value, torch.Tensor) else value
        for name, value in arguments.items()
    }


def _copy(tensor: torch.Tensor, storages: dict[int, torch.Tensor]) -> torch.Tensor:
    storage = tensor.untyped_storage()
    key = storage.data_ptr() or id(tensor)
    if key not in storages:
        copied = torch.empty(0, dtype=torch.uint8)
        copied.set_(storage.clone())  # type: ignore[no-untyped-call]
        storages[key] = copied
    empty = torch.empty(0, dtype=tensor.dtype)
    view = empty.set_(
        storages[key].untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride()
    )
    return view.requires_grad_(tensor.requires_grad)


def storage_bits(tensor: torch.Tensor) -> bytes:
    """Return the whole storage behind ``tensor`` as bytes."""
    flat = torch.empty(0, dtype=torch.uint8)
    flat.set_(tensor.untyped_storage())
    return flat.numpy().tobytes()
