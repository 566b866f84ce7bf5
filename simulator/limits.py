"""Limits of one call of a host function: time, and memory beyond what was there before."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import walk_tb
from types import FrameType

from trivet.simulator.faults import Fault
from trivet.simulator.user_code import user_line

# A call may wait so many times as long as it may compute. What computes at all, if slowly beside
# other work, does not wait.
_WAITING = 6
_IDLE = 0.01
# Asked again while a host function catches everything that comes.
_REPEAT = 1.0
_OUT_OF_MEMORY = ("can't allocate memory", "Cannot allocate memory", "Unable to allocate")


@dataclass(frozen=True)
class Limits:
    """What one call may use: ``seconds`` of CPU time, ``memory`` in bytes; None for no limit."""

    seconds: float | None = None
    memory: int | None = None


UNLIMITED = Limits()


class TimeIsUp(BaseException):
    """The call computed for too long; ``frame`` is where it was."""

    def __init__(self, frame: FrameType | None, computing: bool) -> None:
        super().__init__()
        self.frame = frame
        self.computing = computing


def limits_of_calls() -> Limits:
    """Return the limits of a gate's calls: TRIVET_CALL_SECONDS and TRIVET_CALL_GIB, else 10 and 8.

    Raises ValueError for a variable that holds no positive number.
    """
    seconds, gibibytes = _setting("TRIVET_CALL_SECONDS", 10), _setting("TRIVET_CALL_GIB", 8)
    return Limits(seconds, int(gibibytes * 2**30))


def _setting(name: str, usual: float) -> float:
    text = os.environ.get(name, str(usual))
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise ValueError(f"{name}={text!r}: expected a positive number")
    return value


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Raise TimeIsUp inside once the time is up, and let larger allocations fail.

    Signals reach the main thread alone, so that only calls from there have a time limit. Code that
    stays in C is interrupted when it returns.
    """
    with _time(limits.seconds), _memory(limits.memory):
        yield


@contextmanager
def _time(seconds: float | None) -> Iterator[None]:
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    began, used = time.monotonic(), time.process_time()

    def ring(number: int, frame: FrameType | None) -> None:
        computing = number == signal.SIGPROF
        idle = time.process_time() - used < _IDLE * (time.monotonic() - began)
        if computing or idle:
            raise TimeIsUp(frame, computing)

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, _WAITING * seconds),
    }
    before = {number: signal.signal(number, ring) for number in timers}
    try:
        for timer, limit in timers.values():
            signal.setitimer(timer, limit, _REPEAT)
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _memory(most: int | None) -> Iterator[None]:
    """Bound the address space; what cannot be bounded (not Linux) is left alone."""
    used = _address_space()
    if most is None or used is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bounds = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([used + most, *bounds]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    with open("/proc/self/statm") as status:
        return int(status.read().split()[0]) * resource.getpagesize()


def late(error: TimeIsUp, limits: Limits) -> Fault:
    """Return the fault of a call that was ended because its time was up."""
    line, source = user_line(error.frame)
    seconds = limits.seconds or 0
    spent = f"{seconds:g} s of computing" if error.computing else f"{_WAITING * seconds:g} s"
    text = (
        f"the call had not ended after {spent}, at {line}: "
        "a loop may never end (TRIVET_CALL_SECONDS allows more)"
    )
    return _of_the_call("time", line, source, text)


def too_large(error: BaseException, limits: Limits) -> Fault:
    """Return the fault of a call that asked for more memory than it may."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    line, source = user_line(frames[-1] if frames else None)
    most = (limits.memory or 0) / 2**30
    text = (
        f"the call asks for more than {most:g} GiB of memory, at {line} "
        "(TRIVET_CALL_GIB allows more)"
    )
    return _of_the_call("memory", line, source, text)


def _of_the_call(kind: str, line: str, source: str, text: str) -> Fault:
    return Fault(
        kind=kind,
        kernel="",
        argument="",
        index="",
        program=(0, 0, 0),
        other_program=None,
        line=line,
        other_line=None,
        source=source,
        text=text,
        lanes=0,
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` tells that memory ran out, whichever library raised it."""
    return isinstance(error, MemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY)
