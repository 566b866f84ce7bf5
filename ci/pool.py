"""Disposable worker processes: a job that kills its worker loses itself, not the run."""

import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any

MOST_MEMORY = 6 * 2**30
Note = Callable[[Any], None]
Work = Callable[[Any, Note], Any]


@dataclass(frozen=True, slots=True)
class Event:
    """What a worker said about job number ``job``.

    ``kind`` is "note" (progress), "slow" (it is still at work after ``value`` seconds), "done"
    (``value`` is the result), "failed" (``value`` is the text of the exception), "lost"
    (``value`` says how the worker ended) or "late" (it was ended because its time was up or its
    memory too large).
    """

    kind: str
    job: int
    value: Any

    @property
    def ends(self) -> bool:
        """Whether nothing more comes of the job."""
        return self.kind not in ("note", "slow")


def start_method() -> str:
    """Choose fork where it is safe: one torch thread, set before torch computed anything.

    A forked child of a process whose torch has used several threads hangs in its first operation.
    """
    if "fork" not in multiprocessing.get_all_start_methods() or sys.platform == "darwin":
        return "spawn"
    torch = sys.modules.get("torch")
    return "spawn" if torch is not None and torch.get_num_threads() > 1 else "fork"


def run_jobs(
    work: Work,
    jobs: Sequence[Any],
    workers: int,
    method: str,
    *,
    limit: float | None = None,
    quiet: float | None = None,
    slow: float | None = None,
    jobs_each: int | None = None,
) -> Iterator[Event]:
    """Yield events as they come until every job is done, failed, lost or late.

    ``work(job, note)`` runs in a worker, for at most ``limit`` seconds, at most ``quiet`` seconds
    without a note and, with either, within MOST_MEMORY bytes of its own; every ``slow`` seconds
    of a job are told. A worker is replaced after ``jobs_each`` jobs. Leaving the iterator early
    ends the workers.
    """
    context = multiprocessing.get_context(method)
    waiting = deque(enumerate(jobs))
    hired = partial(_Hand, context, work, limit, quiet, slow)
    hands = [hired() for _ in range(min(workers, len(jobs)))]
    try:
        for hand in hands:
            hand.give(*waiting.popleft())
        while busy := [hand for hand in hands if hand.job is not None]:
            for hand in _ready(busy):
                event = hand.listen()
                ended = event.kind in ("lost", "late")
                if ended or (hand.taken == jobs_each and event.ends and waiting):
                    hand.stop()
                    hands[hands.index(hand)] = hand = hired()
                if event.ends and waiting:
                    hand.give(*waiting.popleft())
                yield event
            yield from [sign for hand in busy if (sign := hand.slow()) is not None]
    finally:
        for hand in hands:
            hand.stop()


class Standing:
    """One worker process that is kept from job to job, and replaced after one that ended it."""

    def __init__(self, work: Work, method: str, limit: float | None = None) -> None:
        context = multiprocessing.get_context(method)
        self._hired = partial(_Hand, context, work, limit, None, None)
        self._hand = self._hired()

    def judge(self, number: int, job: Any) -> Event:
        """Return what the worker makes of a job; its notes are not passed on."""
        self._hand.give(number, job)
        while True:
            event = next((hand.listen() for hand in _ready([self._hand])), None)
            if event is None or not event.ends:
                continue
            if event.kind in ("lost", "late"):
                self.close()
                self._hand = self._hired()
            return event

    def close(self) -> None:
        """End the worker."""
        self._hand.stop()


def _ready(busy: list["_Hand"]) -> list["_Hand"]:
    """Wait for workers that speak, end or, looked at every second, use more than they may."""
    sources = [item for hand in busy for item in (hand.connection, hand.process.sentinel)]
    found = set(wait(sources, timeout=1.0 if any(hand.watched for hand in busy) else None))
    return [h for h in busy if {h.connection, h.process.sentinel} & found or h.excess]


class _Hand:
    """One worker process and the job it holds."""

    def __init__(
        self,
        context: BaseContext,
        work: Work,
        limit: float | None,
        quiet: float | None,
        slow: float | None,
    ) -> None:
        self.connection, theirs = context.Pipe()
        self.watched = any(each is not None for each in (limit, quiet, slow))
        self._limit = float("inf") if limit is None else limit
        self._quiet = float("inf") if quiet is None else quiet
        self._slow = float("inf") if slow is None else slow
        self._bounded = limit is not None or quiet is not None
        self._given = self._heard = self._told = 0.0
        self.taken = 0
        self.job: int | None = None
        self.process: Any = context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(theirs, work, os.getpid())
        )
        self.process.start()
        theirs.close()

    def give(self, number: int, job: Any) -> None:
        self.job = number
        self.taken += 1
        self._given = self._heard = self._told = time.monotonic()
        try:
            self.connection.send((number, job))
        except OSError:
            return  # the worker is gone: listen() finds its end and reports the job as lost

    @property
    def excess(self) -> str:
        """What the worker has used too much of, in words; empty where nothing."""
        if not self._bounded:
            return ""
        now = time.monotonic()
        if now > self._given + self._limit:
            return f"no verdict within {self._limit:g} s"
        if now > self._heard + self._quiet:
            return f"no word within {self._quiet:g} s"
        own = _memory(self.process.pid)
        return f"the worker took {own / 2**30:.1f} GiB" if own > MOST_MEMORY else ""

    def slow(self) -> Event | None:
        """Return that the job is still at work, once for every so many seconds."""
        now = time.monotonic()
        if self.job is None or now < self._told + self._slow:
            return None
        self._told = now
        return Event("slow", self.job, round(now - self._given))

    def listen(self) -> Event:
        assert self.job is not None
        job = self.job
        try:
            if self.connection.poll():
                kind, value = self.connection.recv()
            elif (excess := self.excess) and self.process.is_alive():
                kind, value = "late", excess
            else:
                kind, value = "lost", self._ending()
        except (EOFError, OSError):
            kind, value = "lost", self._ending()
        self._heard = time.monotonic()
        if kind != "note":
            self.job = None
        return Event(kind, job, value)

    def stop(self) -> None:
        self.connection.close()
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(timeout=2)
        if self.process.is_alive():
            self.process.kill()
        self._end_group()
        self.process.join()

    def _end_group(self) -> None:
        """End what the worker started, where it leads a process group of its own."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def _ending(self) -> str:
        self.process.join(timeout=5)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"the worker was ended by {signal.Signals(-code).name}"
        return f"the worker ended with exit code {code}"


def _memory(process: int) -> int:
    """Return the bytes that a process holds for itself alone; 0 where that cannot be told."""
    try:
        with open(f"/proc/{process}/status") as status:
            held = [line for line in status if line.startswith("RssAnon:")]
    except OSError:
        return 0
    return int(held[0].split()[1]) * 1024 if held else 0


def _serve(connection: Connection, work: Work, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        while not connection.poll(1.0):
            if os.getppid() != parent:
                return
        try:
            _, job = connection.recv()
        except EOFError:
            return
        connection.send(_outcome(work, job, connection))


def _outcome(work: Work, job: Any, connection: Connection) -> tuple[str, Any]:
    try:
        return "done", work(job, lambda value: connection.send(("note", value)))
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        # Ctrl-C is the parent's: a worker ignores it, so the work itself raised this.
        return "failed", "KeyboardInterrupt was raised, and nobody pressed Ctrl-C"
