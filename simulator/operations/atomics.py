"""Atomic updates: read-modify-write of every kind and compare-and-swap.

Programs of a chunk take their turns in order, and so do the lanes of a tile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trivet.simulator.access import (
    Lanes,
    checked_lanes,
    key_column,
)
from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation, Type
from trivet.simulator.memory import Allocation, View
from trivet.simulator.operations.descriptors import block_of
from trivet.simulator.operations.integers import integer_function
from trivet.simulator.operations.memory_access import access_of
from trivet.simulator.operations.registry import Handler, Unsupported, effect
from trivet.simulator.stored import Access, as_stored, taken, typed
from trivet.simulator.traffic import Kind
from trivet.simulator.values import Descriptor, Pointer, Value

_INTEGER = {
    "add": "arith.addi",
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
    "max": "arith.maxsi",
    "min": "arith.minsi",
    "umax": "arith.maxui",
    "umin": "arith.minui",
}
_FLOAT = {"fadd": "arith.addf", "add": "arith.addf", "max": "arith.maxnumf", "min": "arith.minnumf"}
_UNORDERED = frozenset({"add", "and", "or", "xor", "max", "min"})
_ACQUIRE = frozenset({"acquire", "acq_rel"})
_RELEASE = frozenset({"release", "acq_rel"})

Update = Callable[[Value, Value], Value]


def _update_of(kind: str, access: Access) -> Update:
    if kind == "exch":
        return lambda old, new: new
    element = access.kind.element
    table, lookup = (
        (_FLOAT, access.arithmetic.binary) if access.kind.is_float else (_INTEGER, integer_function)
    )
    function = lookup(table[kind], element) if kind in table else None
    if function is None:
        raise Unsupported(f"atomic {kind} of {element}")
    return function


def _turns(places: np.ndarray) -> list[np.ndarray]:
    """Groups of lanes without a common place; each place's lanes keep their order."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(places)])
    ranks = np.empty(len(places), np.int64)
    ranks[order] = np.arange(len(places)) - np.repeat(starts, lengths)
    if lengths.max() == 1:
        return [np.arange(len(places))]
    by_rank = np.argsort(ranks, kind="stable")
    return np.split(by_rank, np.cumsum(np.bincount(ranks))[:-1])


class _Atomic:
    """One atomic operation, prepared."""

    def __init__(self, operation: Operation, kind: Type, compiler: Compiler) -> None:
        self.access = access_of(operation, kind, compiler)
        self.used = compiler.is_used(operation)
        self.synchronises = self.access.rank == 0
        self._acquires = self.used and bool(_ACQUIRE & set(operation.words))
        overwrites = operation.name == "tt.atomic_store" or operation.words[:1] == ["exch"]
        self._reads = self.used or not overwrites
        self._releases = bool(_RELEASE & set(operation.words))

    def lanes(
        self,
        chunk: Chunk,
        number: int,
        pointer: Pointer,
        mask: np.ndarray | None,
        writes: bool = True,
    ) -> Lanes | None:
        """Live lanes, after bounds, shadow state and order between programs."""
        offsets = np.broadcast_to(pointer.offsets, (chunk.count, *self.access.kind.shape))
        kind: Kind = "update" if writes else "read"
        live = checked_lanes(self.access, chunk, number, offsets, mask, writes, kind)
        if live is None:
            return None
        launch, view = chunk.launch, chunk.launch.views[number]
        self._order(chunk, view, int(live.places[0]))
        if launch.sanitize:
            keys = live.select(key_column(self.access, chunk))
            self._watch(chunk, view, live, keys)
        if launch.scheduler is not None and self._reads:
            launch.scheduler.reads(view, int(live.places[0]), self.access.number)
        if writes and view.argument.allocation.initialised is not None:
            view.argument.allocation.initialised[live.places] = True
        return live

    def _watch(self, chunk: Chunk, view: View, live: Lanes, keys: np.ndarray) -> None:
        sanitizer = chunk.launch.sanitizer
        initialised = view.argument.allocation.initialised
        if initialised is not None:
            missing = np.flatnonzero(~initialised[live.places])
            if missing.size and self._reads:
                offset = int(live.places[missing[0]]) - view.argument.offset
                key = int(keys[missing[0]])
                sanitizer.report("uninitialised", view, offset, key, 0, missing.size)
        sanitizer.update(view, live.places, keys)

    def _order(self, chunk: Chunk, view: View, place: int) -> None:
        ordering = chunk.launch.ordering
        if ordering is None or not self.synchronises:
            return
        program, where = int(chunk.programs[0]), (id(view.argument.allocation), place)
        if self._acquires:
            ordering.acquire(program, where)
        if self._releases:
            ordering.release(program, where)
            chunk.renew_keys()


def _single_argument(pointer: Pointer) -> int:
    if isinstance(pointer.argument, int):
        return pointer.argument
    numbers = np.unique(pointer.argument)
    if numbers.size > 1:
        raise Unsupported("one atomic on several arguments at once")
    return int(numbers[0])


class _Update:
    """A read-modify-write, prepared; calling it returns the old elements if they are used."""

    def __init__(self, kind: str, atomic: _Atomic) -> None:
        self._atomic = atomic
        self._access = atomic.access
        self._function = _update_of(kind, atomic.access)
        plain = atomic.access.kind.element in ("f32", "f64", "i32", "i64")
        known = plain and kind in _UNORDERED | {"fadd"}
        self._ufunc = self._function if known and isinstance(self._function, np.ufunc) else None

    def __call__(
        self, chunk: Chunk, pointer: Pointer, value: Value, mask: np.ndarray | None
    ) -> Value:
        atomic, access = self._atomic, self._access
        number = _single_argument(pointer)
        chunk.launch.report.stores += 1
        live = atomic.lanes(chunk, number, pointer, mask)
        if live is None:
            return _nothing(access)
        allocation = chunk.launch.views[number].argument.allocation
        data, chosen = allocation.data, access.move(live.select, value)
        same = isinstance(chosen, np.ndarray) and data.dtype == chosen.dtype
        alone = not atomic.used and chunk.launch.scheduler is None
        if same and self._ufunc is not None and alone:
            self._ufunc.at(data, live.places, chosen)
            return None
        old = self._in_turns(data, live, chosen, allocation.element)
        _note_change(access, chunk, number, live, old)
        return _spread(access, chunk, live, old, allocation.element)

    def _in_turns(self, data: np.ndarray, live: Lanes, chosen: Value, stored_as: str) -> np.ndarray:
        access = self._access
        target = typed(data, access.kind.element)
        old = np.empty(live.places.shape, target.dtype)
        for turn in _turns(live.places):
            places = live.places[turn]
            before = taken(access, data, places, stored_as)
            old[turn] = target.take(places)
            after = self._function(before, access.move(_picker(turn), chosen))
            target[places] = as_stored(access, target, after, stored_as)
        return old


def _note_change(access: Access, chunk: Chunk, number: int, live: Lanes, old: np.ndarray) -> None:
    scheduler, view = chunk.launch.scheduler, chunk.launch.views[number]
    if scheduler is not None:
        now = typed(view.argument.allocation.data, access.kind.element).take(live.places)
        scheduler.writes(view, live.places, access.number, old, now)


def _picker(turn: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: array[turn]


def _nothing(access: Access) -> Value:
    """Old elements of an access without a live lane."""
    zero = access.poison("zero")
    return access.move(lambda array: array.reshape((1,) * (access.rank + 1)), zero)


@effect("tt.atomic_rmw")
def build_update(operation: Operation, compiler: Compiler) -> Handler:
    """Read-modify-write; operands are pointer, value, mask; returns the old elements."""
    atomic = _Atomic(operation, operation.result_types[0], compiler)
    update = _Update(operation.words[0], atomic)

    def run(chunk: Chunk, pointer: Pointer, value: Value, mask: np.ndarray | None = None) -> Value:
        return update(chunk, pointer, value, mask)

    return run


@effect("tt.atomic_store")
def build_store(operation: Operation, compiler: Compiler) -> Handler:
    """Atomic store; operands are pointer, value, mask."""
    kind = operation.operand_types[0]
    atomic = _Atomic(operation, Type(kind.shape, kind.pointee), compiler)
    update = _Update("exch", atomic)

    def run(chunk: Chunk, pointer: Pointer, value: Value, mask: np.ndarray | None = None) -> None:
        update(chunk, pointer, value, mask)

    return run


@effect("tt.atomic_load")
def build_load(operation: Operation, compiler: Compiler) -> Handler:
    """Atomic load; operands are pointer, mask."""
    atomic = _Atomic(operation, operation.result_types[0], compiler)
    access = atomic.access

    def run(chunk: Chunk, pointer: Pointer, mask: np.ndarray | None = None) -> Value:
        number = _single_argument(pointer)
        chunk.launch.report.loads += 1
        live = atomic.lanes(chunk, number, pointer, mask, writes=False)
        if live is None:
            return _nothing(access)
        allocation = chunk.launch.views[number].argument.allocation
        old = typed(allocation.data, access.kind.element).take(live.places)
        return _spread(access, chunk, live, old, allocation.element)

    return run


@effect("tt.atomic_poll")
def build_poll(operation: Operation, compiler: Compiler) -> Handler:
    """Wait for a value; operands are pointer, expected, timeout.

    Without a time limit the program gives its turn away until the value is there; with one, a
    value that is not there yet comes too late.
    """
    pointer_kind = operation.operand_types[0]
    atomic = _Atomic(operation, Type(pointer_kind.shape, pointer_kind.pointee), compiler)
    access = atomic.access

    def look(chunk: Chunk, pointer: Pointer, expected: Value) -> np.ndarray:
        number = _single_argument(pointer)
        chunk.launch.report.loads += 1
        live = atomic.lanes(chunk, number, pointer, None, writes=False)
        shape = (chunk.count, *access.kind.shape)
        matched = np.ones(shape, bool)
        if live is not None:
            allocation = chunk.launch.views[number].argument.allocation
            current = taken(access, allocation.data, live.places, allocation.element)
            lanes = live.select(np.arange(matched.size).reshape(shape))
            matched.reshape(-1)[lanes] = current == access.move(live.select, expected)
        return matched

    def run(chunk: Chunk, pointer: Pointer, expected: Value, *timeout: Value) -> np.ndarray:
        matched, scheduler, loop = look(chunk, pointer, expected), chunk.launch.scheduler, object()
        while scheduler is not None and not (timeout or matched.all()):
            scheduler.pause(loop, [])
            matched = look(chunk, pointer, expected)
        return matched

    return run


@effect("tt.descriptor_reduce")
def build_descriptor_update(operation: Operation, compiler: Compiler) -> Handler:
    """Atomic update of a block of a tensor; elements outside it are dropped."""
    block = operation.operand_types[0]
    atomic = _Atomic(operation, Type(block.shape, block.pointee), compiler)
    update = _Update(operation.words[0], atomic)

    def run(chunk: Chunk, descriptor: Descriptor, *operands: Value) -> None:
        *starts, value = operands
        pointer, inside = block_of(descriptor, starts)
        update(chunk, pointer, value, inside)

    return run


def _spread(access: Access, chunk: Chunk, live: Lanes, old: np.ndarray, stored_as: str) -> Value:
    """Old elements at their lanes of the tile; lanes that took no part hold zero."""
    shape = (chunk.count, *access.kind.shape)
    numbers = live.select(np.arange(np.prod(shape)).reshape(shape))
    tile = np.zeros(int(np.prod(shape)), old.dtype)
    tile[numbers] = old
    return taken(access, tile, np.arange(tile.size).reshape(shape), stored_as)


@effect("tt.atomic_cas")
def build_swap(operation: Operation, compiler: Compiler) -> Handler:
    """Compare-and-swap; operands are pointer, expected, desired; returns the old elements."""
    atomic = _Atomic(operation, operation.result_types[0], compiler)
    access = atomic.access

    def swapped(old: Value, expected: Value, desired: Value) -> Value:
        equal = old == expected
        return access.move(lambda a, b: np.where(equal, a, b), desired, old)

    def in_turns(allocation: Allocation, live: Lanes, wanted: Value, new: Value) -> np.ndarray:
        target = typed(allocation.data, access.kind.element)
        old = np.empty(live.places.shape, target.dtype)
        for turn in _turns(live.places):
            places, pick = live.places[turn], _picker(turn)
            before = taken(access, allocation.data, places, allocation.element)
            old[turn] = target.take(places)
            after = swapped(before, access.move(pick, wanted), access.move(pick, new))
            target[places] = as_stored(access, target, after, allocation.element)
        return old

    def run(chunk: Chunk, pointer: Pointer, expected: Value, desired: Value) -> Value:
        number = _single_argument(pointer)
        chunk.launch.report.stores += 1
        live = atomic.lanes(chunk, number, pointer, None)
        if live is None:
            return _nothing(access)
        allocation = chunk.launch.views[number].argument.allocation
        wanted, new = access.move(live.select, expected), access.move(live.select, desired)
        old = in_turns(allocation, live, wanted, new)
        _note_change(access, chunk, number, live, old)
        return _spread(access, chunk, live, old, allocation.element)

    return run
