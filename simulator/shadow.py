"""The float64 shadow of torch: every operation of the wrapper replayed without its rounding.

A shadow belongs to a storage and has one float64 element for each of its elements, so views and
in-place operations need nothing of their own. An operation that cannot be replayed (random
numbers, code outside ATen, an error) leaves the native result as the shadow.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from trivet.simulator._torch import torch
from trivet.simulator.nested import leaves, mapped
from trivet.simulator.storages import Storage, Storages, flat_array, is_plain

_CONSTANTS_UP_TO = 1024


class Shadows:
    """The shadows of one run; every method expects that no dispatch mode is watching.

    ``arguments`` are the floats that the host function was called with.
    """

    def __init__(self, storages: Storages, arguments: Collection[float] = ()) -> None:
        self._storages = storages
        self._arguments = arguments

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the shadow of ``tensor`` as a float64 view of the same shape; made on first use.

        Where the storage's shadow was kept in another dtype (a bit cast), a float64 copy of the
        native values, which writes do not reach.
        """
        storage = self._flat(tensor)
        if storage.shadow_dtype is not tensor.dtype or storage.shadow is None:
            return tensor.detach().double()
        return storage.shadow.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def array(self, tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the whole storage's shadow as a flat array that shares its memory.

        A shadow kept in another dtype (a bit cast) starts again from the native values.
        """
        storage = self._storages.of(tensor)
        if storage.shadow_dtype is not tensor.dtype:
            storage.shadow = None
        storage = self._flat(tensor)
        assert storage.shadow is not None
        return flat_array(storage.shadow, np.dtype(np.float64))

    def prepare(self, tensors: Iterable[torch.Tensor]) -> None:
        """Make the shadows of the floats an operation reads, before it can change them."""
        for tensor in tensors:
            if is_plain(tensor) and tensor.is_floating_point():
                self._flat(tensor)

    def constant(self, tensor: torch.Tensor) -> None:
        """Give a tensor made of Python numbers the values written in the source.

        The shortest decimal that rounds to the stored number stands for the number written; a
        number that the host function was called with stands for itself.
        """
        if tensor.dtype is not torch.float32 or not 0 < tensor.numel() <= _CONSTANTS_UP_TO:
            return
        flat = flat_array(tensor, np.dtype(np.float32))
        given = self._arguments
        written = np.array([float(v) if float(v) in given else float(str(v)) for v in flat])
        self._keep(tensor, torch.from_numpy(written))

    def replay(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: object,
        mutated: list[torch.Tensor],
    ) -> None:
        """Repeat on the shadows what ``function`` did natively and keep what it made or changed."""
        fresh = self._fresh(args, kwargs, result)
        changed = [t for t in mutated if is_plain(t) and t.is_floating_point()]
        if not fresh and not changed:
            return
        outcome = self._call(function, args, kwargs, {id(t) for t in mutated})
        if outcome is None:
            self.take_native(changed)
            return
        self.take_native(t for t in changed if self._flat(t).shadow_dtype is not t.dtype)
        values = list(leaves(outcome))
        for place, tensor in fresh:
            value = values[place] if place < len(values) else None
            if isinstance(value, torch.Tensor) and value.shape == tensor.shape:
                self._place(tensor, value)

    def take_native(self, tensors: Iterable[torch.Tensor]) -> None:
        """Set shadows to the native values, after something that was not replayed changed them."""
        for tensor in tensors:
            storage = self._storages.find(tensor) if is_plain(tensor) else None
            if storage is None or storage.shadow is None:
                continue
            if storage.shadow_dtype is tensor.dtype:
                self.of(tensor).copy_(tensor.detach())
            else:
                storage.shadow = None

    def _flat(self, tensor: torch.Tensor) -> Storage:
        storage = self._storages.of(tensor)
        count = _bytes(tensor) // (storage.shadow_dtype or tensor.dtype).itemsize
        if storage.shadow is None or len(storage.shadow) != count:
            count = _bytes(tensor) // tensor.dtype.itemsize
            native = torch.empty(0, dtype=tensor.dtype)
            native.set_(tensor.untyped_storage(), 0, (count,), (1,))
            storage.shadow = native.to(torch.float64, copy=True)
            storage.shadow_dtype = tensor.dtype
        return storage

    def _fresh(
        self, args: object, kwargs: object, result: object
    ) -> list[tuple[int, torch.Tensor]]:
        """List the float outputs that live in storage of their own, with their places."""
        given = {t.untyped_storage()._cdata for t in leaves((args, kwargs)) if is_plain(t)}
        return [
            (place, value)
            for place, value in enumerate(leaves(result))
            if is_plain(value)
            and value.is_floating_point()
            and value.untyped_storage()._cdata not in given
        ]

    def _call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        mutated: set[int],
    ) -> Any:
        """Return what the operation makes of the shadows, None when it cannot be replayed."""

        def lifted(value: Any) -> Any:
            if isinstance(value, torch.dtype):
                return torch.float64 if value.is_floating_point else value
            if not is_plain(value):
                return value
            if value.is_floating_point():
                return self.of(value)
            return value.clone() if id(value) in mutated else value

        default = torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.float64)
            return function(*mapped(lifted, args), **mapped(lifted, kwargs))
        except Exception:
            return None
        finally:
            torch.set_default_dtype(default)

    def _place(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        count = _bytes(tensor) // tensor.dtype.itemsize
        dense = value.dtype is torch.float64 and value.is_contiguous() and tensor.is_contiguous()
        if dense and value.numel() == count and value.untyped_storage().nbytes() == 8 * count:
            self._keep(tensor, value.detach().view(-1))
            return
        flat = torch.zeros(count, dtype=torch.float64)
        flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).copy_(value)
        self._keep(tensor, flat)

    def _keep(self, tensor: torch.Tensor, flat: torch.Tensor) -> None:
        storage = self._storages.of(tensor)
        storage.shadow, storage.shadow_dtype = flat, tensor.dtype


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()
