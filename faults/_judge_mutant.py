"""Judging a mutant: cheap laws first, the first one that is red for the right reason ends it."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from trivet.faults._artifact import SAME_PTX, same_artifact
from trivet.faults._equivalence import SAME_WORK, code_launched, read_code, unseen
from trivet.faults._judge import seen_by_convention
from trivet.faults._load import FaultError
from trivet.faults._mutants import Mutant, loaded
from trivet.faults._mutators import operators
from trivet.faults._search import PHASES, Finding, Laws, Phase, searches
from trivet.faults._warm import Warm
from trivet.properties._collect import Found
from trivet.properties._contract import Contract
from trivet.properties._judges import Judges

Verdict = Literal[
    "killed",
    "survived",
    "invalid",
    "equivalent",
    "dead_lane",
    "duplicate",
    "timeout",
    "crash",
    "waived",
    "not_judged",
]
_LONGEST = 2000
_QUICK: tuple[Phase, ...] = ("looks", "refuses", "own")
# What several contracts that reach one mutant say of it: the first of these that any of them says.
_STRONGEST: tuple[Verdict, ...] = (
    "killed",
    "timeout",
    "crash",
    "survived",
    "not_judged",
    "dead_lane",
    "equivalent",
    "invalid",
)


@dataclass(frozen=True, slots=True)
class MutantVerdict:
    """What the gates made of a mutant.

    ``killed_by`` is the law that turned red, ``witness`` the inputs on which it did, in words,
    ``killer`` those inputs as a case; ``detail`` says why there is no kill; ``code`` is a digest of
    the IR that was launched, empty for a mutant of the host function; ``conventional`` says whether
    the conventional suite sees it, None where that was not tried; ``needs_device``: only a device
    can judge it; ``alike`` says of a survivor whether it returned the original's bits on every
    input tried; ``seconds`` is the processor time of each phase; ``red`` are all laws that were
    broken on the inputs that ended the search.
    """

    verdict: Verdict
    killed_by: str | None = None
    witness: str | None = None
    detail: str = ""
    code: str = ""
    conventional: bool | None = None
    needs_device: bool = False
    killer: str | None = None
    dtype: str | None = None
    phase: str | None = None
    alike: bool | None = None
    seconds: "dict[str, float] | None" = None
    red: tuple[str, ...] = ()


def green_laws(found: Found, seed: int = 0, warm: Warm | None = None) -> tuple[Laws, list[str]]:
    """Judge the original on all that mutants will be judged by.

    Returns per dtype the laws that are green, and what is red, in words.
    """
    warm = warm or Warm(found, seed)
    every = {dtype: tuple(_all_laws(found.contract)) for dtype in found.contract.dtypes()}
    green: dict[str, list[str]] = {dtype: [] for dtype in every}
    broken: dict[str, str] = {}
    for phase in PHASES:
        for search in searches(warm, found.contract, every, phase):
            for verdict in search.verdicts(shrink=False):
                label = f"{verdict.law}[{verdict.dtype}]"
                if verdict.state == "red":
                    broken[label] = verdict.failure.text if verdict.failure else label
                elif verdict.state == "green" and phase != "drawn":
                    green[verdict.dtype].append(verdict.law)
    kept = {dtype: tuple(n for n in every[dtype] if n in green[dtype]) for dtype in every}
    return kept, list(broken.values())


def _all_laws(contract: Contract) -> Sequence[str]:
    return list(Judges(contract, "simulator").laws)


@dataclass(frozen=True)
class Subject:
    """A contract that reaches a mutant: what its original keeps, by the inputs kept warm.

    ``order`` says which phases come first; ``conventional`` also tries the conventional suite,
    which the original is known to pass.
    """

    warm: Warm
    laws: Laws
    order: Sequence[Phase] = PHASES
    conventional: bool = False


def judge_mutant(
    found: Found, mutant: Mutant, laws: Laws, seed: int = 0, *, conventional: bool = False
) -> MutantVerdict:
    """Judge one mutant of the contract ``found`` by the laws that its original keeps."""
    subject = Subject(Warm(found, seed), laws, conventional=conventional)
    subject.warm.prepare()
    return judge_everywhere([subject], mutant)[0]


def judge_everywhere(subjects: Sequence[Subject], mutant: Mutant) -> tuple[MutantVerdict, Subject]:
    """Judge a mutant by every contract that reaches it, until one of them kills it.

    Each first tries what costs little, then each in turn the rest. Returns the strongest verdict
    and the contract that gave it.
    """
    trials = [Trial(subject, mutant) for subject in subjects]
    for stage in (Trial.quick, Trial.full):
        for trial in trials:
            if trial.verdict is None:
                trial.verdict = stage(trial)
            if trial.verdict is not None and trial.verdict.verdict in ("killed", "timeout"):
                return trial.told(), trial.subject
    given = [(trial.told(), trial.subject) for trial in trials]
    return min(given, key=lambda pair: _STRONGEST.index(pair[0].verdict))


class Trial:
    """One mutant before the gates of one contract."""

    def __init__(self, subject: Subject, mutant: Mutant) -> None:
        self.subject = subject
        self.mutant = mutant
        self.operator = operators()[mutant.operator]
        self.kernel: Callable[..., Any] | None = None
        self.verdict: MutantVerdict | None = None
        self.unclear: Finding | None = None
        self.compiles = False
        self.changed = False
        self.unlike = False
        self.seconds: dict[str, float] = {}

    def quick(self) -> MutantVerdict | None:
        """Load and compile the mutant, try the cheap laws, and whether it differs at all."""
        contract = self.subject.warm.found.contract
        with self._timed("load"):
            try:
                self.kernel = loaded(contract, self.mutant)
            except FaultError as error:
                return MutantVerdict("not_judged", detail=str(error))
            except Exception as error:
                return MutantVerdict(
                    "invalid", detail=f"{type(error).__name__}: {error}"[:_LONGEST]
                )
        if self.mutant.kind == "kernel":
            with self._timed("compile"):
                reading = read_code(self.subject.warm, self.kernel)
            self.compiles = reading.kind == "unlike"
            if reading.kind == "refused":
                return MutantVerdict("invalid", detail=reading.detail)
            if reading.kind == "alike":
                return MutantVerdict("equivalent", detail=reading.detail)
        found = self._phases([phase for phase in self.subject.order if phase in _QUICK])
        return found or self._proven()

    def full(self) -> MutantVerdict:
        """Try every other law on a mutant that the cheap ones left green."""
        found = self._phases([phase for phase in self.subject.order if phase not in _QUICK])
        if found is not None:
            return found
        host = self.mutant.kind == "host" and not self.operator.beyond
        if host and not self.unlike and not self.changed:
            return MutantVerdict("equivalent", detail=SAME_WORK)
        if self.operator.elsewhere:
            detail = self.operator.elsewhere
            return MutantVerdict("not_judged", detail=detail, needs_device=True)
        if self.unclear is not None:
            return MutantVerdict("not_judged", detail=self.unclear.witness)
        return self._compiled() or MutantVerdict("survived", alike=not self.changed)

    def _compiled(self) -> MutantVerdict | None:
        """Return that a survivor is the original's very kernel once it is compiled."""
        assert self.kernel is not None
        if self.mutant.kind != "kernel" or self.changed:
            return None
        with self._timed("artifact"):
            same = same_artifact(self.subject.warm, self.kernel)
        return MutantVerdict("equivalent", detail=SAME_PTX) if same else None

    def _phases(self, phases: Sequence[Phase]) -> MutantVerdict | None:
        """Return the verdict of the first phase that has one."""
        assert self.kernel is not None
        contract = self.subject.warm.found.contract.with_kernel(self.kernel)
        laws = self.subject.laws
        for phase in phases:
            extra = ("repeats",) if phase == "looks" and self.mutant.kind == "host" else ()
            with self._timed(phase):
                for search in searches(self.subject.warm, contract, laws, phase, extra):
                    self.changed = self.changed or search.changed
                    self.unlike = self.unlike or search.unlike
                    verdict = self._decided(search.finding(), search.dtype, phase)
                    if verdict is not None:
                        return verdict
        return None

    def _decided(self, finding: Finding, dtype: str, phase: Phase) -> MutantVerdict | None:
        if finding.kind == "killed":
            case = None if finding.killer is None else finding.killer.to_json()
            return MutantVerdict(
                "killed",
                finding.law,
                finding.witness,
                killer=case,
                dtype=dtype,
                phase=phase,
                red=finding.red,
            )
        if finding.kind == "timeout":
            return MutantVerdict("timeout", detail=finding.witness, phase=phase)
        if finding.kind == "invalid" and not self.compiles:
            return MutantVerdict("invalid", detail=finding.witness)
        if finding.kind in ("crash", "invalid"):
            return MutantVerdict("crash", detail=finding.witness, phase=phase)
        if finding.kind == "not_judged" and phase != "drawn":
            self.unclear = self.unclear or finding
        return None

    def _proven(self) -> MutantVerdict | None:
        """Return how a mutant that the cheap laws left green is shown to be no other kernel."""
        with self._timed("proof"):
            reason = unseen(self.subject.warm, self.mutant, self.operator)
        return None if reason is None else MutantVerdict(reason[0], detail=reason[1])

    def told(self) -> MutantVerdict:
        """Return the verdict with what else is known of the mutant."""
        assert self.verdict is not None
        seen = None
        tried = self.verdict.verdict in ("killed", "survived", "crash")
        if self.subject.conventional and tried and self.kernel is not None:
            with self._timed("conventional"):
                seen = seen_by_convention(self.subject.warm.found, self.kernel, trusted=True)
        code = ""
        if tried and self.kernel is not None and self.mutant.kind == "kernel":
            code = code_launched(self.subject.warm, self.kernel)
        seconds = {name: round(spent, 3) for name, spent in self.seconds.items()}
        return replace(self.verdict, code=code, conventional=seen, seconds=seconds)

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started = time.process_time()
        try:
            yield
        finally:
            spent = time.process_time() - started
            self.seconds[phase] = self.seconds.get(phase, 0.0) + spent
