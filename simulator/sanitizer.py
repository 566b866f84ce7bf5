"""Shadow state of a launch: who wrote, read or updated each element, and what that breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trivet.simulator.faults import Fault, Report, Site
from trivet.simulator.ir import Operation
from trivet.simulator.memory import Allocation, View, sparse_zeros
from trivet.simulator.runs import Where, pick

_SENTENCES = {
    "out_of_bounds": "{program} of {kernel} accesses {index}, which lies outside it, at {line}",
    "nowhere": "{program} of {kernel} accesses an address that lies in no tensor, at {line}",
    "uninitialised": "{program} of {kernel} reads {index}, which nothing has written, at {line}",
    "read_only": "{program} of {kernel} writes {index}, which is read-only, at {line}",
    "race_write_write": "{program} of {kernel} writes {index} at {line}, and {other} writes it "
    "at {other_line} with nothing to order the two",
    "same_value_write": "{program} of {kernel} writes {index} at {line}, and {other} writes the "
    "same value there at {other_line} with nothing to order the two",
    "race_read_write": "{program} of {kernel} accesses {index} at {line}, and {other} accesses it "
    "at {other_line}, one of them a write, with nothing to order the two",
    "assert": "{program} of {kernel} fails the assertion at {line}: {index}",
}


class AccessLog:
    """Per element of one allocation: the first access and the first one by another program.

    An access is a positive key, ``program * sites + site + 1``; 0 means none. Two programs are
    enough to decide for any third whether somebody else was there.
    """

    def __init__(self, size: int, sites: int) -> None:
        self._size = size
        self._sites = sites
        self._first: np.ndarray | None = None
        self._second: np.ndarray | None = None

    def others(self, where: Where, keys: np.ndarray) -> np.ndarray | None:
        """Key of an access by another program for each place, 0 without; None if all are 0."""
        if self._first is None:
            return None
        first = pick(self._first, where)
        if not first.any():
            return None
        mine = (first - 1) // self._sites == (keys - 1) // self._sites
        second = 0 if self._second is None else pick(self._second, where)
        found = np.where(mine, second, first)
        return found if found.any() else None

    def note(self, places: np.ndarray, where: Where, keys: np.ndarray) -> np.ndarray | None:
        """Record accesses; returns what stands there now if it is not ``keys`` everywhere."""
        if self._first is None:
            self._first = sparse_zeros(self._size, keys.dtype)
            fresh = None
        else:
            fresh = pick(self._first, where) == 0
        if fresh is None or fresh.all():
            self._first[where] = keys
            if isinstance(where, slice):
                return None
        elif fresh.any():
            self._first[places[fresh]] = keys[fresh]
        now: np.ndarray = np.array(pick(self._first, where))
        differs = now != keys
        if not differs.any():
            return None
        if self._second is None:
            self._second = sparse_zeros(self._size, keys.dtype)
        foreign = differs & ((now - 1) // self._sites != (keys - 1) // self._sites)
        self._second[places[foreign]] = keys[foreign]
        return now

    def replace(self, places: np.ndarray, keys: np.ndarray | int) -> None:
        """Forget earlier accesses of ``places``, which ``keys`` (0: nothing) are ordered after."""
        if self._first is None:
            self._first = sparse_zeros(self._size, np.int64)
        self._first[places] = keys
        if self._second is not None:
            self._second[places] = 0


class Shadow:
    """The three logs of one allocation."""

    def __init__(self, size: int, sites: int) -> None:
        self.writes = AccessLog(size, sites)
        self.reads = AccessLog(size, sites)
        self.updates = AccessLog(size, sites)


Ordered = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Sanitizer:
    """Collects the faults of one launch.

    ``sites`` are the source lines of the memory operations by number; ``program_of`` turns the
    program number of a key into grid coordinates. Keys grow with programs times sites and are
    int64 only where they must be.
    """

    def __init__(
        self,
        kernel: str,
        sites: Sequence[Callable[[], Site]],
        programs: int,
        program_of: Callable[[int], tuple[int, int, int]],
        report: Report,
    ) -> None:
        self._kernel = kernel
        self._site_of = sites
        self._sites = max(1, len(sites))
        self._program_of = program_of
        self._report = report
        self._shadows: dict[int, Shadow] = {}
        self._found: dict[tuple[object, ...], int] = {}
        self.key_type: type[np.signedinteger[Any]] = (
            np.int32 if programs * self._sites < 2**31 - 1 else np.int64
        )
        self.ordered: Ordered | None = None
        self.line_of: Callable[[Operation], Site] | None = None

    def key_base(self, programs: np.ndarray) -> np.ndarray:
        """First key of each program; add the number of the site."""
        return (programs * self._sites + 1).astype(self.key_type)

    def shadow(self, allocation: Allocation) -> Shadow:
        """Logs of ``allocation``, made when first needed."""
        found = self._shadows.get(id(allocation))
        if found is None:
            found = Shadow(allocation.data.size, self._sites)
            self._shadows[id(allocation)] = found
        return found

    def read(self, view: View, places: np.ndarray, keys: np.ndarray) -> None:
        """A plain load of ``places`` of the allocation (flat arrays)."""
        shadow = self.shadow(view.argument.allocation)
        self._conflict("race_read_write", view, places, keys, shadow.writes)
        self._conflict("race_read_write", view, places, keys, shadow.updates)
        shadow.reads.note(places, places, keys)

    def update(self, view: View, places: np.ndarray, keys: np.ndarray) -> None:
        """An atomic access of ``places``: races with plain ones only."""
        shadow = self.shadow(view.argument.allocation)
        self._conflict("race_write_write", view, places, keys, shadow.writes)
        self._conflict("race_read_write", view, places, keys, shadow.reads)
        shadow.updates.note(places, places, keys)

    def write(
        self,
        view: View,
        places: np.ndarray,
        where: Where,
        keys: np.ndarray,
        before: np.ndarray,
        new: np.ndarray,
    ) -> None:
        """A plain store; ``where`` are ``places``, perhaps as a slice.

        ``before`` and ``new`` are the elements as stored, ahead of it.
        """
        shadow = self.shadow(view.argument.allocation)
        self._conflict("race_read_write", view, places, keys, shadow.reads)
        self._conflict("race_write_write", view, places, keys, shadow.updates)
        others = self._unordered(shadow.writes.others(where, keys), keys)
        if others is not None:
            self._write_conflict(view, places, keys, others, _same_bits(before, new))
        if self.ordered is not None:
            shadow.writes.replace(places, keys)
            shadow.reads.replace(places, 0)
            return
        now = shadow.writes.note(places, where, keys)
        if now is not None:
            fresh = now != keys if others is None else (now != keys) & (others == 0)
            self._collisions(view, places, keys, np.where(fresh, now, 0), new)

    def _collisions(
        self, view: View, places: np.ndarray, keys: np.ndarray, others: np.ndarray, new: np.ndarray
    ) -> None:
        """Programs of this very store that met in one element."""
        others = np.where((others - 1) // self._sites == (keys - 1) // self._sites, 0, others)
        if not others.any():
            return
        order = np.argsort(places, kind="stable")
        last = np.searchsorted(places[order], places, side="right") - 1
        self._write_conflict(view, places, keys, others, _same_bits(new[order[last]], new))

    def _write_conflict(
        self,
        view: View,
        places: np.ndarray,
        keys: np.ndarray,
        others: np.ndarray,
        same: np.ndarray,
    ) -> None:
        self._report_lanes("race_write_write", view, places, keys, np.where(same, 0, others))
        self._report_lanes("same_value_write", view, places, keys, np.where(same, others, 0))

    def _conflict(
        self, kind: str, view: View, places: np.ndarray, keys: np.ndarray, log: AccessLog
    ) -> None:
        others = self._unordered(log.others(places, keys), keys)
        if others is not None:
            self._report_lanes(kind, view, places, keys, others)

    def _unordered(self, others: np.ndarray | None, keys: np.ndarray) -> np.ndarray | None:
        if others is None or self.ordered is None:
            return others
        return np.where(self.ordered(others, keys), 0, others)

    def _report_lanes(
        self, kind: str, view: View, places: np.ndarray, keys: np.ndarray, others: np.ndarray
    ) -> None:
        lanes = np.flatnonzero(others)
        if not lanes.size:
            return
        lane = lanes[0]
        offset = int(places[lane]) - view.argument.offset
        self.report(kind, view, offset, int(keys[lane]), int(others[lane]), lanes.size)

    def report(
        self, kind: str, view: View | None, offset: int, key: int, other: int, lanes: int
    ) -> None:
        """Add a finding, or its lanes to the one of the same kind, argument and lines."""
        number, site = divmod(key - 1, self._sites)
        other_number, other_site = divmod(other - 1, self._sites)
        identity = (kind, site, other_site if other else None, view and view.argument.name)
        known = self._found.get(identity)
        if known is not None:
            self._add_lanes(known, lanes)
            return
        self._found[identity] = len(self._report.faults)
        name = view.argument.name if view else ""
        index = view.describe(offset) if view else ""
        second = (other_number, self._site_of[other_site]()) if other else None
        self._report.faults.append(
            self._fault(kind, name, index, number, self._site_of[site](), second, lanes)
        )

    def report_wrap(
        self, view: View, places: tuple[int, int], key: int, origin: Operation, lanes: int
    ) -> None:
        """Add a place (as it is, as it was meant) that wrapped in the operation ``origin``."""
        number, site = divmod(key - 1, self._sites)
        identity = ("int_wrap", site, origin.location, view.argument.name)
        known = self._found.get(identity)
        if known is not None:
            self._add_lanes(known, lanes)
            return
        self._found[identity] = len(self._report.faults)
        place = self._site_of[site]()
        made = place if self.line_of is None else self.line_of(origin)
        index, program = view.describe(places[0]), self._program_of(number)
        self._report.faults.append(
            Fault(
                kind="int_wrap",
                kernel=self._kernel,
                argument=view.argument.name,
                index=index,
                program=program,
                other_program=None,
                line=made.line,
                other_line=place.line,
                source=made.source,
                text=f"program {program} of {self._kernel} accesses {index} at {place.phrase} "
                f"where element {places[1]} is meant: the integers at {made.phrase} wrap in 32 "
                "bits",
                lanes=lanes,
            )
        )

    def report_assertion(self, message: str, key: int, lanes: int) -> None:
        """Add a failed device assertion; its message stands in for the index."""
        number, site = divmod(key - 1, self._sites)
        identity = ("assert", site)
        known = self._found.get(identity)
        if known is None:
            self._found[identity] = len(self._report.faults)
            place = self._site_of[site]()
            self._report.faults.append(
                self._fault("assert", "", message, number, place, None, lanes)
            )
            return
        self._add_lanes(known, lanes)

    def _add_lanes(self, known: int, lanes: int) -> None:
        fault = self._report.faults[known]
        self._report.faults[known] = replace(fault, lanes=fault.lanes + lanes)

    def _fault(
        self,
        kind: str,
        argument: str,
        index: str,
        number: int,
        site: Site,
        second: tuple[int, Site] | None,
        lanes: int,
    ) -> Fault:
        program = self._program_of(number)
        other = self._program_of(second[0]) if second else None
        lost = kind == "out_of_bounds" and not argument
        text = _SENTENCES["nowhere" if lost else kind].format(
            program=f"program {program}",
            kernel=self._kernel,
            index=index,
            line=site.phrase,
            other=f"program {other}",
            other_line=second[1].phrase if second else "",
        )
        return Fault(
            kind=kind,
            kernel=self._kernel,
            argument=argument,
            index=index,
            program=program,
            other_program=other,
            line=site.line,
            other_line=second[1].line if second else None,
            source=site.source,
            text=text,
            lanes=lanes,
        )


def _same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    pattern = f"u{a.dtype.itemsize}"
    same: np.ndarray = np.ascontiguousarray(a).view(pattern) == np.ascontiguousarray(b).view(
        pattern
    )
    return same
