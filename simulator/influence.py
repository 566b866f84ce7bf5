"""Whether undefined memory that a launch read has any influence on what it wrote.

Kernels load whole tiles and drop the lanes they do not want: such a read is harmless whatever
the memory holds. The launch is run again from the same memory with other undefined values; only
where its results differ was the read a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trivet.simulator.aliasing import read_arguments, written_arguments
from trivet.simulator.faults import Report
from trivet.simulator.frontend import Lowered
from trivet.simulator.memory import Allocation, Argument

# Unlike the NaNs that undefined floats hold from the start, and unlike what integers hold.
_OTHER_FLOAT = 3.0e4
_OTHER_BYTE = 0x3B


@dataclass
class _Kept:
    """One allocation as it was before the launch; ``undefined`` are its flat places."""

    allocation: Allocation
    data: np.ndarray | None
    initialised: np.ndarray | None
    undefined: np.ndarray
    values: np.ndarray

    def restore(self) -> None:
        """Put the memory back as it was."""
        allocation = self.allocation
        if self.data is not None:
            allocation.data[...] = self.data
        else:
            allocation.data[self.undefined] = self.values
        if self.initialised is not None and allocation.initialised is not None:
            allocation.initialised[...] = self.initialised

    def disturb(self) -> None:
        """Give the undefined elements other values."""
        data = self.allocation.data
        other = np.zeros(1, data.dtype)
        if data.dtype.kind in "iub":
            other.view(np.uint8)[...] = _OTHER_BYTE if data.dtype.kind != "b" else 1
        else:
            other[...] = _OTHER_FLOAT
        data[self.undefined] = other


class Before:
    """The memory of a launch before it ran, as far as the launch may change it."""

    def __init__(self, kept: dict[str, list[_Kept]]) -> None:
        self._kept = kept

    @classmethod
    def of(cls, given: Sequence[object], lowered: Lowered) -> Before | None:
        """Keep what the kernel ``lowered`` may write of the arguments ``given``.

        None if all memory that it may load from is defined.
        """
        arguments = {n: item for n, item in enumerate(given) if isinstance(item, Argument)}
        if all(_defined(item) for item in arguments.values()):
            return None
        read, written = _reached(lowered)
        if all(_defined(item) for n, item in arguments.items() if n in read):
            return None
        changed = {id(arguments[n].allocation) for n in written if n in arguments}
        kept = {
            key: _keep(item.allocation, key in changed)
            for key, item in ((id(item.allocation), item) for item in arguments.values())
        }
        names: dict[str, list[_Kept]] = {}
        for item in arguments.values():
            names.setdefault(item.name, []).append(kept[id(item.allocation)])
        return cls(names)

    def forgive(self, report: Report, rerun: Callable[[], Report]) -> None:
        """Take out of ``report`` the reads of undefined memory that change nothing.

        ``rerun`` runs the launch again on the memory as it is then.
        """
        suspects = {fault.argument for fault in report.faults if fault.kind == "uninitialised"}
        harmless = {name for name in suspects if not self._influences(name, report, rerun)}
        report.faults = [
            fault
            for fault in report.faults
            if fault.kind != "uninitialised" or fault.argument not in harmless
        ]

    def _influences(self, name: str, report: Report, rerun: Callable[[], Report]) -> bool:
        """Whether other undefined values in one argument change anything."""
        kept = {id(item): item for items in self._kept.values() for item in items}.values()
        after = [_keep(item.allocation, item.data is not None) for item in kept]
        try:
            for item in kept:
                item.restore()
            for item in self._kept.get(name, []):
                item.disturb()
            other = _kinds(rerun()) != _kinds(report)
            return other or any(map(_differs, after))
        finally:
            for item in (*kept, *after):
                item.restore()


@lru_cache(maxsize=256)
def _reached(lowered: Lowered) -> tuple[frozenset[int], frozenset[int]]:
    return read_arguments(lowered.module), written_arguments(lowered.module)


def _defined(item: Argument) -> bool:
    return item.allocation.initialised is None or bool(item.allocation.initialised.all())


def _keep(allocation: Allocation, changes: bool) -> _Kept:
    initialised = allocation.initialised
    undefined = np.zeros(0, np.int64) if initialised is None else np.flatnonzero(~initialised)
    return _Kept(
        allocation,
        allocation.data.copy() if changes else None,
        None if initialised is None else initialised.copy(),
        undefined,
        allocation.data[undefined],
    )


def _differs(first: _Kept) -> bool:
    """Whether the memory now is another than ``first``, where that is defined."""
    allocation = first.allocation
    if first.data is None:
        return False
    if first.initialised is None or allocation.initialised is None:
        return bool(first.data.tobytes() != allocation.data.tobytes())
    if not np.array_equal(first.initialised, allocation.initialised):
        return True
    defined = first.initialised
    return bool(first.data[defined].tobytes() != allocation.data[defined].tobytes())


def _kinds(report: Report) -> set[str]:
    return {fault.kind for fault in report.faults} - {"uninitialised"}
