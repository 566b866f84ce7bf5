"""`trivet bench`: what the compiler made of every kernel, against its lock or another revision."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trivet.ci.base import checkout, measure_base
from trivet.ci.document import VERSION, Document, environment, overall
from trivet.ci.errors import CannotJudgeError
from trivet.ci.gate import Settings, collect
from trivet.ci.kept_rows import keep_rows, kept_rows
from trivet.ci.locking import against_base, against_locks, update_locks
from trivet.ci.measuring import Measurer, Row, by_work, parts_of
from trivet.ci.pool import run_jobs, start_method
from trivet.ci.progress import Progress

if TYPE_CHECKING:
    from trivet.properties._collect import Found


_SECONDS_BETWEEN_SIGNS = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a bench was asked for: which halves, against which revision, whether to lock anew."""

    static: bool = True
    timed: bool = False
    against: str = ""
    update: bool = False


@dataclass
class Collector:
    """Finds the contracts again in a spawned worker."""

    names: Sequence[str]

    def __call__(self) -> "list[Found]":
        """Return the contracts, torch limited to one thread first."""
        return collect(self.names)


@dataclass
class _Bench:
    names: Sequence[str]
    settings: Settings
    asked: Asked
    progress: Progress
    found: "list[Found]" = field(default_factory=list)

    def entries(self) -> list[Document]:
        if not self.asked.against:
            entries = self._static_entries(None) if self.asked.static else []
            return entries + (self._timed(None) if self.asked.timed else [])
        with checkout(self.asked.against) as tree:
            entries = self._static_entries(tree) if self.asked.static else []
            return entries + (self._timed(tree) if self.asked.timed else [])

    def _static_entries(self, tree: Any) -> list[Document]:
        rows = self._rows()
        if tree is not None:
            base = measure_base(self.found, tree, self.settings.processes)
            return against_base(rows, base, self.asked.against)
        if self.asked.update:
            return update_locks(self.found, rows)
        return against_locks(self.found, rows)

    def _timed(self, tree: Any) -> list[Document]:
        from trivet.ci.timed import run_timed

        return run_timed(self.found, tree, self.progress)

    def _rows(self) -> list[Row]:
        """Measure every part that changed; one that brought nothing has one row that says why."""
        parts = parts_of(self.found)
        measurer = Measurer(self.found, Collector(self.names), keep_rows)
        known = {number: kept_rows(part) for number, part in enumerate(parts)}
        rows = {
            number: known[number] or [part.unmeasured("interrupted before its verdict")]
            for number, part in enumerate(parts)
        }
        order = [number for number in by_work(parts, self.found) if not known[number]]
        queue, workers = [parts[number] for number in order], self.settings.processes
        jobs = run_jobs(measurer, queue, workers, start_method(), slow=_SECONDS_BETWEEN_SIGNS)
        try:
            with self.progress.of(len(queue)):
                for event in jobs:
                    part = queue[event.job]
                    if event.kind == "note":
                        self.progress.note(part.label, event.value)
                    if event.kind == "slow":
                        self.progress.slow(part.label, event.value)
                    if not event.ends:
                        continue
                    failed = [part.unmeasured(str(event.value))]
                    got = event.value if event.kind == "done" else failed
                    rows[order[event.job]] = got
                    self.progress.done(part.label, [_said(row) for row in got])
        except KeyboardInterrupt:
            self.progress.interrupted()
        return [row for number in range(len(parts)) for row in rows[number]]


def run_bench(
    names: Sequence[str], settings: Settings, asked: Asked, progress: Progress
) -> Document:
    """Measure the named contracts and compare; returns the document.

    Raises CannotJudgeError where a name or a revision is unknown, and for an update that is asked
    for together with another revision.
    """
    if asked.update and asked.against:
        raise CannotJudgeError("--update locks the work tree: give no --against")
    if asked.update and not asked.static:
        raise CannotJudgeError("--update locks static metrics: give no --timed")
    bench = _Bench(names, settings, asked, progress, collect(names))
    return bench_document(bench.entries(), settings)


def _said(row: Row) -> Document:
    """What progress shows of a row that is not yet compared."""
    return {"verdict": "not measured" if row.reason else "measured"}


def bench_document(entries: Iterable[Document], settings: Settings) -> Document:
    """Return the document of a bench: its entries, and their verdicts summed up."""
    kept = list(entries)
    about = environment(executor="compile", profile="static", seed=settings.seed)
    return {
        "version": VERSION,
        "verdict": overall(entry["verdict"] for entry in kept),
        "environment": {**about, "profile": None},
        "entries": kept,
    }
