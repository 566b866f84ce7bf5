"""The audit: every re-created bug and every small planted one must turn a gate red."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trivet.ci.cluster import run_anywhere
from trivet.ci.controls import judge_controls
from trivet.ci.document import Document, audit_document, environment
from trivet.ci.errors import CannotJudgeError
from trivet.ci.gate import Settings, collect, laws_of
from trivet.ci.mutants import Part, in_order, judge_mutants, red_laws
from trivet.ci.pool import Event, Note
from trivet.ci.progress import Progress
from trivet.ci.since import changed_functions

if TYPE_CHECKING:
    from trivet.properties._collect import Found


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fault of one contract."""

    contract: int
    fault: int
    label: str
    number: int | None
    expected: tuple[str, ...]


@dataclass
class FaultJudge:
    """Judges faults in a worker; a spawned worker collects the contracts again by name."""

    names: Sequence[str]
    seed: int
    found: "list[Found]" = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names, "seed": self.seed, "found": []}

    def __call__(self, attempt: Attempt, note: Note) -> Document:
        """Return the fault's entry."""
        from trivet.faults._judge import judge_fault

        if not self.found:
            self.found = collect_with_faults(self.names)
        note("running")
        found = self.found[attempt.contract]
        verdict = judge_fault(found, found.contract.faults[attempt.fault], self.seed)
        return {**asdict(verdict), "name": attempt.label}


def run_faults(
    names: Sequence[str], settings: Settings, progress: Progress
) -> tuple[Document, set[str]]:
    """Judge every fault of the named contracts.

    Returns the document and the laws of these contracts that no fault turned red. Raises
    CannotJudgeError where there is no fault at all: an audit of nothing proves nothing.
    """
    found = collect_with_faults(names)
    if not _attempts(found):
        raise CannotJudgeError(
            f"no fault to audit: no @contract.fault on {', '.join(item.name for item in found)}"
        )
    faults = judge_faults(found, names, settings, progress)
    return audit_document(_about(settings), faults), _unproved(found, faults, [])


def run_audit(
    names: Sequence[str],
    settings: Settings,
    progress: Progress,
    part: Part,
    since: str | None = None,
) -> tuple[Document, set[str]]:
    """Judge every fault, every mutant and every control of the named contracts.

    With ``since``, a git revision, only mutants of functions that changed after it; none where
    none did. Returns the document and the laws of these contracts that nothing turned red.
    """
    found = collect_with_faults(names)
    if since is not None:
        part = replace(part, functions=_changed_since(found, since))
    faults = judge_faults(found, names, settings, progress)
    if since is not None and not part.functions:
        return _nothing_changed(settings, faults, since), _unproved(found, faults, [])
    audited = judge_mutants(
        found,
        names,
        settings,
        progress,
        part=part,
        collect=collect_with_faults,
        red={law for fault in faults for law in fault["red"]},
    )
    controls = judge_controls(
        found, names, settings, progress, shard=part.shard, collect=collect_with_faults
    )
    unproved = _unproved(found, faults, audited.entries) & audited.laws
    about, judged = _about(settings), (audited.entries, audited.broken, in_order(controls))
    asked = _asked(names, part, since)
    return audit_document(about, faults, *judged, unproved=unproved, part=asked), unproved


def _nothing_changed(settings: Settings, faults: list[Document], since: str) -> Document:
    """The document of an audit without a mutant: that of the faults, green where there is none."""
    print(f"no function of these contracts changed since {since}", file=sys.stderr)
    document = audit_document(_about(settings), faults)
    document["verdict"] = document["verdict"] if faults else "green"
    return document


def _changed_since(found: "Sequence[Found]", since: str) -> frozenset[tuple[str, str]]:
    from trivet.faults._mutants import mutants_of

    files = {mutant.path for item in found for mutant in mutants_of(item.contract)}
    return changed_functions(files, since)


def _asked(names: Sequence[str], part: Part, since: str | None) -> Document:
    return {
        "names": list(names),
        "sample": part.sample,
        "since": since,
        "shard": list(part.shard),
    }


def _about(settings: Settings) -> Document:
    return environment(executor="simulator", profile=settings.profile, seed=settings.seed)


def _unproved(
    found: "Sequence[Found]", faults: Sequence[Document], mutants: Sequence[Document]
) -> set[str]:
    laws = {law for item in found for law in laws_of(item.contract)}
    red = {law for fault in faults for law in fault["red"]}
    return laws - red - red_laws(mutants)


def judge_faults(
    found: "list[Found]", names: Sequence[str], settings: Settings, progress: Progress
) -> list[Document]:
    """Judge every fault of the contracts; after Ctrl-C those that are missing are not_judged."""
    attempts = _attempts(found)
    entries: dict[int, Document] = {}
    judge = FaultJudge(names, settings.seed, found)
    events = run_anywhere(judge, attempts, settings)
    try:
        with progress.of(len(attempts)):
            for number, entry in _judged(events, attempts, progress):
                entries[number] = entry
    except KeyboardInterrupt:
        progress.interrupted()
    return [
        entries.get(number) or _missing(attempt, "interrupted before its verdict")
        for number, attempt in enumerate(attempts)
    ]


def collect_with_faults(names: Sequence[str]) -> "list[Found]":
    """Return the contracts that ``names`` stand for, with the faults of shipped families.

    Those stand in modules of their own, which a gate has no need to load. Raises as ``collect``.
    """
    found = collect(names)
    from trivet.faults._collect import plant_faults

    plant_faults(found)
    return found


def _attempts(found: "Sequence[Found]") -> list[Attempt]:
    return [
        Attempt(
            contract=number,
            fault=index,
            label=f"{item.name}.{fault.name}",
            number=fault.number,
            expected=tuple(fault.expects),
        )
        for number, item in enumerate(found)
        for index, fault in enumerate(item.contract.faults)
    ]


def _judged(
    events: Iterator[Event], attempts: Sequence[Attempt], progress: Progress
) -> Iterator[tuple[int, Document]]:
    for event in events:
        attempt = attempts[event.job]
        if event.kind == "note":
            progress.note(attempt.label, event.value)
            continue
        entry = event.value if event.kind == "done" else _missing(attempt, event.value)
        yield event.job, entry
        # Announced after the caller recorded it, so that Ctrl-C loses nothing announced.
        progress.done(attempt.label, [entry])


def _missing(attempt: Attempt, reason: str) -> Document:
    return {
        "name": attempt.label,
        "number": attempt.number,
        "expected": list(attempt.expected),
        "red": [],
        "conventional": None,
        "verdict": "not_judged",
        "detail": reason,
    }
