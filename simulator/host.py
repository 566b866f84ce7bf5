"""The host watch: what the wrapper around the launches does to memory.

A dispatch mode sees every ATen operation below autograd, whatever name it was imported under. It
knows which elements were ever written, reports operations that read others, fills fresh memory
with a poison, and, when asked, keeps a float64 shadow of every tensor.
"""

import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from trivet.simulator._torch import torch
from trivet.simulator.faults import Fault
from trivet.simulator.held_errors import HeldErrors
from trivet.simulator.large import LargeMemory
from trivet.simulator.nested import leaves, mapped
from trivet.simulator.operators import Operator, operator
from trivet.simulator.shadow import Shadows
from trivet.simulator.storages import (
    Map,
    Storage,
    Storages,
    is_plain,
    mark_sparse,
    mark_unwritten,
    mark_view_unwritten,
    window_of,
    written_map,
)
from trivet.simulator.user_code import user_line

_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


class HostWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches one call of a wrapper; ``faults`` holds what its own operations did wrong.

    ``arguments`` are the floats it is called with; ``partial`` says that only chosen programs of
    each launch run, at sizes of which no host operation may touch everything.
    """

    def __init__(
        self, *, shadow: bool = False, arguments: Collection[float] = (), partial: bool = False
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.storages = Storages()
        self.shadows = Shadows(self.storages, arguments) if shadow else None
        self.large = LargeMemory(self.storages) if partial else None
        self.errors: HeldErrors | None = None
        self.faults: list[Fault] = []
        self._seen: set[tuple[str, str]] = set()
        self.broken: Exception | None = None
        self.rounded = ""
        self._native_error: Exception | None = None
        self._maps = False
        self._events = 0
        _keep_compiler_out()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler at the first operation watched."""
        return False

    def mark_unwritten(self, tensor: torch.Tensor, origin: str) -> None:
        """Treat the elements that ``tensor`` shows as never written; they are poisoned."""
        if is_plain(tensor):
            mark = mark_view_unwritten if self.large is None else mark_sparse
            mark(self.storages, tensor, origin)
            self._maps = True

    def written(self, tensor: torch.Tensor) -> Map:
        """Return which elements were written by a launch or the host, same shape as ``tensor``.

        A copy, except where few programs ran: there, a view of a map too large to copy.
        """
        if not is_plain(tensor):
            return np.ones(tuple(tensor.shape), bool)
        storage = self.storages.find(tensor)
        if storage is None or storage.written is None:
            return np.ones(tuple(tensor.shape), bool)
        found = window_of(written_map(storage, tensor), tensor)
        return found if self.large is not None else found.copy()

    def shadow_of(self, tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        """Return a copy of the float64 shadow, same shape; None for integers or without shadows."""
        if self.shadows is None or not is_plain(tensor) or not tensor.is_floating_point():
            return None
        with _disable_current_modes():
            return self.shadows.of(tensor).clone().numpy()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the executor's own tensor operations pass unwatched."""
        self._events += 1
        with _disable_current_modes():
            yield

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operation and record what it did.

        An error of the watch itself is kept in ``broken``: it is no refusal by the wrapper.
        """
        try:
            return self._dispatch(func, args, kwargs or {})
        except Exception as error:
            if error is not self._native_error:
                self.broken = self.broken or error
            raise

    def _native(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            return func(*args, **kwargs)
        except Exception as error:
            self._native_error = error
            raise

    def _dispatch(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        known = operator(func)
        if not known.is_aten:
            return self._foreign(func, known, args, kwargs)
        self._events += 1
        if self.large is not None and not known.is_view:
            answer = self.large.answer(func, known, args, kwargs)
            if answer is not None:
                self._maps = True
                return answer
        if known.is_empty:
            return self._allocate(func, known, args, kwargs)
        if known.is_view:
            result = self._native(func, args, kwargs)
            if known.is_constant and self.shadows is not None and is_plain(result):
                self.shadows.constant(result)
            return result
        named = dict(zip(known.arguments, args, strict=False)) | dict(kwargs)
        checks = self._maps and self.large is None
        moved = self._check(func, known, named, args, kwargs) if checks else None
        mutated = [t for n in known.written for t in _tensors(named.get(n))]
        if self.shadows is None:
            result = self._native(func, args, kwargs)
        else:
            result = self._shadowed(func, known, args, kwargs, mutated)
        if self._maps:
            self._record(known, mutated, moved, result)
        if self.shadows is not None and known.name == "_local_scalar_dense":
            self._note_rounding(args[0])
        return result

    def _note_rounding(self, tensor: torch.Tensor) -> None:
        """Remember that a rounded number left the tensors, so that shadows go on with it."""
        shadow = self.shadow_of(tensor)
        if shadow is not None and not self.rounded and shadow.item() != tensor.double().item():
            line, source = user_line()
            self.rounded = f"{source} at {line}"

    def _allocate(
        self, func: Any, known: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        result = self._native(func, args, kwargs)
        if is_plain(result):
            mark_unwritten(self.storages, result, f"torch.{known.name} at {user_line()[0]}")
            self._maps = True
        return result

    def _shadowed(
        self,
        func: Any,
        known: Operator,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        mutated: list[torch.Tensor],
    ) -> Any:
        assert self.shadows is not None
        if known.reads_nothing and known.written:
            return self._native(func, args, kwargs)
        self.shadows.prepare(_tensors((args, kwargs)))
        result = self._native(func, args, kwargs)
        if known.is_random:
            self.shadows.take_native(mutated)
        else:
            self.shadows.replay(func, args, kwargs, result, mutated)
        if self.errors is not None:
            self.errors.moved(func, known, args, kwargs, result, self.shadows)
        return result

    def _foreign(
        self, func: Any, known: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Run an operator of `torch.library`: its own operations are watched one by one.

        What a compiled implementation writes is not seen and counts as written by the host.
        """
        before = self._events
        with _Reenter(self):
            result = self._native(func.redispatch, (_CPU, *args), kwargs)
        named = dict(zip(known.arguments, args, strict=False)) | dict(kwargs)
        mutated = [t for n in known.written for t in _tensors(named.get(n))]
        if self._events == before and mutated:
            self._record(known, mutated, None, result)
            if self.shadows is not None:
                self.shadows.take_native(mutated)
        return result

    def _check(
        self,
        func: Any,
        known: Operator,
        named: Mapping[str, Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Report unwritten elements that are read; return the map of what a move carries along."""
        if known.reads_nothing:
            return None
        carried = _carried(known, named)
        moved = None
        sources = [t for n in carried for t in _tensors(named[n]) if not self._complete(t)]
        if sources:
            found = self.storages.find(sources[0])
            assert found is not None
            self._open_maps(t for n in known.written for t in _tensors(named[n]))
            flags = self._move(func, known, args, kwargs)
            moved = None if flags is None else (flags, found.origin)
        spared = known.replaced if moved is None else {*known.replaced, *carried}
        for name, value in named.items():
            if name not in spared:
                for tensor in _tensors(value):
                    self._read(known, tensor)
        return moved

    def _move(
        self, func: Any, known: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Repeat a move on the written maps; in-place moves change the maps themselves."""
        if known.name in ("clone", "_to_copy"):
            return self.written(args[0])

        def lifted(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return torch.from_numpy(self._map(value))
            return True

        names = dict(zip(known.arguments, args, strict=False))
        positional = [
            mapped(lifted, value) if name in known.moves else value for name, value in names.items()
        ]
        keywords = {k: mapped(lifted, v) if k in known.moves else v for k, v in kwargs.items()}
        if "value" in known.moves and "value" in known.arguments and "value" not in names:
            keywords["value"] = True
        try:
            return func(*positional, **keywords)
        except Exception:
            return None

    def _open_maps(self, tensors: Iterable[torch.Tensor]) -> None:
        """Give complete storages a map, so that unwritten elements can move into them."""
        for tensor in filter(is_plain, tensors):
            storage = self.storages.of(tensor)
            if storage.written is None:
                storage.unit = tensor.dtype.itemsize
                count = tensor.untyped_storage().nbytes() // storage.unit
                storage.written = np.ones(count, bool)

    def _map(self, tensor: torch.Tensor) -> Map:
        storage = self.storages.find(tensor) if is_plain(tensor) else None
        if storage is None or storage.written is None:
            return np.ones(tuple(tensor.shape), bool)
        return window_of(written_map(storage, tensor), tensor)

    def _complete(self, tensor: torch.Tensor) -> bool:
        storage = self.storages.find(tensor) if is_plain(tensor) else None
        return storage is None or storage.written is None or bool(self._map(tensor).all())

    def _read(self, known: Operator, tensor: torch.Tensor) -> None:
        if self._complete(tensor):
            return
        storage = self.storages.find(tensor)
        assert storage is not None
        self._report(known, storage, ~self._map(tensor))

    def _record(
        self, known: Operator, mutated: list[torch.Tensor], moved: Any, result: Any
    ) -> None:
        """Write into the maps what the operation wrote."""
        if known.reads_nothing:
            self._resized(known, mutated)
        elif moved is None:
            for tensor in mutated:
                self._write(tensor)
        elif not known.written and is_plain(result):
            self._carry(result, *moved)
        for tensor in mutated:
            storage = self.storages.find(tensor) if is_plain(tensor) else None
            if storage is not None:
                storage.settle()

    def _write(self, tensor: torch.Tensor) -> None:
        storage = self.storages.find(tensor) if is_plain(tensor) else None
        if storage is not None and storage.written is not None:
            window_of(storage.map_in(tensor.dtype.itemsize), tensor)[...] = True

    def _resized(self, known: Operator, mutated: list[torch.Tensor]) -> None:
        """Count the elements by which a storage grew as unwritten."""
        for tensor in mutated:
            storage = self.storages.find(tensor) if is_plain(tensor) else None
            if storage is None or storage.written is None:
                continue
            grown = tensor.untyped_storage().nbytes() // storage.unit - len(storage.written)
            if grown > 0:
                storage.written = np.concatenate([storage.written, np.zeros(grown, bool)])
                storage.poison = None

    def _carry(self, result: torch.Tensor, moved: Any, origin: str) -> None:
        flags = moved.numpy() if isinstance(moved, torch.Tensor) else moved
        if flags.all():
            return
        storage = self.storages.of(result)
        size = result.dtype.itemsize
        storage.written = np.ones(result.untyped_storage().nbytes() // size, bool)
        storage.unit, storage.origin = size, origin
        window_of(storage.written, result)[...] = flags

    def _report(self, known: Operator, storage: Storage, missing: Map) -> None:
        line, source = user_line()
        if (known.name, line) in self._seen:
            return
        self._seen.add((known.name, line))
        count = int(missing.sum())
        place = [int(axis) for axis in np.unravel_index(np.argmax(missing), missing.shape)]
        self.faults.append(
            Fault(
                kind="uninitialised",
                kernel="",
                argument=f"torch.{known.name}",
                index=f"element {place} of {list(missing.shape)}",
                program=(0, 0, 0),
                other_program=None,
                line=line,
                other_line=None,
                source=source,
                text=f"torch.{known.name} reads {count} of {math.prod(missing.shape)} elements "
                f"that nothing has written (memory from {storage.origin}), "
                f"the first at {place}, at {line}",
                lanes=count,
            )
        )


def _keep_compiler_out() -> None:
    """Keep torch.compile, once somebody has imported it, from tracing into the watch."""
    dispatch = HostWatch.__torch_dispatch__
    if "torch._dynamo" in sys.modules and not hasattr(dispatch, "_torchdynamo_disable"):
        hidden = torch.compiler.disable(dispatch)  # type: ignore[no-untyped-call]
        HostWatch.__torch_dispatch__ = hidden  # type: ignore[method-assign]


class _Reenter(TorchFunctionMode):
    """Puts the watch back for the Python implementation of an operator under dispatch."""

    def __init__(self, watch: HostWatch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one call of the implementation under the watch."""
        with self._watch:
            return func(*args, **(kwargs or {}))


def _carried(known: Operator, named: Mapping[str, Any]) -> list[str]:
    """Name the arguments whose elements travel unchanged in this very call."""
    if named.get("accumulate") or "reduce" in named:
        return []
    return [name for name in known.moves if name in named]


def _tensors(value: object) -> list[torch.Tensor]:
    return [leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]
