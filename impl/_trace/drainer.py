"""The thread that drains a ring while kernels write it: every record a line, or counted as lost."""

import atexit
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from trivet.impl._trace.reader import Reader
from trivet.impl._trace.schemas import Schema, line_of
from trivet.impl.trace.layout import MAGIC, Ring

INTERVAL = 0.5
_HALF = 1 << 31


@dataclass(frozen=True)
class Drained:
    """Records of a run: written = drained (whole lines of the file) + lost (reported)."""

    written: int
    drained: int
    lost: int


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Drainer:
    """Drains a ring to a file of JSON lines, which it truncates, until `close`.

    A thread polls every `interval` seconds and flushes what it found; it needs no event loop.
    `report` is told each loss in one line. A context manager; what forgets to close it is closed
    when the interpreter exits. Raises OSError where the file cannot be opened.
    """

    def __init__(
        self,
        ring: Ring,
        path: Path,
        schemas: Sequence[Schema] = (),
        *,
        interval: float = INTERVAL,
        report: Callable[[str], None] = _to_stderr,
    ) -> None:
        self.path, self.interval, self.report = path, interval, report
        self._reader = Reader(ring)
        self._schemas = Schema.by_id(schemas)
        self._begun = self._next = self._reader.position()[0]
        self._step = self._reader.position()[1]
        self._drained = self._lost = self._whole_bytes = 0
        self._failed = False
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        self._stop = threading.Event()
        self._result: Drained | None = None
        self._thread = threading.Thread(target=self._run, name="trivet-trace", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> Drained:
        """Drain the tail, join the thread and return the counts; nothing writes any more."""
        if self._result is None:
            self._reader.settle()
            self._stop.set()
            self._thread.join()
            os.close(self._file)
            atexit.unregister(self.close)
            head, _ = self._reader.position()
            if head > self._next:
                self._lose(head - self._next, "the drainer had stopped")
            self._result = Drained(head - self._begun, self._drained, self._lost)
        return self._result

    def _run(self) -> None:
        while not self._stop.wait(self.interval):
            self._cycle(last=False)
        self._cycle(last=True)

    def _cycle(self, last: bool) -> None:
        """Drain what was written since the last cycle."""
        head, records, gone = self._take(last)
        lines = [line_of(record, self._schemas) for record in records if self._sound(record)]
        self._next = head
        if gone:
            self._lose(gone, "overwritten before it came to them; a larger ring holds more")
        if len(lines) < len(records):
            self._lose(len(records) - len(lines), "without their magic number, or out of step")
        if lines:
            self._write(lines)

    def _take(self, last: bool) -> tuple[int, np.ndarray, int]:
        """Head, the records from the next one on that are whole, and how many are not.

        The record that is being written, number head, already spoils the slot of the one a
        capacity before it: only when nothing writes any more is that one whole as well.
        """
        head, _ = self._reader.position()
        first = max(self._next, head - self._reader.capacity)
        records = self._reader.copy(first, head)
        later, self._now = self._reader.position()
        oldest = later - self._reader.capacity + (0 if last else 1)
        kept = min(max(first, oldest), head)
        return head, records[kept - first :], kept - self._next

    def _sound(self, record: np.void) -> bool:
        """Whether a record has its magic number, and a step between the last one's and now's."""
        step = int(record["step"])
        since, until = (step - self._step) % (2 * _HALF), (self._now - step) % (2 * _HALF)
        if record["magic"] != MAGIC or since >= _HALF or until >= _HALF:
            return False
        self._step = step
        return True

    def _lose(self, count: int, why: str) -> None:
        self._lost += count
        self.report(f"trace: {self.path}: {count} records lost, {why}")

    def _write(self, lines: list[bytes]) -> None:
        """Append whole lines; where that fails once, this and everything later is lost."""
        if self._failed:
            self._lose(len(lines), "the file failed before")
            return
        try:
            _write_all(self._file, b"".join(lines))
        except OSError as error:
            self._failed = True
            # What no file system holds, like a pipe, cannot be cut either.
            with suppress(OSError):
                os.ftruncate(self._file, self._whole_bytes)
            self._lose(len(lines), f"the file cannot be written: {error.strerror}")
            return
        self._whole_bytes += sum(map(len, lines))
        self._drained += len(lines)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
