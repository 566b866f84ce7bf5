"""The laws of one contract at work: which apply, on which executor, and what each run shows."""

import time
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from zlib import crc32

from trivet.properties._cases import Case
from trivet.properties._contract import Contract
from trivet.properties._custom import law_of
from trivet.properties._gate import CRASH, Gate
from trivet.properties._generate import Generator
from trivet.properties._laws import Ability, StandardLaw, Tally, standard_laws
from trivet.properties._observe import DiscardedError, Observation
from trivet.properties._place import place_of
from trivet.properties._production import observe_production, production_cases
from trivet.properties._profiles import Profile
from trivet.properties._refusals import refusals
from trivet.properties._samples import observe_samples
from trivet.properties._sizes import DomainError
from trivet.properties._verdict import (
    InapplicableError,
    NotJudgedError,
    NotPromisedError,
    Violation,
)
from trivet.simulator.executors import Executor, Run, executor_named
from trivet.simulator.limits import limits_of_calls

# A few seconds of work: generated sizes need a tenth of it, an endless loop never ends.
_FUEL = 1_000_000
# At production sizes every fifth example's worth of cases, and so many programs of each launch.
_PRODUCTION_SHARE = 5
_FEWEST_PROGRAMS = 8
_ABILITIES: dict[str, tuple[Ability, ...]] = {
    "simulator": ("values", "memory", "poison", "order", "shadow"),
    "interpreter": ("values",),
    "gpu": ("values",),
    "compile": ("artifact",),
}


_SPOKEN = {"compile": "compiler"}


class RejectedError(Exception):
    """The host function refused a layout, an empty size or a dtype: counted, no verdict."""


class Judges:
    """Every law of ``contract`` with its gate, and the executors they judge on."""

    def __init__(
        self,
        contract: Contract,
        executor: str,
        laws: Collection[str] | None = None,
        source: str = "",
        dtype: str | None = None,
    ) -> None:
        self.contract = contract
        self.executor = executor
        self.dtype = dtype
        self.source = source
        self.laws = self._chosen(laws)
        self.gates = {name: self._gate(law) for name, law in self.laws.items()}

    def _chosen(self, names: Collection[str] | None) -> dict[str, StandardLaw]:
        every = dict(standard_laws())
        every.update({law.name: law_of(self.contract, law) for law in self.contract.laws})
        unknown = sorted(set(names or ()) - set(every))
        if unknown:
            raise ValueError(f"law {unknown[0]!r}: expected one of {', '.join(every)}")
        return {name: law for name, law in every.items() if names is None or name in names}

    def _gate(self, law: StandardLaw) -> Gate:
        gate = Gate(law.name, law.claim, law.kind)
        missing = [need for need in law.needs if need not in _ABILITIES[self.executor]]
        if missing:
            name = _SPOKEN.get(self.executor, self.executor)
            gate.elsewhere = f"the {name} cannot judge it: no {', '.join(missing)}"
            gate.elsewhere += " (--on compile has one)" if missing == ["artifact"] else ""
        narrow = self._narrow()
        if self.executor == "interpreter" and narrow:
            gate.elsewhere = f"the interpreter rounds {narrow} wrongly"
        if law.name in self.contract.removed:
            gate.not_promised = f"removed: {self.contract.removed[law.name]}"
        return gate

    def _narrow(self) -> str | None:
        """Return the storage type that Triton's interpreter rounds wrongly, if there is one."""
        dtype = self.dtype or self.contract.dtypes()[0]
        stored = [self.contract.dtype_of(name, dtype) for name in self.contract.tensors()]
        return next((t for t in stored if t == "bfloat16" or t.startswith("float8")), None)

    def executor_for(self, example: int) -> Executor:
        """Return a fresh executor; autotune configurations take turns over the examples."""
        if self.executor != "simulator":
            return self._plain_executor
        logic = self.gates.get("logic_matches")
        shadow = logic is not None and bool(logic.reds or not logic.closed)
        return executor_named(
            "simulator",
            shadow=shadow,
            configuration=example,
            fuel=_FUEL,
            limits=limits_of_calls(),
        )

    @cached_property
    def _plain_executor(self) -> Executor:
        return executor_named(self.executor, source=self.source)

    def _named(self, *kinds: str) -> list[str]:
        return [name for name, law in self.laws.items() if law.kind in kinds]

    @property
    def on_shared_runs(self) -> list[str]:
        """The laws judged on the shared runs, open or not."""
        return self._named("observes", "reruns", "counts")

    @property
    def runs(self) -> bool:
        """Whether any law that is still open asks for generated runs."""
        return any(g.kind != "builds" and not g.closed for g in self.gates.values())

    @property
    def with_own_cases(self) -> list[str]:
        """The laws that judge runs on inputs of their own kind."""
        return self._named("observes_cases")

    @staticmethod
    def read_reference(observation: Observation) -> None:
        """Evaluate the oracle now, so that inputs outside its domain are discarded in time."""
        try:
            _ = observation.values
        except NotJudgedError:
            return  # each law that asks for the values reports it

    def judge_shared(
        self, observation: Observation, case: Case, dtype: str, generator: Generator
    ) -> None:
        """Let every law of the shared runs judge ``observation``."""
        number = int(str(observation.notes["example"]))
        for name in self._named("observes", "reruns"):
            law, gate = self.laws[name], self.gates[name]
            every = round(1 / law.share)
            if gate.closed or number % every != crc32(name.encode()) % every:
                continue
            self.judge_one(gate, observation, case, dtype, generator)
        for name in self._named("counts"):
            self._count(self.gates[name], observation, case, generator)

    def _count(
        self, gate: Gate, observation: Observation, case: Case, generator: Generator
    ) -> None:
        run = observation.run
        if run.failed is not None and raised(observation) is None:
            gate.not_judged = run.failed.text
        if run.error is not None:
            gate.inapplicable = "no call came to its end; matches_oracle says why"
            return
        tally = Tally(sum(o.actual.size for o in observation.outputs if o is not None))
        gate.add(tally, launches=observation.launches, normal=True)
        gate.written += run.traffic.get("written", 1)
        self._note_sizes(gate, case, generator)

    @staticmethod
    def _note_sizes(gate: Gate, case: Case, generator: Generator) -> None:
        for dim, size_class in generator.classes(case).items():
            gate.classes[dim].add(size_class)

    def judge_one(
        self, gate: Gate, observation: Observation, case: Case, dtype: str, generator: Generator
    ) -> None:
        """Let one law judge one run and count what it found."""
        started = time.perf_counter()
        before = gate.examples
        self._settle(gate, lambda: self.check(gate.law, observation, case, dtype), observation)
        if gate.examples > before:
            self._note_sizes(gate, case, generator)
        gate.seconds += time.perf_counter() - started

    def check(self, law: str, observation: Observation, case: Case, dtype: str) -> Tally:
        """Check one law on one run, which may have been refused or have failed.

        Raises Violation, RejectedError, NotJudgedError, NotPromisedError or InapplicableError.
        """
        run = observation.run
        if run.failed is None and run.error is None:
            return self.laws[law].check(observation, dtype)
        if run.rejected and not self._plain(case, dtype):
            raise RejectedError
        violation = raised(observation)
        if violation is None:
            assert run.failed is not None
            raise NotJudgedError(run.failed.text)
        if law in ("matches_oracle", "offsets_fit"):
            raise violation
        raise InapplicableError("the call did not come to its end; matches_oracle says why")

    def _plain(self, case: Case, dtype: str) -> bool:
        """Whether no layout, empty size or further dtype could excuse a refusal."""
        dense = all(recipe.layout in ("dense", "offset") for recipe in case.recipes.values())
        return dense and 0 not in case.dims.values() and dtype == self.contract.dtypes()[0]

    def violation(
        self, law: str, observation: Observation, case: Case, dtype: str
    ) -> Violation | None:
        """Return how ``law`` is broken on a run; None where it holds or says nothing."""
        try:
            self.check(law, observation, case, dtype)
        except Violation as violation:
            return violation
        except (NotJudgedError, NotPromisedError, InapplicableError, RejectedError):
            return None
        return None

    def _settle(
        self, gate: Gate, check: Callable[[], Tally], observation: Observation | None
    ) -> None:
        """Run a check and record in the gate what came of it."""
        notes = observation.notes if observation is not None else {}
        try:
            tally = check()
        except Violation as violation:
            gate.break_with(violation, notes.get("case"), notes.get("example", 0))
        except NotPromisedError as reason:
            gate.not_promised = str(reason)
        except NotJudgedError as reason:
            gate.not_judged = str(reason)
        except RejectedError:
            gate.rejected += 1
        except (InapplicableError, DiscardedError) as reason:
            gate.inapplicable = str(reason)
        except Exception as error:
            told = f"{type(error).__name__}: {error}{place_of(error)}"
            gate.not_judged = f"the law crashed: {told}"
        else:
            launches = observation.launches if observation is not None else 0
            gate.add(tally, launches=launches, normal=bool(notes.get("normal", True)))

    def close_endless(self, run: Run) -> None:
        """Close every gate where a call did not end in time: further ones would not either."""
        if run.failed is None or run.failed.kind not in ("fuel", "time", "memory"):
            return
        for gate in self.gates.values():
            if not gate.closed:
                gate.not_judged = run.failed.text

    def judge_production(self, dtype: str, seed: int, profile: Profile) -> None:
        """Judge the laws that look at production sizes, on few programs of each launch."""
        for name in self._named("at_production"):
            gate = self.gates[name]
            if gate.closed:
                continue
            started = time.perf_counter()
            self._judge_production(gate, dtype, seed, profile)
            if not gate.examples and not gate.rejected and not gate.closed:
                gate.not_promised = "no dim states a production size"
            gate.seconds += time.perf_counter() - started

    def _judge_production(self, gate: Gate, dtype: str, seed: int, profile: Profile) -> None:
        count = max(1, profile.examples // _PRODUCTION_SHARE)
        programs = _FEWEST_PROGRAMS + count
        try:
            cases = production_cases(self.contract, dtype=dtype, seed=seed, count=count)
            for number, case in enumerate(cases):
                if gate.closed or gate.reds:
                    return
                observation = observe_production(
                    self.contract, case, dtype, number=number, programs=programs
                )
                check = partial(self._check_production, gate.law, observation, case, dtype)
                self._settle(gate, check, observation)
                for dim in case.dims:
                    gate.classes[dim].add("production")
        except (NotJudgedError, DomainError) as reason:
            gate.not_judged = str(reason)

    def _check_production(
        self, law: str, observation: Observation, case: Case, dtype: str
    ) -> Tally:
        """Check one law at production sizes, which a kernel may not refuse: it stated them."""
        run = observation.run
        if run.failed is None and run.error is None:
            return self.laws[law].check(observation, dtype)
        if run.rejected and not self._plain(case, dtype):
            raise RejectedError
        violation = raised(observation)
        if violation is None or self.contract.assumptions:
            reason = run.failed.text if run.failed is not None else run.error
            raise NotJudgedError(f"at production sizes: {reason}")
        raise violation

    def judge_refusals(self, arguments: Mapping[str, object]) -> None:
        """Try every bad input the contract names."""
        for name in self._named("refuses"):
            gate = self.gates[name]
            if gate.closed:
                continue
            if not self.contract.raises:
                gate.not_promised = "the contract names no bad input (raises)"
                continue
            for attempt in refusals(self.contract, arguments, self.executor_for(0)):
                self._settle(gate, attempt, None)

    def judge_builds(
        self, dtype: str, name: str, progress: Callable[[str, int, int], None] | None = None
    ) -> None:
        """Judge the laws about what the compiler makes of the contract's samples.

        ``progress`` is told after each law and sample, since a compilation takes its time.
        """
        gates = [gate for gate in map(self.gates.get, self._named("builds")) if gate is not None]
        gates = [gate for gate in gates if not gate.closed]
        if not gates:
            return
        try:
            for observation in observe_samples(self.contract, dtype, self.executor_for(0)):
                observation.notes.update(contract=name, source=self.source)
                for number, gate in enumerate(gates):
                    self._judge_build(gate, observation, dtype)
                    if progress is not None:
                        progress(f"{name} {dtype}", number + 1, len(gates))
        except (NotJudgedError, DomainError) as reason:
            for gate in gates:
                gate.not_judged = str(reason)

    def _judge_build(self, gate: Gate, observation: Observation, dtype: str) -> None:
        started = time.perf_counter()
        self._settle(gate, partial(self.laws[gate.law].check, observation, dtype), observation)
        gate.classes["samples"].add(str(observation.notes["sizes"]))
        gate.seconds += time.perf_counter() - started

    def judge_work(self) -> None:
        """Turn red the gates that look at the whole: the kernel must have done something."""
        for name in self._named("counts"):
            gate = self.gates[name]
            if gate.closed or not gate.examples:
                continue
            if not gate.launches:
                gate.break_with(Violation("the kernel launched nothing on any example"), None)
            elif not gate.written:
                gate.break_with(Violation("no launch stored an element on any example"), None)
            elif not gate.elements:
                gate.break_with(Violation("no example had an output element to compare"), None)


def raised(observation: Observation) -> Violation | None:
    """Return what a call that did not end says of the kernel; None where it says nothing."""
    run = observation.run
    if run.failed is not None and run.failed.kind not in ("assert", "deadlock"):
        return None
    if run.failed is not None:
        return Violation(run.failed.text, key=run.failed.line, line=run.failed.line)
    error = run.error
    text = f"{CRASH} {type(error).__name__} on inputs of its contract: {error}"
    return Violation(text, key=f"{CRASH} {type(error).__name__}")
