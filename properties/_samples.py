"""The launches that stand for a contract where its artifact is judged, not its values.

One call at the production sizes where the contract states them, and one at the largest sizes that
are generated: between them lie the specialisations that users meet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trivet.properties._cases import build
from trivet.properties._contract import Contract
from trivet.properties._observe import Observation, observe
from trivet.properties._plan import pilot_cases
from trivet.properties._production import observe_production, production_cases
from trivet.properties._verdict import NotJudgedError
from trivet.simulator.binding import Launch
from trivet.simulator.executors import Executor
from trivet.simulator.traffic import Traffic

PRODUCTION = "production"
LARGEST = "largest"
# One program of each launch shows how it is specialised; a loop of it is followed for so long.
_PROGRAMS = 1
_FUEL = 20_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One launch that stands for all of its specialisation, and its traffic where it ran whole.

    ``name`` tells it from the others of the contract: dtype, sizes, kernel, and a number from the
    second specialisation of a kernel on.
    """

    name: str
    launch: Launch
    traffic: Traffic | None = None


def observe_samples(contract: Contract, dtype: str, executor: Executor) -> Iterator[Observation]:
    """Yield a call at production sizes, if the contract states them, and one at the largest.

    ``notes["sizes"]`` says which; a call that the host function refuses is left out. Raises
    NotJudgedError where a call cannot be made or does not come to its end.
    """
    for case in production_cases(contract, dtype=dtype, seed=0, count=1):
        observation = observe_production(
            contract, case, dtype, number=0, programs=_PROGRAMS, fuel=_FUEL
        )
        yield from _ended(observation, PRODUCTION)
        break
    inputs = build(contract, pilot_cases(contract, dtype)[-1], dtype)
    yield from _ended(observe(contract, inputs, executor), LARGEST)


def _ended(observation: Observation, sizes: str) -> Iterator[Observation]:
    run = observation.run
    observation.notes["sizes"] = sizes
    if run.rejected:
        return
    if run.error is not None or run.failed is not None:
        reason = run.failed.text if run.failed is not None else run.error
        raise NotJudgedError(f"the call at the {sizes} sizes does not end: {reason}")
    yield observation


def samples_of(observation: Observation, dtype: str) -> list[Sample]:
    """Return the first launch of every kernel and specialisation of one call, in order."""
    run = observation.run
    metered: Sequence[Traffic | None] = run.metered or [None] * len(run.launches)
    found: dict[str, dict[object, Sample]] = {}
    for launch, traffic in zip(run.launches, metered, strict=True):
        known = found.setdefault(launch.kernel, {})
        number = f" #{len(known) + 1}" if known else ""
        name = f"{dtype} {observation.notes['sizes']} {launch.kernel}{number}"
        known.setdefault(_specialisation(launch), Sample(name, launch, traffic))
    return [sample for samples in found.values() for sample in samples.values()]


def _specialisation(launch: Launch) -> object:
    """What Triton compiles once: everything of a launch but its grid and its numbers."""
    parts = (
        launch.constexprs,
        launch.dtypes,
        launch.divisible_16,
        launch.int_divisible_16,
        launch.equal_1,
        launch.options,
    )
    return repr(parts)
