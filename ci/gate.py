"""The correctness gate: every law of every named contract, one worker per core."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trivet.ci.captured import captured, with_output
from trivet.ci.document import Document, environment, gate_document
from trivet.ci.errors import CannotJudgeError
from trivet.ci.margins import remember
from trivet.ci.pool import Event, Note, run_jobs, start_method
from trivet.ci.progress import Progress

if TYPE_CHECKING:
    from trivet.properties._collect import Found
    from trivet.properties._contract import Contract
    from trivet.properties._laws import StandardLaw


# A call is ended from within long before; only what hangs outside of Python is silent for longer.
_LONGEST_SILENCE = 900.0
_SECONDS_BETWEEN_SIGNS = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run of the gates was asked for."""

    profile: str = "quick"
    executor: str = "simulator"
    seed: int = 0
    workers: int | None = None
    cluster: str | None = None

    @property
    def processes(self) -> int:
        """The number of workers: as asked for, else one per core."""
        return self.workers or len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Unit:
    """What one worker judges at a time: all laws of one contract at one dtype."""

    contract: int
    name: str
    dtype: str
    laws: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return the unit as people read it: softmax[float32]."""
        return f"{self.name}[{self.dtype}]"


@dataclass
class Judge:
    """Judges units in a worker; a spawned worker collects the contracts again by name."""

    names: Sequence[str]
    settings: Settings
    found: "list[Found]" = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names, "settings": self.settings, "found": []}

    def __call__(self, unit: Unit, note: Note) -> list[Document]:
        """Return the entries of the unit's gates."""
        from trivet.properties._engine import judge
        from trivet.properties._verdict import NotJudgedError

        if not self.found:
            self.found = collect(self.names)
        found = self.found[unit.contract]
        with captured() as printed:
            try:
                verdicts = judge(
                    found.contract,
                    name=found.name,
                    profile=self.settings.profile,
                    seed=self.settings.seed,
                    executor=self.settings.executor,
                    dtypes=(unit.dtype,),
                    progress=lambda label, done, total: note(f"{done}/{total}"),
                    source=found.source,
                )
            except NotJudgedError as error:
                return missing(unit, self.settings, str(error))
        return with_output([verdict.to_json() for verdict in verdicts], printed())


def run_gates(names: Sequence[str], settings: Settings, progress: Progress) -> Document:
    """Judge the named contracts and return the document.

    Ctrl-C ends the run early: gates without a verdict are then not_judged. Raises
    CannotJudgeError where a name is unknown or torch and triton are not usable.
    """
    found = collect(names)
    units = units_of(found)
    judged: dict[int, list[Document]] = {}
    events = run_jobs(
        Judge(names, settings, found),
        units,
        settings.processes,
        start_method(),
        quiet=_LONGEST_SILENCE,
        slow=_SECONDS_BETWEEN_SIGNS,
    )
    try:
        with progress.of(len(units)):
            for number, entries in _judged(events, units, settings, progress):
                judged[number] = entries
    except KeyboardInterrupt:
        progress.interrupted()
    gates: list[list[Document]] = [[] for _ in found]
    for number, unit in enumerate(units):
        unjudged = missing(unit, settings, "interrupted before its verdict")
        gates[unit.contract] += judged.get(number, unjudged)
    about = environment(executor=settings.executor, profile=settings.profile, seed=settings.seed)
    document = gate_document(about, zip((item.name for item in found), gates, strict=True))
    remember(document)
    return document


def _judged(
    events: Iterator[Event], units: Sequence[Unit], settings: Settings, progress: Progress
) -> Iterator[tuple[int, list[Document]]]:
    for event in events:
        unit = units[event.job]
        if event.kind == "note":
            progress.note(unit.label, event.value)
        if event.kind == "slow":
            progress.slow(unit.label, event.value)
        if not event.ends:
            continue
        gates = event.value if event.kind == "done" else missing(unit, settings, event.value)
        yield event.job, gates
        # Announced after the caller recorded it, so that Ctrl-C loses nothing announced.
        progress.done(unit.label, gates)


def collect(names: Sequence[str]) -> "list[Found]":
    """Return the contracts that ``names`` stand for, torch limited to one thread first.

    Raises CannotJudgeError where a name is unknown, a file fails to import, or nothing is found.
    """
    import torch

    torch.set_num_threads(1)
    from trivet.properties._collect import UnknownNameError, UnreadableFileError, find
    from trivet.properties._place import place_of

    try:
        found = find(names)
    except UnknownNameError as error:
        raise CannotJudgeError(str(error)) from error
    except UnreadableFileError as error:
        raise CannotJudgeError(f"{error}{place_of(error.__cause__)}") from error
    if not found:
        raise CannotJudgeError(
            "no contract: name one, or list paths under [tool.trivet] in pyproject.toml"
        )
    return told_apart(found)


def told_apart(found: "Sequence[Found]") -> "list[Found]":
    """Return the contracts, those of one name with their files behind it."""
    from trivet.ci.show import relative

    counts = Counter(item.name for item in found)
    return [
        replace(item, name=f"{item.name} ({relative(item.path)})")
        if counts[item.name] > 1
        else item
        for item in found
    ]


def units_of(found: "Sequence[Found]") -> list[Unit]:
    """Return one unit per contract and dtype, in order."""
    return [
        Unit(number, item.name, dtype, tuple(laws_of(item.contract)))
        for number, item in enumerate(found)
        for dtype in item.contract.dtypes()
    ]


def laws_of(contract: "Contract") -> "dict[str, StandardLaw]":
    """Return every law of a contract by name, standard ones first."""
    from trivet.properties._judges import Judges

    return Judges(contract, "simulator").laws


def missing(unit: Unit, settings: Settings, reason: str) -> list[Document]:
    """Return not_judged entries for a unit that brought no verdicts."""
    from trivet.properties._verdict import Verdict

    return [
        Verdict(
            contract=unit.name,
            law=law,
            dtype=unit.dtype,
            executor=settings.executor,
            state="not_judged",
            reason=reason,
        ).to_json()
        for law in unit.laws
    ]
