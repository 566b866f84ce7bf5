"""The search for a law that a mutant breaks: in phases, by what they cost, on inputs kept warm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from triton.compiler.errors import CompilationError

from trivet.faults._warm import PROFILE, Kept, Warm, trace
from trivet.properties._arrays import differing
from trivet.properties._cases import Case
from trivet.properties._contract import Contract
from trivet.properties._engine import Session
from trivet.properties._gate import CRASH, Gate
from trivet.properties._laws import standard_laws
from trivet.properties._observe import DiscardedError, Observation, observe
from trivet.properties._verdict import NotJudgedError

Laws = dict[str, tuple[str, ...]]
# The order is that of kills per second where nothing is known of the contract yet.
Phase = Literal["looks", "refuses", "own", "reruns", "production", "drawn"]
PHASES: tuple[Phase, ...] = ("looks", "refuses", "own", "reruns", "production", "drawn")
_KINDS: dict[str, Phase] = {
    "observes": "looks",
    "counts": "looks",
    "refuses": "refuses",
    "observes_cases": "own",
    "reruns": "reruns",
    "at_production": "production",
}
# Examples that Hypothesis draws beyond the plan, for what every planned one left green.
DRAWN = 10
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Finding:
    """What one phase made of a kernel.

    ``kind``: ``killed`` by ``law`` on what ``witness`` tells, of the inputs ``killer``; ``crash``,
    ``timeout``, ``invalid`` and ``not_judged`` say why in ``witness``; ``green``: none of that.
    ``red`` are all laws that the search left broken when it ended.
    """

    kind: Literal["killed", "crash", "timeout", "invalid", "not_judged", "green"]
    law: str | None = None
    witness: str = ""
    killer: Case | None = None
    red: tuple[str, ...] = ()


def laws_in(phase: Phase, names: Sequence[str]) -> list[str]:
    """Return those of the laws that a phase judges; a contract's own run the kernel again."""
    standard = standard_laws()
    if phase == "drawn":
        return [n for n in laws_in("looks", names) if standard[n].kind == "observes"]
    return [name for name in names if _phase_of(name) == phase]


def _phase_of(name: str) -> Phase | None:
    """Return where a law is judged; None for those that look at what a GPU's compiler makes."""
    law = standard_laws().get(name)
    if law is None or "shadow" in law.needs:
        return "reruns"
    return _KINDS.get(law.kind)


@dataclass
class Search(Session):
    """One phase of the gates of one kernel and dtype, until one law of it is red.

    An exception of the kernel does not end the search: a law may still tell more. ``changed`` is
    true once the kernel returned anything else than the original on any case, ``unlike`` once its
    host function launched anything else. ``raised`` is what the kernel first raised where the
    original did not: a law may allow a refusal that is none of the original's.
    """

    warm: Warm | None = None
    launched: bool = False
    refused: str = ""
    spent: str = ""
    unsupported: str = ""
    raised: str = ""
    changed: bool = False
    unlike: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.warm is not None
        self.generator = self.warm.generator(self.dtype)
        self.power = None

    def run(self) -> None:
        """Judge every law of this search, on the cases that its kind looks at."""
        assert self.warm is not None
        if self.judges.on_shared_runs:
            self._judge_planned(self.warm.shared(self.dtype))
        for law in self.judges.with_own_cases:
            self._judge_own(law)
        if not self.stopped:
            self.judges.judge_production(self.dtype, self.seed, self.profile)
            self.judges.judge_refusals(self.generator.arguments())
            self.judges.judge_work()

    def draw(self, count: int) -> None:
        """Judge on cases that Hypothesis draws beyond the plan."""
        self.example = len(self._warm.shared(self.dtype))
        self.generator.generated(count, self._judge_case)

    @property
    def _warm(self) -> Warm:
        assert self.warm is not None
        return self.warm

    def _judge_planned(self, plan: Sequence[Kept]) -> None:
        for kept in plan:
            if not self.stopped:
                self.example = kept.example
                self._judge_case(kept.case)

    def _judge_own(self, law: str) -> None:
        self.example = len(self._warm.shared(self.dtype))
        gate = self.gates[law]
        for case in self._warm.own_cases(self.dtype, law):
            if gate.closed or self.stopped:
                return
            observation = self._observe(case, [gate])
            if observation is not None:
                self.judges.judge_one(gate, observation, case, self.dtype, self.generator)
        if not gate.tried and not gate.closed:
            gate.not_promised = self.generator.nothing_for(law)

    @property
    def stopped(self) -> bool:
        """Whether the verdict is known."""
        known = bool(self.spent or self.unsupported or (self.refused and not self.launched))
        return known or any(g.broken for g in self.gates.values()) or super().stopped

    def observe(self, case: Case, example: int) -> Observation:
        """Run the kernel on a case and note how its launches ended, and whether all is as ever."""
        kept = self._warm.kept(self.dtype, case, example)
        if kept.discarded or kept.inputs is None:
            raise DiscardedError(kept.discarded)
        executor = self.judges.executor_for(example)
        observation = observe(self.contract, kept.inputs, executor, reference=kept.reference)
        observation.notes.update(example=example, case=case, normal=case.is_normal)
        if kept.reference is None:
            self.judges.read_reference(observation)
        self._note(observation)
        if observation.run.error is not None and kept.error is None and not kept.failed:
            self.raised = self.raised or self._refusal(case, observation.run.error)
        self.changed = self.changed or not same_results(kept, observation)
        self.unlike = self.unlike or trace(observation.run.launches) != trace(kept.launches)
        return observation

    def _note(self, observation: Observation) -> None:
        run = observation.run
        if isinstance(run.launch_error, CompilationError):
            self.refused = self.refused or first_line(run.launch_error)
        elif run.launches:
            self.launched = True
        if run.failed is not None and run.failed.kind == "fuel":
            self.spent = run.failed.text
        elif run.failed is not None and run.failed.kind == "unsupported":
            self.unsupported = run.failed.text

    def _refusal(self, case: Case, error: BaseException) -> str:
        sizes = ", ".join(f"{name} = {size}" for name, size in case.dims.items())
        told = f"{self.dtype}, {sizes}: {type(error).__name__}: {first_line(error)}"
        return told[:_LONGEST]

    def finding(self) -> Finding:
        """Return what the gates add up to."""
        for name, gate in self.gates.items():
            if gate.broken:
                red = tuple(law for law, each in self.gates.items() if each.broken)
                return Finding("killed", name, self._witness(gate), self._killer(gate), red)
        if self.spent:
            return Finding("timeout", None, self.spent)
        if self.refused and not self.launched:
            return Finding("invalid", None, self.refused)
        if self.unsupported:
            return Finding("not_judged", None, self.unsupported)
        return self._unbroken()

    def _unbroken(self) -> Finding:
        states = {name: gate.state() for name, gate in self.gates.items()}
        for name, (state, reason) in states.items():
            if state == "red" and reason != CRASH:
                return Finding("killed", name, f"{self.dtype}: {reason}")
        crashes = [name for name, (state, _) in states.items() if state == "red"]
        if crashes:
            return Finding("crash", None, self._witness(self.gates[crashes[0]]))
        for name, (state, reason) in states.items():
            if state == "not_judged":
                return Finding("not_judged", None, f"{name}[{self.dtype}]: {reason}")
        if self.raised:
            return Finding("crash", None, self.raised)
        return Finding("green")

    @staticmethod
    def _killer(gate: Gate) -> Case | None:
        reds = [red for red in gate.reds.values() if not red.violation.key.startswith(CRASH)]
        return reds[0].case if reds else None

    def _witness(self, gate: Gate) -> str:
        reds = [r for r in gate.reds.values() if not r.violation.key.startswith(CRASH)]
        red = (reds or list(gate.reds.values()))[0]
        dims = red.case.dims if red.case is not None else {}
        sizes = ", ".join(f"{name} = {size}" for name, size in dims.items())
        where = f"{self.dtype}, {sizes}" if sizes else self.dtype
        return f"{where}: {red.violation.text.splitlines()[0]}"[:_LONGEST]


def searches(
    warm: Warm, contract: Contract, laws: Laws, phase: Phase, extra: Sequence[str] = ()
) -> Iterator[Search]:
    """Yield a phase's search at every dtype that has laws of its kind, each already run.

    ``extra`` are laws of other phases that are asked as well, where the original keeps them.
    """
    for dtype, names in laws.items():
        chosen = laws_in(phase, names)
        chosen += [name for name in extra if name in names and name not in chosen]
        if not chosen:
            continue
        search = Search(
            contract,
            warm.found.name,
            dtype,
            PROFILE,
            warm.seed,
            "simulator",
            laws=chosen,
            source=warm.found.source,
            warm=warm,
        )
        if phase == "drawn":
            search.draw(DRAWN)
        else:
            search.run()
        yield search


def same_results(kept: Kept, observation: Observation) -> bool:
    """Whether a run returned, or raised, the very same as the original."""
    run = observation.run
    if run.failed is not None or kept.failed:
        return False
    if run.error is not None or kept.error is not None:
        return type(run.error) is kept.error
    try:
        return same_bits(kept, observation)
    except NotJudgedError:
        return False  # it returned something that is no tensor


def same_bits(kept: Kept, observation: Observation) -> bool:
    """Whether every output of a run has the bits that the original's had."""
    outputs = observation.outputs
    return len(kept.outputs) == len(outputs) and all(
        (first is None) == (second is None)
        and (
            first is None
            or second is None
            or (
                first.actual.shape == second.actual.shape
                and first.actual.dtype == second.actual.dtype
                and not differing(first.actual, second.actual).any()
            )
        )
        for first, second in zip(kept.outputs, outputs, strict=True)
    )


def first_line(error: BaseException) -> str:
    """Return what an error says, in one line."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
