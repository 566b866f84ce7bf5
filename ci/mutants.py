"""The mutant audit: every small bug planted in a kernel must turn some gate red."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.ci import sandbox
from trivet.ci.document import Document
from trivet.ci.gate import Settings
from trivet.ci.pool import Event, Note, run_jobs, start_method
from trivet.ci.progress import Progress
from trivet.ci.verdicts import Store, content_of
from trivet.ci.waivers import waive

if TYPE_CHECKING:
    from trivet.faults._mutants import Mutant
    from trivet.properties._collect import Found

LIMIT = 120.0
LIMIT_OF_ORIGINAL = 1800.0
# A worker's first mutant pays for what is imported late; what a mutant leaves behind ends with it.
JOBS_EACH = 16
Collect = Callable[[Sequence[str]], "list[Found]"]


@dataclass(frozen=True, slots=True)
class Part:
    """Which mutants are audited: the first ``sample`` of every contract, one shard of them."""

    sample: int | None = None
    shard: tuple[int, int] = (1, 1)

    def of(self, mutants: "Sequence[Mutant]") -> "list[Mutant]":
        """Return this part; ids are digests, so each part is a fair sample."""
        number, count = self.shard
        chosen = [m for m in mutants if int(m.id, 16) % count == number - 1]
        return chosen if self.sample is None else chosen[: self.sample]


@dataclass(frozen=True, slots=True)
class Trial:
    """One job of a worker: a contract's original (no mutant), or one of its mutants."""

    contract: int
    label: str
    key: str
    mutant: "Mutant | None" = None
    laws: Any = None
    conventional: bool = False


@dataclass
class MutantJudge:
    """Judges originals and mutants; a spawned worker collects the contracts again by name."""

    names: Sequence[str]
    seed: int
    root: Path
    collect: Collect
    found: "list[Found]" = field(default_factory=list)
    entered: bool = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "found": [], "entered": False}

    def __call__(self, trial: Trial, note: Note) -> Document:
        """Return a mutant's entry, or what the original keeps."""
        from trivet.faults._judge import trusted_suite
        from trivet.faults._judge_mutant import green_laws, judge_mutant

        found = self._found(trial.contract)
        note("running")
        if trial.mutant is None:
            laws, broken = green_laws(found, self.seed)
            return {
                "laws": laws,
                "broken": broken,
                "conventional": trusted_suite(found) is not None,
            }
        verdict = judge_mutant(
            found, trial.mutant, trial.laws, self.seed, conventional=trial.conventional
        )
        return entry_of(found.name, trial.mutant, **asdict(verdict))

    def _found(self, number: int) -> "Found":
        if not self.found:
            self.found = self.collect(self.names)
        found = self.found[number]
        found = replace(found, path=found.path.resolve())
        if not self.entered:
            sandbox.enter(self.root)
            self.entered = True
        return found


def entry_of(contract: str, mutant: "Mutant", **verdict: Any) -> Document:
    """Return the entry of a mutant in the machine output."""
    from trivet.faults._mutants import diff_of, shown

    return {
        "id": mutant.id,
        "contract": contract,
        "operator": mutant.operator,
        "file": shown(mutant.path),
        "line": mutant.line,
        "function": mutant.function,
        "replacement": mutant.replacement,
        "diff": diff_of(mutant),
        **verdict,
    }


def judge_mutants(
    found: "list[Found]",
    names: Sequence[str],
    settings: Settings,
    progress: Progress,
    *,
    part: Part,
    collect: Collect,
) -> tuple[list[Document], list[str]]:
    """Judge the mutants of the contracts; return their entries, and where an original is red.

    Verdicts known from before are not judged again. After Ctrl-C, those that are missing are
    not_judged.
    """
    store = Store()
    with tempfile.TemporaryDirectory(prefix="trivet-audit-") as root:
        judge = MutantJudge(names, settings.seed, Path(root), collect, list(found))
        run = _Run(judge, store, settings, progress)
        try:
            return run.audit(part)
        finally:
            store.close()


@dataclass
class _Run:
    judge: MutantJudge
    store: Store
    settings: Settings
    progress: Progress
    stopped: bool = False

    def audit(self, part: Part) -> tuple[list[Document], list[str]]:
        from trivet.faults._mutants import mutants_of

        found = self.judge.found
        contents = [content_of(item, self.settings.seed) for item in found]
        originals = [
            Trial(number, f"{item.name} original", contents[number])
            for number, item in enumerate(found)
        ]
        kept = self._run(originals, LIMIT_OF_ORIGINAL)
        trials: list[Trial] = []
        red: list[str] = []
        for number, item in enumerate(found):
            original = kept[number]
            if "laws" not in original:
                red.append(f"{item.name}: {original['detail']}")
            red += original.get("broken", [])
            for mutant in part.of(mutants_of(item.contract)):
                key = f"{contents[number]}/{mutant.id}"
                label = f"{item.name} {mutant.operator} {mutant.line}"
                laws = original.get("laws") if not original.get("broken") else None
                suite = bool(original.get("conventional"))
                trials.append(Trial(number, label, key, mutant, laws, suite))
        entries = self._run(trials, LIMIT)
        return waive(without_duplicates(entries)), red

    def _run(self, trials: Sequence[Trial], limit: float) -> list[Document]:
        """Return the trials' entries, in order: from the store, or judged and stored now."""
        entries: dict[int, Document] = {}
        for number, trial in enumerate(trials):
            known = self.store.get(trial.key)
            if known is not None:
                entries[number] = known
            elif trial.mutant is not None and trial.laws is None:
                entries[number] = self._missing(trial, "its original is not green")
        open_ = [number for number in range(len(trials)) if number not in entries]
        if open_ and not self.stopped:
            try:
                with self.progress.of(len(open_)):
                    for number, entry in self._judged([trials[n] for n in open_], limit):
                        entries[open_[number]] = entry
            except KeyboardInterrupt:
                self.stopped = True
                self.progress.interrupted()
        return [
            entries.get(number) or self._missing(trial, "interrupted before its verdict")
            for number, trial in enumerate(trials)
        ]

    def _judged(self, trials: Sequence[Trial], limit: float) -> Iterator[tuple[int, Document]]:
        events = run_jobs(
            self.judge,
            trials,
            self.settings.processes,
            start_method(),
            limit=limit,
            jobs_each=JOBS_EACH,
        )
        for event in events:
            trial = trials[event.job]
            if event.kind == "note":
                self.progress.note(trial.label, event.value)
                continue
            entry = event.value if event.kind == "done" else self._ended(trial, event)
            if event.kind == "done" and entry.get("verdict") != "not_judged":
                self.store.put(trial.key, entry)
            yield event.job, entry
            shown = entry if trial.mutant is not None else {"verdict": _of_original(entry)}
            self.progress.done(trial.label, [shown])

    def _ended(self, trial: Trial, event: Event) -> Document:
        verdict = {"late": "timeout", "lost": "crash"}.get(event.kind, "not_judged")
        return self._missing(trial, event.value, verdict)

    def _missing(self, trial: Trial, reason: str, verdict: str = "not_judged") -> Document:
        if trial.mutant is None:
            return {"detail": reason}
        name = self.judge.found[trial.contract].name
        nothing = {"killed_by": None, "witness": None, "code": "", "conventional": None}
        return entry_of(name, trial.mutant, verdict=verdict, detail=reason, **nothing)


def _of_original(entry: Document) -> str:
    if "laws" not in entry:
        return "not_judged"
    return "red" if entry["broken"] else "green"


def without_duplicates(entries: list[Document]) -> list[Document]:
    """Count mutants of a contract that compile to one IR once: the others are duplicates."""
    first: dict[tuple[str, str, str, str | None], str] = {}
    found = []
    for entry in entries:
        if entry["code"] and entry["verdict"] in ("killed", "survived"):
            place = (entry["contract"], entry["code"], entry["verdict"], entry["killed_by"])
            other = first.setdefault(place, entry["id"])
            if other != entry["id"]:
                entry = {**entry, "verdict": "duplicate", "detail": f"the same IR as {other}"}
        found.append(entry)
    return found
