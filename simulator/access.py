"""Loads, stores and atomic updates of a chunk: bounds, masks, fills and shadow state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.simulator.chunk import Chunk
from trivet.simulator.memory import View
from trivet.simulator.runs import Where, run_of
from trivet.simulator.stored import Access, as_stored, decoded, taken, typed
from trivet.simulator.values import Pointer, Value
from trivet.simulator.wrapped import settled

if TYPE_CHECKING:
    from trivet.simulator.traffic import Kind


@dataclass(eq=False)
class Lanes:
    """Live lanes of one access: flat places in the allocation and where they lie in the tile.

    ``select`` flattens anything that broadcasts to the tile of the chunk to the live lanes.
    """

    places: np.ndarray
    select: Callable[[Any], Any]

    @cached_property
    def where(self) -> Where:
        """The places, as a slice if they are one."""
        return run_of(self.places)


def checked(
    access: Access, chunk: Chunk, view: View, offsets: np.ndarray, mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Places counted from the view's lowest element, and the mask without illegal lanes."""
    places = offsets - view.lowest if view.lowest else offsets
    outside = view.outside(places)
    if outside is None:
        return places, mask
    bad = outside if mask is None else outside & mask
    if bad.any():
        _report_outside(access, chunk, view, offsets, bad)
        mask = ~outside if mask is None else mask & ~outside
    return np.where(outside, 0, places), mask


def _report_outside(
    access: Access, chunk: Chunk, view: View, offsets: np.ndarray, bad: np.ndarray
) -> None:
    if not chunk.launch.sanitize:
        return
    bad, offsets = np.broadcast_arrays(bad, offsets)
    first = tuple(np.argwhere(bad)[0])
    _report(access, chunk, "out_of_bounds", view, int(offsets[first]), first[0], bad)


def _report(
    access: Access,
    chunk: Chunk,
    kind: str,
    view: View,
    offset: int,
    row: int,
    flags: np.ndarray,
) -> None:
    """Report the lanes in ``flags``; a row that stands for all programs counts for the first."""
    programs = chunk.programs if chunk.active is None else chunk.programs[chunk.active]
    if flags.shape[0] > 1:
        key = int(chunk.keys[row])
        lanes = int(np.count_nonzero(flags))
    else:
        key = int(chunk.keys[0 if chunk.active is None else int(np.argmax(chunk.active))])
        lanes = int(np.count_nonzero(flags)) * len(programs)
    chunk.launch.sanitizer.report(kind, view, offset, key + access.number, 0, lanes)


def live_lanes(
    chunk: Chunk, access: Access, view: View, places: np.ndarray, mask: np.ndarray | None
) -> Lanes:
    """Lanes of every active program, uniform accesses spread over the programs."""
    shape = (chunk.count, *access.kind.shape)
    if chunk.active is not None:
        flags = chunk.active.reshape((-1,) + (1,) * access.rank)
        mask = flags if mask is None else mask & flags
    base = view.argument.offset + view.lowest
    if base:
        places = places + base
    if mask is None:
        return Lanes(
            np.broadcast_to(places, shape).reshape(-1),
            lambda array: np.broadcast_to(array, shape).reshape(-1),
        )
    chosen = np.flatnonzero(np.broadcast_to(mask, shape))
    rows = chosen // max(1, access.kind.size)

    def select(array: Any) -> Any:
        if array.size == chunk.count and array.shape[0] == chunk.count:
            return array.reshape(-1)[rows]
        return np.broadcast_to(array, shape).reshape(-1)[chosen]

    return Lanes(select(places), select)


def load(
    access: Access, chunk: Chunk, pointer: Pointer, mask: np.ndarray | None, other: Value | None
) -> Value:
    """Tile of the elements behind ``pointer``; masked lanes hold ``other`` or the poison."""
    launch = chunk.launch
    launch.report.loads += 1
    if other is None:
        other = access.poison(launch.poison)
    argument = pointer.argument
    if isinstance(argument, int):
        return _load_one(access, chunk, argument, pointer.offsets, mask, other)
    value = other
    for number in np.unique(argument):
        mine = argument == number
        part = mine if mask is None else mine & mask
        value = _load_one(access, chunk, int(number), pointer.offsets, part, value)
    return value


def _load_one(
    access: Access,
    chunk: Chunk,
    number: int,
    offsets: np.ndarray,
    mask: np.ndarray | None,
    other: Value,
) -> Value:
    view = chunk.launch.views[number]
    mask = chunk.narrow(mask, offsets, access.rank)
    if chunk.launch.meter is not None:
        chunk.launch.meter.note("read", access, chunk, view, offsets, mask)
    offsets = settled(access, chunk, view, offsets, mask)
    value = _load_run(access, chunk, number, view, offsets, mask)
    if value is None:
        places, mask = checked(access, chunk, view, offsets, mask)
        if chunk.launch.sanitize:
            _watch_read(access, chunk, number, view, places, mask)
        if not view.extent:
            return other
        value = taken(access, view.data, places, view.argument.allocation.element)
    if mask is None:
        return value
    flags = mask
    return access.move(lambda array, fill: _filled(array, flags, fill), value, other)


def _load_run(
    access: Access,
    chunk: Chunk,
    number: int,
    view: View,
    offsets: np.ndarray,
    mask: np.ndarray | None,
) -> Value | None:
    """Elements that lie one after the other, copied; None where more has to be looked at.

    Lanes behind the end of the view are zero; all of them must be masked.
    """
    launch, allocation = chunk.launch, view.argument.allocation
    watched = number in launch.written or allocation.initialised is not None
    if view.valid is not None or (launch.sanitize and watched):
        return None
    where = chunk.run_of(offsets)
    if where is None or where.start < view.lowest:
        return None
    held = view.data[where.start - view.lowest : where.stop - view.lowest]
    if held.size < offsets.size:
        if mask is None or mask.shape != offsets.shape or mask.reshape(-1)[held.size :].any():
            return None
        whole = np.zeros(offsets.size, held.dtype)
        whole[: held.size] = held
    else:
        whole = held.copy()
    if launch.sanitize:
        launch.report.elements += offsets.size if mask is None else _lanes_in(mask, offsets.shape)
    elements = typed(whole, access.kind.element).reshape(offsets.shape)
    return decoded(access, elements, allocation.element)


def _lanes_in(mask: np.ndarray, shape: tuple[int, ...]) -> int:
    return int(np.count_nonzero(np.broadcast_to(mask, shape)))


def _filled(array: np.ndarray, flags: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """``fill`` where ``flags`` are off; in place when the shapes allow it."""
    shape = np.broadcast_shapes(array.shape, flags.shape, fill.shape)
    if array.shape != shape or array.dtype != fill.dtype:
        return np.where(flags, array, fill)
    np.copyto(array, fill, where=~flags)
    return array


def _watch_read(
    access: Access,
    chunk: Chunk,
    number: int,
    view: View,
    places: np.ndarray,
    mask: np.ndarray | None,
) -> None:
    launch = chunk.launch
    lanes = np.broadcast_shapes(places.shape, mask.shape) if mask is not None else places.shape
    count = places.size if mask is None else _lanes_in(mask, lanes)
    launch.report.elements += count * (chunk.count if lanes[0] == 1 else 1)
    if not view.extent:
        return
    initialised = view.argument.allocation.initialised
    if initialised is not None:
        _watch_initialised(access, chunk, view, places, mask, initialised)
    if number in launch.written:
        live = live_lanes(chunk, access, view, places, mask)
        keys = live.select(key_column(access, chunk))
        if launch.scheduler is not None and live.places.size:
            launch.scheduler.reads(view, int(live.places[0]), access.number)
        watch = launch.sanitizer.update if access.relaxed else launch.sanitizer.read
        watch(view, live.places, keys)


def key_column(access: Access, chunk: Chunk) -> np.ndarray:
    """Shadow keys of the programs at this site, as a column over the tile."""
    keys = chunk.keys if access.rank else chunk.scalar_keys
    keys = keys + keys.dtype.type(access.number)
    column: np.ndarray = keys.reshape((-1,) + (1,) * access.rank)
    return column


def _watch_initialised(
    access: Access,
    chunk: Chunk,
    view: View,
    places: np.ndarray,
    mask: np.ndarray | None,
    initialised: np.ndarray,
) -> None:
    start = view.argument.offset + view.lowest
    missing = ~initialised[start : start + view.extent].take(places)
    if mask is not None:
        missing = missing & mask
    if missing.any():
        first = tuple(np.argwhere(missing)[0])
        places = np.broadcast_to(places, missing.shape)
        offset = int(places[first]) + view.lowest
        _report(access, chunk, "uninitialised", view, offset, first[0], missing)


def store(
    access: Access, chunk: Chunk, pointer: Pointer, value: Value, mask: np.ndarray | None
) -> None:
    """Write a tile; where lanes of one program meet, the last one wins."""
    chunk.launch.report.stores += 1
    argument = pointer.argument
    if isinstance(argument, int):
        _store_one(access, chunk, argument, pointer.offsets, value, mask)
        return
    for number in np.unique(argument):
        mine = argument == number
        part = mine if mask is None else mine & mask
        _store_one(access, chunk, int(number), pointer.offsets, value, part)


def checked_lanes(
    access: Access,
    chunk: Chunk,
    number: int,
    offsets: np.ndarray,
    mask: np.ndarray | None,
    writes: bool = True,
    kind: Kind = "write",
) -> Lanes | None:
    """Lanes of a store or an atomic after every check; None when there is none left."""
    launch, view = chunk.launch, chunk.launch.views[number]
    mask = chunk.narrow(mask, offsets, access.rank)
    if launch.meter is not None:
        launch.meter.note(kind, access, chunk, view, offsets, mask)
    offsets = settled(access, chunk, view, offsets, mask)
    places, mask = checked(access, chunk, view, offsets, mask)
    if not view.extent:
        return None
    live = live_lanes(chunk, access, view, places, mask)
    if not live.places.size:
        return None
    launch.report.elements += live.places.size
    launch.report.written += live.places.size if writes else 0
    if writes and view.argument.read_only and launch.sanitize:
        return _guarded(access, chunk, view, live)
    return live


def _guarded(access: Access, chunk: Chunk, view: View, live: Lanes) -> Lanes | None:
    """``live`` after a report of lanes that write what is read-only; None where it all is."""
    guard = view.argument.guard
    kept = np.arange(live.places.size) if guard is None else np.flatnonzero(guard[live.places])
    if kept.size:
        key = int(live.select(key_column(access, chunk))[kept[0]])
        offset = int(live.places[kept[0]]) - view.argument.offset
        chunk.launch.sanitizer.report("read_only", view, offset, key, 0, kept.size)
    return None if guard is None else live


def _store_one(
    access: Access,
    chunk: Chunk,
    number: int,
    offsets: np.ndarray,
    value: Value,
    mask: np.ndarray | None,
) -> None:
    launch, view = chunk.launch, chunk.launch.views[number]
    live = checked_lanes(access, chunk, number, offsets, mask)
    if live is None:
        return
    allocation, where = view.argument.allocation, live.where
    target = typed(allocation.data, access.kind.element)
    new = as_stored(access, target, access.move(live.select, value), allocation.element)
    if launch.sanitize:
        keys = live.select(key_column(access, chunk))
        before = target[where].copy()
        target[where] = new
        if launch.scheduler is not None:
            launch.scheduler.writes(view, live.places, access.number, before, new)
        launch.sanitizer.write(view, live.places, where, keys, before, new)
    else:
        target[where] = new
    if allocation.initialised is not None:
        allocation.initialised[where] = True
