"""Programs that wait for each other, run in turns: one at a time, in an order that never varies."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from trivet.simulator.ir import Block, Module, Operation, walk
from trivet.simulator.memory import View
from trivet.simulator.values import Pointer

_READS = (
    "tt.atomic_cas",
    "tt.atomic_rmw",
    "tt.atomic_load",
    "tt.atomic_poll",
    "tt.load",
    "tt.descriptor_load",
    "tt.descriptor_gather",
)
# A loop that changes something all the time, such as its own counter, hands over this often.
_TURN = 64
# More blocks than this are resident on no device, so a kernel that needs more hangs there too.
_MOST_WAITING = 4096


class Awaited(NamedTuple):
    """The last element a program read in its loop, by an operation with that site number."""

    view: View
    offset: int
    site: int


@dataclass(eq=False)
class _Runner:
    """A thread that runs programs one after the other until one of them has to wait."""

    program: int = -1
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    awaited: Awaited | None = None
    seen: tuple[object, int, list[Any]] | None = None
    rounds: int = 0
    began: int = 0
    idle: bool = False
    thread: threading.Thread | None = None


@dataclass(frozen=True)
class Deadlock(Exception):
    """No program can go on: what each of them waits for, by program, in the order they run in.

    ``writers`` has the program and site of the last write to each awaited element, where known.
    """

    waiting: dict[int, Awaited | None]
    writers: dict[int, tuple[int, int]]


class _Unwound(BaseException):
    """Ends a waiting program when the launch is over."""


class Scheduler:
    """Runs programs until each has ended, giving the turn on where one waits.

    A program waits when one round of its loop changed neither its own values nor memory. Where
    all do, and a round of everybody changed nothing, none ever will: that is a deadlock, not a
    guess. One program runs at a time; threads only hold the stacks of those that wait. A
    ``restless`` scheduler also gives the turn on in front of a loop when the program has changed
    memory, so that locks taken in crossed order meet.
    """

    def __init__(self, restless: bool = False) -> None:
        self._restless = restless
        self.version = 0
        self._main = threading.Semaphore(0)
        self._current = _Runner()
        self._writers: dict[tuple[int, int], tuple[int, int]] = {}
        self._stopping = False
        self._error: BaseException | None = None

    def run(self, programs: Iterator[int], work: Callable[[int], None]) -> None:
        """Call ``work`` for each program; it may call `pause`. Raises Deadlock or what it raised.

        Raises RuntimeError where more programs wait than any device holds.
        """
        waiting: deque[_Runner] = deque()
        fresh = True
        quiet, version = 0, -1
        try:
            while fresh or waiting:
                if not fresh and self.version == version and quiet >= len(waiting):
                    raise self._deadlock(waiting)
                runner = self._started(programs, work) if fresh else waiting.popleft()
                self._turn(runner)
                if self._error is not None:
                    raise self._error
                fresh = fresh and runner.program >= 0
                if runner.program >= 0:
                    waiting.append(runner)
                still = runner.idle and runner.program >= 0 and self.version == version
                quiet, version = (quiet + 1 if still else 0), self.version
                if len(waiting) > _MOST_WAITING:
                    raise RuntimeError(f"more than {_MOST_WAITING} programs wait at once")
        finally:
            self._unwind(waiting)

    def _started(self, programs: Iterator[int], work: Callable[[int], None]) -> _Runner:
        runner = _Runner()

        def serve() -> None:
            runner.baton.acquire()
            try:
                for program in programs:
                    runner.program, runner.seen, runner.awaited = program, None, None
                    runner.began = self.version
                    work(program)
            except _Unwound:
                return
            except BaseException as error:
                self._error = error
            runner.program = -1
            self._main.release()

        runner.thread = threading.Thread(target=serve, daemon=True)
        runner.thread.start()
        return runner

    def _turn(self, runner: _Runner) -> None:
        self._current = runner
        runner.baton.release()
        self._main.acquire()

    def _unwind(self, waiting: deque[_Runner]) -> None:
        self._stopping = True
        for runner in waiting:
            runner.baton.release()
            assert runner.thread is not None
            runner.thread.join()

    def pause(self, loop: object, state: list[Any]) -> None:
        """Tell that the program starts another round of ``loop``, with these values carried."""
        runner = self._current
        seen, version = runner.seen, self.version
        known = seen is not None and seen[0] is loop and seen[1] == version
        runner.idle = known and seen is not None and _alike(seen[2], state)
        runner.seen = loop, version, state
        runner.rounds += 1
        restless = self._restless and version != runner.began
        if runner.idle or restless or runner.rounds % _TURN == 0:
            self._main.release()
            runner.baton.acquire()
            if self._stopping:
                raise _Unwound
            runner.began = self.version

    def reads(self, view: View, place: int, site: int) -> None:
        """Note a read of the element at ``place`` of the view's allocation."""
        self._current.awaited = Awaited(view, place - view.argument.offset, site)

    def writes(
        self, view: View, places: np.ndarray, site: int, before: np.ndarray, after: np.ndarray
    ) -> None:
        """Note a write of the elements at ``places`` of the view's allocation."""
        changed = np.ascontiguousarray(before).tobytes() != np.ascontiguousarray(after).tobytes()
        self.version += changed
        if changed and places.size == 1:
            key = id(view.argument.allocation), int(places[0])
            self._writers[key] = self._current.program, site

    def _deadlock(self, waiting: deque[_Runner]) -> Deadlock:
        runners = sorted(waiting, key=lambda runner: runner.program)
        writers = {}
        for runner in runners:
            if runner.awaited is None:
                continue
            view, offset, _ = runner.awaited
            key = id(view.argument.allocation), offset + view.argument.offset
            if key in self._writers:
                writers[runner.program] = self._writers[key]
        return Deadlock({runner.program: runner.awaited for runner in runners}, writers)


def _alike(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(_same, one, other))


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, Pointer) and isinstance(other, Pointer):
        return _same(one.offsets, other.offsets) and bool(np.all(one.argument == other.argument))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    return False


def waiting_operations(module: Module) -> list[Operation]:
    """Loads, atomics with a result and polls that a loop without a counter repeats."""
    found: dict[int, Operation] = {}
    for function in module.functions.values():
        for operation in _repeated(function.blocks):
            found[id(operation)] = operation
        polls = (each for each in walk(function.blocks) if each.name == "tt.atomic_poll")
        found.update((id(each), each) for each in polls)
    return [each for each in found.values() if each.name in _READS]


def _repeated(blocks: list[Block]) -> Iterator[Operation]:
    """Operations inside while loops and inside blocks that lead back to an earlier one."""
    numbers = {block.label: number for number, block in enumerate(blocks)}
    for number, block in enumerate(blocks):
        for label, _ in block.operations[-1].successors:
            if numbers.get(label, number + 1) <= number:
                yield from walk(blocks[numbers[label] : number + 1])
        for operation in block.operations:
            for region in operation.regions:
                yield from walk(region) if operation.name == "scf.while" else _repeated(region)
