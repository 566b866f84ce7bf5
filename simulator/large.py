"""Host operations at production size, where only chosen programs of each launch run.

Fresh memory is virtual, constants too; an operation that would fill memory by gigabytes is refused
before it starts. What the programs left out would have written is nothing the host is blamed for.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from trivet.simulator._torch import torch
from trivet.simulator.elements import has_element_type
from trivet.simulator.nested import leaves, mapped
from trivet.simulator.operators import Operator
from trivet.simulator.pages import repeat
from trivet.simulator.repeated import repeated
from trivet.simulator.storages import Storages, TooLargeError, flat_array, is_plain, mark_sparse
from trivet.simulator.user_code import user_line
from trivet.simulator.virtual import pages_of, poison_block, virtual_tensor

# From here on memory is virtual.
_LARGE_BYTES = 1 << 26
# What the results of one host operation may take.
_ROOM_BYTES = 1 << 30
_CONTENT_BYTES = 1 << 20
_WIDEST = 8
_CONSTANTS = {"zeros": 0, "new_zeros": 0, "zeros_like": 0, "ones": 1, "new_ones": 1, "ones_like": 1}
_FULL = frozenset({"full", "new_full", "full_like"})
_FILLS = frozenset({"zero_", "fill_"})


class LargeMemory:
    """Answers those host operations of one run whose arguments or results are large."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages

    def answer(
        self, func: Any, known: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> torch.Tensor | None:
        """Return the result where it is made here, None where the operation may run as it is.

        Raises TooLargeError where it may not.
        """
        if known.name in _FILLS and _is_large(args[0]):
            return self._filled(known, args)
        named = dict(_named(known, args, kwargs))
        if not _may_be_large(named):
            return self._small(func, known, args, kwargs) if known.is_empty else None
        shape = _shape(func, known, args, kwargs)
        if known.is_empty and isinstance(shape, torch.Tensor) and has_element_type(shape.dtype):
            return self._empty(known, shape)
        size = sum(map(_bytes, leaves(shape)))
        if size > _LARGE_BYTES and (known.name in _CONSTANTS or known.name in _FULL):
            value = _CONSTANTS.get(known.name, named.get("fill_value"))
            return _constant(shape, value)
        result = repeated(func, known, args, kwargs, shape)
        if result is None:
            _check_room(known, named, shape, size)
        return result

    def _small(
        self, func: Any, known: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> torch.Tensor | None:
        """Return fresh memory of everyday size, with the contents of large memory."""
        fresh: torch.Tensor = func(*args, **kwargs)
        if is_plain(fresh):
            flat = flat_array(fresh, np.dtype(np.uint8))
            flat[...] = np.resize(_unwritten(fresh.dtype), flat.size)
            mark_sparse(self._storages, fresh, f"torch.{known.name} at {user_line()[0]}")
        return fresh

    def _empty(self, known: Operator, shape: torch.Tensor) -> torch.Tensor:
        dtype = shape.dtype
        fresh = virtual_tensor(shape.shape, dtype, _unwritten(dtype), shape.stride())
        mark_sparse(self._storages, fresh, f"torch.{known.name} at {user_line()[0]}")
        return fresh

    def _filled(self, known: Operator, args: tuple[Any, ...]) -> torch.Tensor:
        tensor: torch.Tensor = args[0]
        pages = pages_of(tensor)
        whole = tensor.numel() * tensor.dtype.itemsize == tensor.untyped_storage().nbytes()
        value = args[1] if known.name == "fill_" else 0
        if pages is None or not whole or isinstance(value, torch.Tensor):
            _refuse(known, _bytes(tensor))
        repeat(pages, _content(value, tensor.dtype))
        self._storages.of(tensor).written = None
        return tensor


def _named(
    known: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    return [*zip(known.arguments, args, strict=False), *kwargs.items()]


def _may_be_large(named: Mapping[str, Any]) -> bool:
    """Whether an argument is large, or so many elements are asked for."""
    size = named.get("size")
    if isinstance(size, Sequence) and math.prod(size) * _WIDEST > _LARGE_BYTES:
        return True
    return any(map(_is_large, leaves(named)))


def _check_room(known: Operator, named: Mapping[str, Any], shape: Any, size: int) -> None:
    written = [value for name, value in named.items() if name in known.written]
    taken = max(size, *map(_bytes, leaves(written)), 0)
    if shape is None:
        taken = max(taken, *map(_bytes, leaves(named)))
    if size > _ROOM_BYTES or shape is None or any(map(_is_large, leaves(written))):
        _refuse(known, taken)


def _unwritten(dtype: torch.dtype) -> NDArray[np.uint8]:
    """Return the contents of memory that nobody wrote: poison, or zeros for whole numbers.

    Later launches take those for places, and what the programs left out would have written there
    is legal.
    """
    return poison_block(dtype) if dtype.is_floating_point else _content(0, dtype)


def _constant(shape: torch.Tensor, value: Any) -> torch.Tensor:
    return virtual_tensor(shape.shape, shape.dtype, _content(value, shape.dtype), shape.stride())


def _content(value: Any, dtype: torch.dtype) -> NDArray[np.uint8]:
    """Return a block of one value, as bytes."""
    count = _CONTENT_BYTES // dtype.itemsize
    full = torch.full((count,), value, dtype=dtype)
    return flat_array(full, np.dtype(np.uint8)).copy()


def _shape(func: Any, known: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the results without their memory, None where the values decide their sizes."""

    def lifted(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("meta")
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")

    keywords = mapped(lifted, dict(kwargs))
    if "device" in known.arguments:
        keywords["device"] = torch.device("meta")
    try:
        return func(*mapped(lifted, args), **keywords)
    except Exception:
        return None


def _bytes(value: Any) -> int:
    return value.numel() * value.dtype.itemsize if isinstance(value, torch.Tensor) else 0


def _is_large(value: Any) -> bool:
    return _bytes(value) > _LARGE_BYTES


def _refuse(known: Operator, size: int) -> NoReturn:
    line, source = user_line()
    raise TooLargeError(
        f"torch.{known.name} at {line} would take {size / 2**30:.1f} GiB at production size: "
        f"{source}"
    )
