"""What long work shows while it runs: a bar on a terminal, a line per finished unit elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from trivet.ci.document import Document

SECONDS_BETWEEN_NOTES = 0.1


class Progress:
    """Progress on stderr; machine output and tables stay on stdout.

    The bar draws itself only when told to: a refresh thread would make forking unsafe.
    """

    def __init__(self) -> None:
        self._console = Console(file=sys.stderr)
        self._bar: Bar | None = None
        self._task: Any = None
        self._shown = 0.0

    @contextmanager
    def of(self, total: int) -> Iterator[None]:
        """Show ``total`` units of work."""
        if not self._console.is_terminal:
            yield
            return
        columns = (
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
        )
        with Bar(*columns, console=self._console, auto_refresh=False, transient=True) as bar:
            self._bar, self._task = bar, bar.add_task("starting", total=total)
            bar.refresh()
            yield
        self._bar = None

    def note(self, label: str, text: object) -> None:
        """Say what is being judged."""
        now = time.monotonic()
        if self._bar is not None and now - self._shown > SECONDS_BETWEEN_NOTES:
            self._shown = now
            self._bar.update(self._task, description=f"{label} {text}", refresh=True)

    def slow(self, label: str, seconds: float) -> None:
        """Give a sign of life of a unit that takes long; the bar of a terminal shows it anyway."""
        if self._bar is None:
            print(f"still at {label} after {seconds:.0f} s", file=sys.stderr, flush=True)

    def done(self, label: str, entries: Sequence[Document]) -> None:
        """Count one unit as finished, with its verdicts."""
        counts = Counter(entry["verdict"] for entry in entries)
        text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        if self._bar is None:
            print(f"{label}: {text}", file=sys.stderr, flush=True)
            return
        self._bar.update(self._task, advance=1, description=f"{label}: {text}", refresh=True)

    def interrupted(self) -> None:
        """Say that the run was ended early."""
        print("interrupted: what is done so far follows", file=sys.stderr, flush=True)
