"""The worker's side of the mutant audit: originals kept warm, one forked process a mutant."""

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.ci import sandbox
from trivet.ci.cage import EndedError, Limits, in_child
from trivet.ci.document import Document
from trivet.ci.pool import Note

if TYPE_CHECKING:
    from trivet.faults._judge_mutant import MutantVerdict, Subject
    from trivet.faults._mutants import Mutant
    from trivet.faults._search import Phase
    from trivet.faults._warm import Warm
    from trivet.properties._collect import Found

Collect = Callable[[Sequence[str]], "list[Found]"]
Verdict = Callable[[], "tuple[MutantVerdict, str]"]
# An original is judged in half an hour at most; a mutant gets what its originals took, and more.
ORIGINAL = Limits(processor=1800, wall=36000, memory=4 * 2**30)
_LEAST, _TIMES, _WALL = 30.0, 5.0, 100.0


@dataclass(frozen=True, slots=True)
class Original:
    """A contract as its mutants are judged: what the original keeps, its killers, the order.

    ``killers`` are cases by dtype, ``order`` phases by the kind of function that is edited.
    """

    laws: "dict[str, tuple[str, ...]]"
    seconds: float = 0.0
    conventional: bool = False
    killers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    order: "Mapping[str, Sequence[Phase]]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """A contract's original (no mutant), or a mutant before every contract that reaches it.

    ``on_device``: to be judged on a GPU, by what only a GPU can tell.
    """

    contracts: tuple[int, ...]
    label: str
    key: str
    mutant: "Mutant | None" = None
    originals: tuple[Original, ...] = ()
    killers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    on_device: bool = False


@dataclass
class MutantJudge:
    """Judges originals and mutants; a spawned worker collects the contracts again by name."""

    names: Sequence[str]
    seed: int
    root: Path
    collect: Collect
    found: "list[Found]" = field(default_factory=list)
    limits: Limits | None = None
    warm: "dict[int, Warm]" = field(default_factory=dict)
    primed: set[tuple[int, str]] = field(default_factory=set)
    entered: bool = False

    def __getstate__(self) -> dict[str, Any]:
        empty = {"found": [], "warm": {}, "primed": set(), "entered": False}
        return {**self.__dict__, **empty}

    def __call__(self, job: Job, note: Note) -> Document:
        """Return a mutant's entry, or what the original keeps."""
        if not self.found:
            self.found = self.collect(self.names)
        if not self.entered:
            import_module("trivet.faults._mutants")  # which notes the folder of the command
            sandbox.enter(self.root)
            os.environ["TRIVET_CACHE"] = str(self.root / "cache")
            self.entered = True
        note("running")
        if job.mutant is None:
            return self._original(job)
        return self._mutant(job, job.mutant)

    def _contract(self, number: int) -> "Found":
        found = self.found[number]
        return replace(found, path=found.path.resolve())

    def _original(self, job: Job) -> Document:
        from trivet.faults._judge import trusted_suite
        from trivet.faults._judge_mutant import green_laws
        from trivet.faults._warm import Warm

        found = self._contract(job.contracts[0])

        def judge() -> Document:
            started = time.process_time()
            laws, broken = green_laws(found, self.seed, Warm(found, self.seed, job.killers))
            return {
                "laws": laws,
                "broken": broken,
                "conventional": trusted_suite(found) is not None,
                "seconds": round(time.process_time() - started, 2),
            }

        try:
            kept: Document = in_child(judge, self.limits or ORIGINAL)
        except EndedError as error:
            return {"detail": str(error)}
        return kept

    def _mutant(self, job: Job, mutant: "Mutant") -> Document:
        judged = (self._on_device if job.on_device else self._simulated)(job, mutant)
        folder = sandbox.own_folder(self.root)

        def judge() -> Document:
            os.chdir(folder)
            os.environ.update(HOME=folder, TMPDIR=folder, TRIVET_CACHE=f"{folder}/cache")
            verdict, contract = judged()
            return entry_of(contract, mutant, **asdict(verdict))

        try:
            entry: Document = in_child(judge, self.limits or _limits_of(job))
        except EndedError as error:
            kind = "timeout" if error.kind == "late" else "crash"
            return unjudged(self.found[job.contracts[0]].name, mutant, str(error), kind)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return entry

    def _simulated(self, job: Job, mutant: "Mutant") -> "Verdict":
        """Warm what a mutant's contracts share; return how the mutant is judged."""
        from trivet.faults._judge_mutant import judge_everywhere

        subjects = [
            self._subject(number, original, mutant)
            for number, original in zip(job.contracts, job.originals, strict=True)
        ]

        def judged() -> "tuple[MutantVerdict, str]":
            verdict, subject = judge_everywhere(subjects, mutant)
            return verdict, subject.warm.found.name

        return judged

    def _on_device(self, job: Job, mutant: "Mutant") -> "Verdict":
        from trivet.faults._on_device import judge_on_device

        found = self._contract(job.contracts[0])
        laws = job.originals[0].laws
        return lambda: (judge_on_device(found, mutant, laws, self.seed), found.name)

    def _subject(self, number: int, original: Original, mutant: "Mutant") -> "Subject":
        from trivet.faults._equivalence import prime
        from trivet.faults._judge import trusted_suite
        from trivet.faults._judge_mutant import Subject
        from trivet.faults._search import PHASES
        from trivet.faults._warm import Warm

        if number not in self.warm:
            self.warm[number] = Warm(self._contract(number), self.seed, original.killers)
            self.warm[number].prepare()
            if original.conventional:  # once here, so that it is imported in every child
                trusted_suite(self.warm[number].found)
        if (number, mutant.module) not in self.primed:
            self.primed.add((number, mutant.module))
            prime(self.warm[number], [mutant])
        order = original.order.get(mutant.kind, PHASES)
        return Subject(self.warm[number], original.laws, order, original.conventional)


def _limits_of(job: Job) -> Limits:
    taken = sum(original.seconds for original in job.originals)
    processor = max(_LEAST, _TIMES * taken)
    return Limits(processor, wall=_WALL * processor)


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


def unjudged(contract: str, mutant: "Mutant", reason: str, verdict: str = "not_judged") -> Document:
    """Return the entry of a mutant whose process brought no verdict."""
    from trivet.faults._judge_mutant import MutantVerdict

    return entry_of(
        contract,
        mutant,
        **{**asdict(MutantVerdict("not_judged")), "verdict": verdict, "detail": reason},
    )
