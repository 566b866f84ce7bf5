"""Virtual tensors: of any size, of which only the pages that somebody writes take memory."""

import math
import mmap
from collections.abc import Sequence
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from trivet.simulator._torch import torch
from trivet.simulator.elements import element_type
from trivet.simulator.pages import repeat, zero_pages

_CONTENT = 1 << 20
_pages: WeakValueDictionary[int, mmap.mmap] = WeakValueDictionary()
_blocks: WeakKeyDictionary[mmap.mmap, NDArray[np.uint8]] = WeakKeyDictionary()


def virtual_tensor(
    shape: Sequence[int],
    dtype: torch.dtype,
    block: NDArray[np.uint8] | None = None,
    strides: Sequence[int] | None = None,
) -> torch.Tensor:
    """Return a tensor of ``shape`` whose pages take memory only once they are written.

    Every page that nobody wrote holds its part of ``block``, bytes repeated over the whole
    storage: a whole number of pages (ValueError otherwise). Without one, storage holds the poison
    of ``dtype``, bits that no operation makes. ``strides`` in elements, dense when left out.
    """
    steps = dense_strides(shape) if strides is None else tuple(strides)
    last = sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))
    elements = 0 if 0 in shape else 1 + last
    content = poison_block(dtype) if block is None else block
    return _flat(elements, dtype, content).as_strided(tuple(shape), steps)


def zeros_tensor(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a dense tensor of zeros whose pages take memory only once they are written."""
    return _flat(math.prod(shape), dtype, None).as_strided(tuple(shape), dense_strides(shape))


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def poison_block(dtype: torch.dtype) -> NDArray[np.uint8]:
    """Return whole pages full of the poison of ``dtype``, as bytes."""
    kind = element_type(dtype)
    return np.full(_CONTENT // kind.size, kind.poison, f"u{kind.size}").view(np.uint8)


def pages_of(tensor: torch.Tensor) -> mmap.mmap | None:
    """Return the pages behind a virtual tensor, None for any other."""
    return _pages.get(tensor.untyped_storage().data_ptr())


def block_of(tensor: torch.Tensor) -> NDArray[np.uint8] | None:
    """Return the block that a tensor repeats from its first byte on, None for any other."""
    pages = pages_of(tensor)
    return None if pages is None or tensor.storage_offset() else _blocks.get(pages)


def whole_pages(dtype: torch.dtype, elements: int) -> int:
    """Return the smallest multiple of ``elements`` that fills whole pages."""
    return math.lcm(elements * dtype.itemsize, mmap.PAGESIZE) // dtype.itemsize


def _flat(elements: int, dtype: torch.dtype, block: NDArray[np.uint8] | None) -> torch.Tensor:
    if not elements:
        return torch.empty(0, dtype=dtype)
    pages = zero_pages(elements * dtype.itemsize)
    if block is not None:
        repeat(pages, block)
        _blocks[pages] = block
    flat = torch.frombuffer(pages, dtype=dtype, count=elements)
    _pages[flat.data_ptr()] = pages
    return flat
