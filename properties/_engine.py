"""Judging a contract: generate inputs, run the kernel once, let every law look at the run."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from trivet.properties._cases import Case, assumption_failed, build, dtypes_of
from trivet.properties._contract import Contract
from trivet.properties._gate import Gate
from trivet.properties._generate import Generator
from trivet.properties._judges import Judges
from trivet.properties._observe import DiscardedError, Observation, observe
from trivet.properties._power import Power
from trivet.properties._profiles import Profile, profile_of
from trivet.properties._shrunk import smallest_failures
from trivet.properties._verdict import Verdict

Progress = Callable[[str, int, int], None]


def judge(
    contract: Contract,
    *,
    name: str,
    profile: str = "quick",
    seed: int = 0,
    executor: str = "simulator",
    laws: Collection[str] | None = None,
    dtypes: Sequence[str] | None = None,
    progress: Progress | None = None,
    stop_when: Collection[str] | None = None,
    shrink: bool = True,
    source: str = "",
) -> list[Verdict]:
    """Judge every law of ``contract`` at every dtype and return one verdict for each.

    ``laws`` judges only these; ``stop_when`` ends the search once all of these are red (an
    audit's early exit); ``shrink=False`` reports the first failing inputs as they came;
    ``source`` is how ``find`` names the contract, kept in witnesses for replay.
    """
    wanted = profile_of(profile)
    verdicts = []
    for dtype in dtypes or dtypes_of(contract):
        session = Session(
            contract, name, dtype, wanted, seed, executor, laws, stop_when, source, progress
        )
        session.run()
        verdicts += session.verdicts(shrink=shrink)
    return verdicts


@dataclass
class Session:
    """The gates of one contract at one dtype, judged on shared runs."""

    contract: Contract
    name: str
    dtype: str
    profile: Profile
    seed: int
    executor: str
    laws: Collection[str] | None = None
    stop_when: Collection[str] | None = None
    source: str = ""
    progress: Progress | None = None
    example: int = 0

    def __post_init__(self) -> None:
        self.judges = Judges(self.contract, self.executor, self.laws, self.source, self.dtype)
        self.generator = Generator(self.contract, self.dtype, self.seed, self.profile)
        self.gates = self.judges.gates
        # The plan is the contract's, not the kernel's: a search for a fault learns nothing from it.
        asked = self.stop_when is None and "matches_oracle" in self.gates
        self.power = self._power() if asked else None

    def run(self) -> None:
        """Generate and judge until the profile's count is reached or the search may stop."""
        self.judges.judge_builds(self.dtype, self.name, self.progress)
        if not self.judges.runs:
            return
        failed = self.generator.learn(self.judges.executor_for(0))
        if failed is not None:
            self.judges.close_endless(failed)
        if self.judges.on_shared_runs:
            self._judge_shared_cases()
            self._certify()
        for law in self.judges.with_own_cases:
            self._judge_own_cases(law)
        if not self.stopped:
            self.judges.judge_production(self.dtype, self.seed, self.profile)
        if not self.stopped:
            self.judges.judge_refusals(self.generator.arguments())
            self.judges.judge_work()
            return
        for gate in self.gates.values():
            if not gate.examples and not gate.closed:
                gate.not_judged = "the search ended before its turn"

    def _judge_shared_cases(self) -> None:
        for case in self.generator.planned():
            self._judge_case(case)
        missing = self.profile.examples - self.example
        if missing > 0 and not self.stopped:
            self.generator.generated(missing, self._judge_case)

    @property
    def stopped(self) -> bool:
        """Whether every law of ``stop_when`` is red, or no gate is left to judge."""
        if self.stop_when and all(self.gates[law].broken for law in self.stop_when):
            return True
        return all(gate.closed for gate in self.gates.values())

    def _judge_case(self, case: Case) -> None:
        if self.stopped:
            return
        observation = self._observe(case, [self.gates[law] for law in self.judges.on_shared_runs])
        if observation is None:
            return
        self.judges.judge_shared(observation, case, self.dtype, self.generator)
        self._collect(observation)
        self.example += 1
        if self.progress:
            self.progress(f"{self.name} {self.dtype}", self.example, self.profile.examples)

    def _power(self) -> Power:
        return Power(self.contract, self.dtype, self.profile, self.judges.executor_for(0))

    def _collect(self, observation: Observation) -> None:
        """Keep inputs that the value law judged, for the power certificate."""
        gate = self.gates.get("matches_oracle")
        judged = observation.run.error is None and observation.run.failed is None
        if self.power is None or gate is None or gate.closed or gate.reds or not judged:
            return
        self.power.add(observation.inputs, observation.values, self.example)

    def _certify(self) -> None:
        """Let the value law's gate say what its inputs would have shown, unless it is red."""
        gate = self.gates.get("matches_oracle")
        if self.power is None or gate is None or gate.closed or gate.reds:
            return
        started = time.perf_counter()
        certificate = self.power.certificate()
        gate.note = certificate.note() if certificate.applicable else gate.note
        gate.vacuous = certificate.vacuity
        gate.seconds += time.perf_counter() - started

    def _judge_own_cases(self, law: str) -> None:
        gate = self.gates[law]
        for case in self.generator.own_cases(law):
            if gate.closed or self.stopped:
                return
            observation = self._observe(case, [gate])
            if observation is not None:
                self.judges.judge_one(gate, observation, case, self.dtype, self.generator)
        if not gate.tried and not gate.closed:
            gate.not_promised = self.generator.nothing_for(law)

    def observe(self, case: Case, example: int) -> Observation:
        """Run the kernel on ``case``; DiscardedError when it is outside the contract's domain."""
        inputs = build(self.contract, case, self.dtype)
        refused = assumption_failed(self.contract, inputs)
        if refused is not None:
            raise DiscardedError(f"the assumption {refused} does not hold")
        observation = observe(self.contract, inputs, self.judges.executor_for(example))
        observation.notes.update(example=example, case=case, normal=case.is_normal)
        self.judges.read_reference(observation)
        return observation

    def _observe(self, case: Case, gates: Sequence[Gate]) -> Observation | None:
        """Run the kernel on ``case`` for ``gates``, which count it; None where it is discarded."""
        try:
            observation = self.observe(case, self.example)
        except DiscardedError as error:
            for gate in gates:
                gate.discard(str(error))
            return None
        for gate in gates:
            gate.tried += 1
        return observation

    def verdicts(self, *, shrink: bool) -> list[Verdict]:
        """Return the verdict of every gate; each red law is shrunk by itself."""
        return [
            gate.verdict(
                contract=self.name,
                dtype=self.dtype,
                executor=self.executor,
                failure=smallest_failures(self, gate, shrink=shrink),
            )
            for gate in self.gates.values()
        ]
