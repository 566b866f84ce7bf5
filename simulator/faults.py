"""What the machine reports about a launch."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.simulator.ir import Frame

if TYPE_CHECKING:
    from trivet.simulator.traffic import Traffic

FATAL = frozenset({"fuel", "unsupported", "deadlock", "time", "memory"})


@dataclass(frozen=True)
class Fault:
    """One finding: the first lane in full, ``lanes`` of the same kind at the same line.

    Kinds: out_of_bounds, int_wrap, uninitialised, race_write_write, race_read_write,
    same_value_write, read_only, assert, deadlock, fuel, time, memory, unsupported. ``line`` is the
    user's line in the kernel, in the host function for time and memory, as ``file.py:17``;
    ``text`` is one sentence for people.
    """

    kind: str
    kernel: str
    argument: str
    index: str
    program: tuple[int, int, int]
    other_program: tuple[int, int, int] | None
    line: str
    other_line: str | None
    source: str
    text: str
    lanes: int

    @property
    def fatal(self) -> bool:
        """Whether the launch ended here."""
        return self.kind in FATAL


@dataclass
class Report:
    """Outcome of one launch; ``elements`` counts memory elements accessed, ``written`` writes.

    ``traffic`` is there where the launch was metered.
    """

    faults: list[Fault] = field(default_factory=list)
    programs: int = 0
    loads: int = 0
    stores: int = 0
    elements: int = 0
    written: int = 0
    traffic: Traffic | None = None


class Trap(Exception):
    """Ends the launch; carries the fatal fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


@dataclass(frozen=True)
class Site:
    """Where an operation stands: the author's own line, its text, and who called the helper."""

    line: str
    source: str
    caller: str | None

    @property
    def phrase(self) -> str:
        """The lines in words, for a sentence."""
        called = f" (called from {self.caller})" if self.caller else ""
        return f"{self.line}{called}"


# Lines inside Triton's own library (tl.sum and its kin) tell an author nothing.
_LIBRARY = ("/triton/language/", "/triton/tools/")


def site(frames: tuple[Frame, ...]) -> Site:
    """Site of a location's frames, innermost first."""
    if not frames:
        return Site("unknown line", "", None)
    own = [f for f in frames if not any(part in f.file for part in _LIBRARY)] or [frames[-1]]
    innermost, outermost = own[0], own[-1]
    source = linecache.getline(innermost.file, innermost.line).strip()
    caller = _short(outermost) if outermost != innermost else None
    return Site(_short(innermost), source, caller)


def _short(frame: Frame) -> str:
    return f"{Path(frame.file).name}:{frame.line}"
