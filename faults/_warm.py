"""What all mutants of a contract share: the inputs tried, and what the original does on them.

Made once in the process that judges, before any mutant: every mutant is then given the very same
inputs, and neither they nor the oracle's values on them are computed again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trivet.oracles._errors import OracleError
from trivet.properties._cases import Case, Inputs, assumption_failed, build
from trivet.properties._collect import Found
from trivet.properties._generate import Generator
from trivet.properties._observe import DiscardedError, Observation, Output, observe
from trivet.properties._profiles import profile_of
from trivet.properties._sizes import DomainError
from trivet.properties._verdict import NotJudgedError
from trivet.simulator.binding import Launch
from trivet.simulator.executors import executor_named

PROFILE = profile_of("quick")
Killers = Mapping[str, Sequence[str]]
Trace = list[tuple[object, ...]]
_OWN = ("exact_on_integers", "handles_empty", "propagates_nonfinite")
_NEVER = 1 << 62


@dataclass(frozen=True)
class Kept:
    """One case, and what the original did on it.

    ``example`` is its number in the plan, by which laws and autotune configurations take turns.
    ``reference`` holds the oracle's values, None where it has none; ``discarded`` says why the
    case lies outside the contract's domain; ``work`` counts elements of the original's launches.
    """

    case: Case
    example: int
    inputs: Inputs | None = None
    reference: Observation | None = None
    discarded: str = ""
    outputs: Sequence[Output | None] = ()
    launches: Sequence[Launch] = ()
    error: type[BaseException] | None = None
    failed: bool = False
    work: int = 0


@dataclass
class Warm:
    """The inputs of a contract's audit; ``killers`` are cases, as text, that killed mutants before.

    They only say which cases of the plan come first.
    """

    found: Found
    seed: int = 0
    killers: Killers = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._generators: dict[str, Generator] = {}
        self._kept: dict[tuple[str, Case], Kept] = {}
        self._shared: dict[str, list[Kept]] = {}
        self._own: dict[tuple[str, str], list[Case]] = {}
        self.primed: list[object] = []

    def prepare(self) -> None:
        """Run the original on every case, so that processes forked from this one need not."""
        for dtype in self.found.contract.dtypes():
            for _ in self.every(dtype):
                pass

    def generator(self, dtype: str) -> Generator:
        """Return the generator of a dtype, its block sizes learned from the original."""
        if dtype not in self._generators:
            generator = Generator(self.found.contract, dtype, self.seed, PROFILE)
            generator.learn(executor_named("simulator"))
            self._generators[dtype] = generator
        return self._generators[dtype]

    def shared(self, dtype: str) -> list[Kept]:
        """Return the plan's cases: what killed before, then from the least work to the most."""
        if dtype not in self._shared:
            plan = [self.kept(dtype, c, n) for n, c in enumerate(self.generator(dtype).planned())]
            before = list(self.killers.get(dtype, ()))
            place = {text: number for number, text in enumerate(before)}
            self._shared[dtype] = sorted(
                plan,
                key=lambda k: (place.get(k.case.to_json(), len(place)), k.work or _NEVER),
            )
        return self._shared[dtype]

    def own_cases(self, dtype: str, law: str) -> list[Case]:
        """Return the inputs of a law that needs its own kind."""
        if (dtype, law) not in self._own:
            self._own[dtype, law] = list(self.generator(dtype).own_cases(law))
        return self._own[dtype, law]

    def every(self, dtype: str) -> Iterator[Kept]:
        """Yield every case of a dtype: the plan's, then the laws' own."""
        yield from self.shared(dtype)
        for law in _OWN:
            for case in self.own_cases(dtype, law):
                yield self.kept(dtype, case, len(self._shared[dtype]))

    def kept(self, dtype: str, case: Case, example: int) -> Kept:
        """Return what the original did on a case; it is run once."""
        if (dtype, case) not in self._kept:
            self._kept[dtype, case] = self._run(dtype, case, example)
        return self._kept[dtype, case]

    def _run(self, dtype: str, case: Case, example: int) -> Kept:
        contract = self.found.contract
        try:
            inputs = build(contract, case, dtype)
        except DomainError as error:
            return Kept(case, example, discarded=str(error))
        refused = assumption_failed(contract, inputs)
        if refused is not None:
            return Kept(case, example, discarded=f"the assumption {refused} does not hold")
        executor = executor_named("simulator", configuration=example)
        observation = observe(contract, inputs, executor)
        reference: Observation | None = observation
        try:
            _ = observation.values
        except DiscardedError as error:
            return Kept(case, example, discarded=str(error))
        except (NotJudgedError, OracleError):
            reference = None
        run = observation.run
        ended = run.error is None and run.failed is None
        return Kept(
            case,
            example,
            inputs,
            reference,
            outputs=_outputs(observation) if ended else (),
            launches=run.launches,
            error=type(run.error) if run.error is not None else None,
            failed=run.failed is not None,
            work=run.elements,
        )

    def launches(self) -> Iterator[Launch]:
        """Yield every launch that the original made."""
        for kept in self._kept.values():
            yield from kept.launches


def _outputs(observation: Observation) -> Sequence[Output | None]:
    try:
        return observation.outputs
    except NotJudgedError:
        return ()  # the value law says that an output is no tensor


def trace(launches: Sequence[Launch]) -> Trace:
    """Return what a host function launched: nothing that only an address decides."""
    return [
        (
            launch.kernel,
            launch.grid,
            launch.constexprs,
            launch.dtypes,
            launch.scalars,
            launch.shapes,
            launch.strides,
            launch.options,
        )
        for launch in launches
    ]
