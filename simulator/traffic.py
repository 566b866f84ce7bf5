"""The traffic meter: what a launch asks of memory, counted exactly, whatever the machine.

Counts follow the tiles of each access, so they hold for every layout a compiler may choose: a
sector is 32 bytes, the least that a GPU moves, and a program asks for the distinct ones of a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from trivet.simulator.chunk import Chunk
from trivet.simulator.faults import Site
from trivet.simulator.memory import View
from trivet.simulator.stored import Access

SECTOR = 32
# Programs that run at once, one on each multiprocessor of an H100 or H200.
WAVE = 132
_PENDING = 1 << 22

Kind = Literal["read", "write", "update"]


@dataclass
class LineTraffic:
    """Bytes asked for at one source line, and the sectors they lie in, tile by tile."""

    bytes: int = 0
    sectors: int = 0


@dataclass
class Traffic:
    """What one launch moves.

    ``read_bytes``, ``written_bytes`` and ``updated_bytes`` (atomics) count live lanes, ``lanes``
    all and ``wasted_lanes`` those that a mask switches off. ``read_sectors`` and
    ``written_sectors`` (atomics among them) count the distinct sectors of each tile of each
    program. Of the sectors read, ``program_sectors`` counts each once a program, ``wave_sectors``
    once a wave of ``WAVE`` consecutive programs, ``distinct_sectors`` once a launch, and
    ``distinct_written_sectors`` is the same of those written. ``lines`` are source lines.
    """

    kernel: str
    programs: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    updated_bytes: int = 0
    lanes: int = 0
    wasted_lanes: int = 0
    read_sectors: int = 0
    written_sectors: int = 0
    program_sectors: int = 0
    wave_sectors: int = 0
    distinct_sectors: int = 0
    distinct_written_sectors: int = 0
    lines: dict[str, LineTraffic] = field(default_factory=dict)

    def metrics(self) -> dict[str, int]:
        """The counts by name, as a lock stores them."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int)}

    @property
    def bytes(self) -> int:
        """All bytes asked for."""
        return self.read_bytes + self.written_bytes + self.updated_bytes

    @property
    def sector_use(self) -> float:
        """Share of the moved sectors' bytes that was asked for; 1 is perfect, above 1 reuse."""
        return self.bytes / (SECTOR * max(1, self.read_sectors + self.written_sectors))

    @property
    def rereads(self) -> float:
        """How often a program asks for a sector that it reads, on average."""
        return self.read_sectors / max(1, self.program_sectors)

    @property
    def sharing(self) -> float:
        """How many programs read a sector, on average."""
        return self.program_sectors / max(1, self.distinct_sectors)

    @property
    def wave_rereads(self) -> float:
        """How many waves read a sector, on average: what a cache of one wave cannot serve."""
        return self.wave_sectors / max(1, self.distinct_sectors)

    @property
    def wasted(self) -> float:
        """Share of the lanes that a mask switches off."""
        return self.wasted_lanes / max(1, self.lanes)


class Meter:
    """Counts one launch, whose programs must run in ascending order."""

    def __init__(
        self, kernel: str, views: Sequence[View], sites: Sequence[Callable[[], Site]]
    ) -> None:
        self.traffic = Traffic(kernel)
        self._sites = sites
        self._starts: dict[int, int] = {}
        self._sectors = 0
        for view in views:
            allocation = view.argument.allocation
            if id(allocation) not in self._starts:
                self._starts[id(allocation)] = self._sectors
                self._sectors += -(-allocation.data.nbytes // SECTOR)
        self._read: list[np.ndarray] = []
        self._written: list[np.ndarray] = []
        self._pending = 0
        self._wave = np.empty(0, np.int64)
        self._seen = np.zeros(self._sectors, bool)
        self._seen_written = np.zeros(self._sectors, bool)
        self._counted: dict[int, LineTraffic] = {}

    def note(
        self,
        kind: Kind,
        access: Access,
        chunk: Chunk,
        view: View,
        offsets: np.ndarray,
        mask: np.ndarray | None,
    ) -> None:
        """Count one access of a chunk; ``offsets`` and ``mask`` broadcast to its tiles."""
        programs = chunk.programs if chunk.active is None else chunk.programs[chunk.active]
        uniform = offsets.shape[0] == 1 and (mask is None or mask.shape[0] == 1)
        rows = 1 if uniform else chunk.count
        times = len(programs) if uniform else 1
        tiles = (rows, *access.kind.shape)
        places = np.broadcast_to(offsets, tiles).reshape(rows, -1) + view.argument.offset
        size = view.argument.allocation.data
        live = (places >= 0) & (places < size.size)
        if mask is not None:
            live &= np.broadcast_to(mask, tiles).reshape(rows, -1)
        if not uniform and chunk.active is not None:
            live &= chunk.active[:, None]
        start = self._starts[id(view.argument.allocation)]
        sectors = places * size.itemsize // SECTOR + start
        row, found = _distinct(np.where(live, sectors, self._sectors), self._sectors)
        lanes = int(np.count_nonzero(live)) * times
        moved = lanes * size.itemsize
        self.traffic.lanes += len(programs) * places.shape[1]
        self.traffic.wasted_lanes += len(programs) * places.shape[1] - lanes
        self._count(kind, access.number, moved, found.size * times)
        owners = programs[:, None] if uniform else chunk.programs[row]
        self._keep(kind, (owners * self._sectors + found).reshape(-1), found)

    def _count(self, kind: Kind, site: int, moved: int, sectors: int) -> None:
        traffic = self.traffic
        line = self._counted.setdefault(site, LineTraffic())
        line.bytes += moved
        line.sectors += sectors
        if kind == "read":
            traffic.read_bytes += moved
            traffic.read_sectors += sectors
            return
        traffic.written_sectors += sectors
        if kind == "write":
            traffic.written_bytes += moved
        else:
            traffic.updated_bytes += moved

    def _keep(self, kind: Kind, keys: np.ndarray, sectors: np.ndarray) -> None:
        if kind != "read":
            self._seen_written[sectors] = True
            return
        self._seen[sectors] = True
        self._read.append(keys)
        self._pending += keys.size
        if self._pending > _PENDING:
            self._read = [np.unique(np.concatenate(self._read))]
            self._pending = self._read[0].size

    def end_chunk(self, programs: int, *, last: bool) -> None:
        """Close a chunk of so many programs; the wave that reaches into the next stays open."""
        self.traffic.programs += programs
        keys = np.unique(np.concatenate(self._read)) if self._read else np.empty(0, np.int64)
        self._read, self._pending = [], 0
        self.traffic.program_sectors += keys.size
        owners, sectors = np.divmod(keys, max(1, self._sectors))
        waves = np.unique(np.concatenate([self._wave, owners // WAVE * self._sectors + sectors]))
        if not waves.size:
            return
        open_from = waves[-1] // self._sectors * self._sectors
        closed = waves.size if last else int(np.searchsorted(waves, open_from))
        self.traffic.wave_sectors += closed
        self._wave = waves[closed:]

    def close(self) -> Traffic:
        """Return what was counted."""
        self.end_chunk(0, last=True)
        self.traffic.distinct_sectors = int(np.count_nonzero(self._seen))
        self.traffic.distinct_written_sectors = int(np.count_nonzero(self._seen_written))
        for number, counted in sorted(self._counted.items()):
            line = self.traffic.lines.setdefault(self._sites[number]().line, LineTraffic())
            line.bytes += counted.bytes
            line.sectors += counted.sectors
        return self.traffic


def _distinct(sectors: np.ndarray, nothing: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and number of the distinct sectors of each row, ``nothing`` apart."""
    steps = np.diff(sectors, axis=1)
    if (steps < 0).any():
        sectors = np.sort(sectors, axis=1)
        steps = np.diff(sectors, axis=1)
    fresh = np.ones(sectors.shape, bool)
    fresh[:, 1:] = steps != 0
    fresh &= sectors != nothing
    return np.nonzero(fresh)[0], sectors[fresh]
