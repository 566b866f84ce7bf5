"""State of a running launch and of the chunk of programs that runs at the moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trivet.simulator.addresses import Addresses
from trivet.simulator.faults import Report
from trivet.simulator.memory import View
from trivet.simulator.ordering import Ordering
from trivet.simulator.runs import Where, run_of
from trivet.simulator.sanitizer import Sanitizer
from trivet.simulator.scheduler import Scheduler
from trivet.simulator.values import Value, lanes

if TYPE_CHECKING:
    from trivet.simulator.traffic import Meter


@dataclass(eq=False)
class Launch:
    """What all chunks of a launch share.

    ``written`` numbers the views whose storage the kernel writes; ``fuel`` is the work that is
    left, in about microseconds; ``addresses`` is there for kernels that make pointers of integers,
    ``printed`` counts the lines they wrote. ``meter`` counts the traffic where it is wanted,
    ``scheduler`` is there where programs may wait for each other, ``watching`` tells that integers
    on their way to an address may wrap.
    """

    grid: tuple[int, int, int]
    views: list[View]
    report: Report
    sanitizer: Sanitizer
    ordering: Ordering | None
    written: frozenset[int]
    sanitize: bool
    poison: str
    fuel: int
    addresses: Addresses | None = None
    meter: Meter | None = None
    printed: int = 0
    scheduler: Scheduler | None = None
    watching: bool = False


class Chunk:
    """Programs that run in lock step.

    ``active`` flags those that take part at the moment, None when all do. ``values`` is indexed
    by the slots of the routine that runs.
    """

    __slots__ = (
        "_run",
        "_widened",
        "active",
        "axes",
        "count",
        "keys",
        "launch",
        "programs",
        "scalar_keys",
        "values",
    )

    def __init__(self, launch: Launch, programs: np.ndarray) -> None:
        self.launch = launch
        self.programs = programs
        self.count = len(programs)
        self.active: np.ndarray | None = None
        self.values: list[Value] = []
        self._run: tuple[np.ndarray, Where] | None = None
        self._widened: tuple[np.ndarray, np.ndarray] | None = None
        self.renew_keys()
        x, y, _ = launch.grid
        axes = (programs % x, programs // x % y, programs // (x * y))
        self.axes = [
            (axis if extent > 1 else axis[:1]).astype(np.int32)
            for axis, extent in zip(axes, launch.grid, strict=True)
        ]

    def renew_keys(self) -> None:
        """Take the shadow keys of the programs: of tile accesses and of scalar ones."""
        ordering, base = self.launch.ordering, self.launch.sanitizer.key_base
        if ordering is None:
            self.keys = self.scalar_keys = base(self.programs)
            return
        program = int(self.programs[0])
        self.keys = base(np.array([ordering.epoch(program, True)]))
        self.scalar_keys = base(np.array([ordering.epoch(program, False)]))

    def narrow(self, mask: np.ndarray | None, offsets: np.ndarray, rank: int) -> np.ndarray | None:
        """``mask`` restricted to active programs, or None when every lane takes part.

        An access that is the same for all programs stays so: one active program is enough.
        """
        if self.active is not None and (
            offsets.shape[0] > 1 or (mask is not None and mask.shape[0] > 1)
        ):
            flags = lanes(self.active, rank)
            mask = flags if mask is None else mask & flags
        return None if mask is None or mask.all() else mask

    def widened(self, offsets: np.ndarray) -> np.ndarray:
        """``offsets`` as int64; the last ones are kept, as several arguments often share them."""
        if self._widened is None or self._widened[0] is not offsets:
            self._widened = offsets, offsets.astype(np.int64)
        return self._widened[1]

    def run_of(self, offsets: np.ndarray) -> slice | None:
        """Slice that ``offsets`` of one tile per program are, None when they are none.

        The answer for the last offsets is kept: several arguments are often reached by the same.
        """
        if len(offsets) != self.count or not offsets.flags.c_contiguous:
            return None
        if self._run is None or self._run[0] is not offsets:
            self._run = offsets, run_of(offsets.reshape(-1))
        where = self._run[1]
        return where if isinstance(where, slice) else None

    def uniform(self, value: np.ndarray) -> int | None:
        """The one value all active programs have, None when they differ."""
        if value.size == 1:
            return int(value.flat[0])
        live = value if self.active is None else value[self.active]
        first = live.flat[0]
        return int(first) if (live == first).all() else None
