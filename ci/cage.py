"""A process for one piece of work: forked with all that is known, ended whatever it does."""

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

# Files that edited code writes are accidents; core dumps are off as well.
MOST_WRITTEN = 2**28
_LOOK_EVERY = 0.05
_DIES_WITH_PARENT = 1
_GRACE = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """Processor seconds, wall-clock seconds, seconds without any work, and bytes of memory.

    Memory counts beyond what the process is forked with. ``wall`` is wide: on a busy machine a
    second of work takes many, and a verdict must not depend on that.
    """

    processor: float = 60.0
    wall: float = 6000.0
    idle: float = 120.0
    memory: int = 2 * 2**30


class EndedError(Exception):
    """The work ended without a result: ``late`` where a limit was passed, else ``lost``."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def in_child(work: Callable[[], Any], limits: Limits) -> Any:
    """Return what ``work`` returns in a forked child, in a process group of its own.

    The child and all it started are ended when it answers, passes a limit, or this process ends.
    Raises EndedError where no answer came, RuntimeError with the text of its exception.
    """
    ours, theirs = Pipe(duplex=False)
    child = os.fork()
    if not child:
        ours.close()
        _answer(theirs, work, limits)
    theirs.close()
    with suppress(OSError):
        os.setpgid(child, child)  # here and there: whoever comes first
    with _ended_with_us(child), ours:
        try:
            kind, value = _await(ours, child, limits)
        finally:
            _end_group(child)
            _, status = os.waitpid(child, 0)
    if kind == "gone":
        raise _ending(status, limits)
    if kind == "late":
        raise EndedError("late", value)
    if kind == "failed":
        raise RuntimeError(value)
    return value


def _answer(connection: Connection, work: Callable[[], Any], limits: Limits) -> None:
    """Do the work in the child and say what came of it; does not return."""
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
        seconds = max(1, round(limits.processor))
        _limit(resource.RLIMIT_CPU, seconds, seconds + _GRACE)
        _limit(resource.RLIMIT_FSIZE, MOST_WRITTEN, MOST_WRITTEN)
        try:
            found = ("done", work())
        except Exception as error:
            found = ("failed", f"{type(error).__name__}: {error}"[:2000])
        connection.send(found)
    finally:
        os._exit(0)


def _limit(kind: int, soft: int, hard: int) -> None:
    most = resource.getrlimit(kind)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))


def _await(connection: Connection, child: int, limits: Limits) -> tuple[str, Any]:
    """Wait for the child's answer; "gone" where it ended without one, "late" past a limit."""
    parent, started, held = os.getppid(), time.monotonic(), memory_of(child)
    worked, busy = 0, started
    while not connection.poll(_LOOK_EVERY):
        if os.getppid() != parent:
            _end_group(child)
            os._exit(1)
        if time.monotonic() - started > limits.wall:
            return "late", f"no verdict within {limits.wall:g} s"
        if (ticks := _ticks(child)) != worked:
            worked, busy = ticks, time.monotonic()
        if time.monotonic() - busy > limits.idle:
            return "late", f"no work done for {limits.idle:g} s"
        taken = memory_of(child) - held
        if taken > limits.memory:
            return "late", f"it took {taken / 2**30:.1f} GiB"
    try:
        kind, value = connection.recv()
    except (EOFError, OSError):
        return "gone", ""
    return kind, value


def _ending(status: int, limits: Limits) -> EndedError:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        return EndedError("late", f"no verdict within {limits.processor:g} s of processor time")
    if code < 0:
        return EndedError("lost", f"ended by {signal.Signals(-code).name}")
    return EndedError("lost", f"ended with exit code {code}")


@contextmanager
def _ended_with_us(child: int) -> Iterator[None]:
    """End the child's group when this process is told to end."""

    def end(number: int, frame: FrameType | None) -> None:
        _end_group(child)
        os._exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end_group(child: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _ticks(process: int) -> int:
    """Return the processor time that a process has used, in clock ticks; 0 where unknown."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def memory_of(process: int) -> int:
    """Return the bytes that a process holds for itself alone; 0 where that cannot be told."""
    try:
        with open(f"/proc/{process}/status") as status:
            held = [line for line in status if line.startswith("RssAnon:")]
    except OSError:
        return 0
    return int(held[0].split()[1]) * 1024 if held else 0
