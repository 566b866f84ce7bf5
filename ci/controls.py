"""The audit's controls: right kernels written differently, on which no gate may turn red."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.ci import sandbox
from trivet.ci.cluster import run_anywhere
from trivet.ci.document import Document
from trivet.ci.gate import Settings
from trivet.ci.mutants import Collect
from trivet.ci.pool import Event, Note
from trivet.ci.progress import Progress
from trivet.ci.verdicts import Store, content_of
from trivet.ci.waivers import waivers

if TYPE_CHECKING:
    from trivet.faults._mutants import Mutant
    from trivet.properties._collect import Found

LIMIT = 1800.0


@dataclass(frozen=True, slots=True)
class Control:
    """One job of a worker; ``laws`` are those that the original keeps, None where not known."""

    contract: int
    label: str
    key: str
    edit: "Mutant"
    laws: Any


@dataclass
class ControlJudge:
    """Judges controls in a worker; a spawned worker collects the contracts again by name."""

    names: Sequence[str]
    seed: int
    root: Path
    collect: Collect
    found: "list[Found]" = field(default_factory=list)
    kept: dict[int, Any] = field(default_factory=dict)
    entered: bool = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "found": [], "kept": {}, "entered": False}

    def __call__(self, control: Control, note: Note) -> Document:
        """Return the control's verdict."""
        from trivet.faults._controls import judge_control

        if not self.found:
            self.found = self.collect(self.names)
        if not self.entered:
            sandbox.enter(self.root)
            self.entered = True
        note("running")
        found = self.found[control.contract]
        found = replace(found, path=found.path.resolve())
        laws = control.laws or self._laws(control.contract, found)
        if laws is None:
            return _unjudged("its original is not green")
        return asdict(judge_control(found, control.edit, laws, self.seed))

    def _laws(self, number: int, found: "Found") -> Any:
        """Return what the original keeps, judged once a worker; None where it is red itself."""
        from trivet.faults._controls import kept_laws

        if number not in self.kept:
            self.kept[number] = kept_laws(found, self.seed)
        return self.kept[number]


def judge_controls(
    found: "list[Found]",
    names: Sequence[str],
    settings: Settings,
    progress: Progress,
    *,
    shard: tuple[int, int],
    collect: Collect,
) -> list[Document]:
    """Judge the controls of the contracts; return their entries.

    What the originals keep is known where their mutants were audited. Verdicts known from before
    are not judged again. After Ctrl-C, those that are missing are not_judged.
    """
    store = Store()
    try:
        controls = list(_controls(found, settings.seed, shard, store))
        with tempfile.TemporaryDirectory(prefix="trivet-controls-") as root:
            judge = ControlJudge(names, settings.seed, Path(root), collect, list(found))
            verdicts = _verdicts(judge, controls, settings, progress, store)
    finally:
        store.close()
    names_of = [item.name for item in found]
    entries = [
        _entry(names_of[control.contract], control, verdicts.get(number))
        for number, control in enumerate(controls)
    ]
    return _waived(entries)


def _controls(
    found: "list[Found]", seed: int, shard: tuple[int, int], store: Store
) -> Iterator[Control]:
    from trivet.faults._controls import controls_of

    for number, (item, edits) in enumerate(zip(found, controls_of(found), strict=True)):
        content = content_of(item, seed)
        laws = (store.get(content) or {}).get("laws")
        mine = [edit for edit in edits if int(edit.id, 16) % shard[1] == shard[0] - 1]
        for edit in mine:
            label = f"{item.name} {edit.operator} {edit.line}"
            yield Control(number, label, f"{content}/control/{edit.id}", edit, laws)


def _verdicts(
    judge: ControlJudge,
    controls: Sequence[Control],
    settings: Settings,
    progress: Progress,
    store: Store,
) -> dict[int, Document]:
    verdicts = {n: known for n, c in enumerate(controls) if (known := store.get(c.key))}
    open_ = [number for number in range(len(controls)) if number not in verdicts]
    jobs = [controls[number] for number in open_]
    if not jobs:
        return verdicts
    events = run_anywhere(judge, jobs, settings, limit=LIMIT)
    try:
        with progress.of(len(jobs)):
            for event in events:
                control = jobs[event.job]
                if event.kind == "note":
                    progress.note(control.label, event.value)
                    continue
                verdict = verdicts[open_[event.job]] = _of_event(event)
                if event.kind == "done" and verdict["verdict"] != "not_judged":
                    store.put(control.key, verdict)
                progress.done(f"{control.label} (control)", [verdict])
    except KeyboardInterrupt:
        progress.interrupted()
    return verdicts


def _of_event(event: Event) -> Document:
    return dict(event.value) if event.kind == "done" else _unjudged(event.value)


def _unjudged(reason: str) -> Document:
    return {"verdict": "not_judged", "law": None, "witness": None, "detail": reason}


def _entry(contract: str, control: Control, verdict: Document | None) -> Document:
    from trivet.faults._mutants import diff_of, shown

    edit = control.edit
    return {
        "id": edit.id,
        "contract": contract,
        "rewrite": edit.operator,
        "file": shown(edit.path),
        "line": edit.line,
        "diff": diff_of(edit),
        **(verdict or _unjudged("interrupted before its verdict")),
    }


def _waived(entries: list[Document]) -> list[Document]:
    """Return the entries, red ones with a waiver as waived."""
    known = waivers()
    return [
        {**entry, "verdict": "waived", "detail": known[entry["id"]].reason}
        if entry["verdict"] == "red" and entry["id"] in known
        else entry
        for entry in entries
    ]
