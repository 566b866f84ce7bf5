"""The power certificate: which mistakes in a contract's plan the generated inputs would show.

The plan is the first oracle. A mutant of it gets one step wrong, as kernels do; it is separated
when on some input the wrong value, stored as the kernel would, lies outside the right one's bound.
What no input separates, no gate of these inputs can see.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trivet.oracles._accept import accept, room
from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import Value
from trivet.oracles._logic import Opaque
from trivet.oracles._mutants import Mutant, Survey, mutated
from trivet.oracles._mutations import MUTATIONS
from trivet.properties._cases import Inputs, assumption_failed, build
from trivet.properties._contract import Contract
from trivet.properties._dtypes import DTYPES
from trivet.properties._observe import DiscardedError, plan_values, promoted, reference_values
from trivet.properties._plan import plan
from trivet.properties._profiles import PROFILES, Profile
from trivet.properties._verdict import NotJudgedError
from trivet.simulator.executors import Executor

# Mistakes of a whole output; the first shows in any format, so that a gate blind to it is vacuous.
FACTORS = {"is twice as large": 2.0, "has a factor 1 + 1e-5": 1 + 1e-5}
_MOST_ELEMENTS = 20_000
_MOST_CASES = 24
# A plan shows its steps at any ordinary size; some only where rows are long enough.
_SURVEYED = 3
# Inputs of about so many elements are cheap and long enough to have steps.
_ORDINARY = 512
# Evaluations of mutated plans for each example that the gate judges; an example costs about ten.
_EVALUATIONS = 3


@dataclass(slots=True)
class PlanMutant:
    """One mistake at one step of the plan.

    ``separated`` by the case of number ``case``; ``certain`` when by more than the mutant's own
    bound, so that no rounding could hide it. Not ``applicable``: the plan has no such step.
    """

    mutation: str
    site: str
    applicable: bool = True
    separated: bool = False
    case: int | None = None
    certain: bool = False


@dataclass(frozen=True, slots=True)
class Certificate:
    """All mutants of a plan; ``untried`` of them met fewer inputs than there were."""

    mutants: Sequence[PlanMutant]
    untried: int = 0

    @property
    def applicable(self) -> list[PlanMutant]:
        """The mutants that the plan has a step for."""
        return [mutant for mutant in self.mutants if mutant.applicable]

    @property
    def unseparated(self) -> list[PlanMutant]:
        """The mutants that no input tells from the plan."""
        return [mutant for mutant in self.applicable if not mutant.separated]

    @property
    def vacuity(self) -> str | None:
        """Why a gate of these inputs proves nothing: there are mutants, and it separates none."""
        known = self.applicable
        if not known or len(self.unseparated) < len(known) or self.untried:
            return None
        return f"no input separates any of the {len(known)} mutants of the plan"

    def note(self) -> str:
        """Return what is and is not separated, in a sentence."""
        known, missed = self.applicable, self.unseparated
        text = f"power: {len(known) - len(missed)} of {len(known)} plan mutants separated"
        if missed:
            text += "; not: " + ", ".join(f"{m.mutation} ({m.site})" for m in missed)
        return text + (f"; {self.untried} not tried on every input" if self.untried else "")


@dataclass(slots=True)
class _Example:
    """Inputs that were judged, and what the plan says of them."""

    number: int
    inputs: Inputs
    values: Sequence[Value | None]
    dtypes: Sequence[str]

    @property
    def size(self) -> int:
        arrays = self.inputs.arrays.values()
        return sum(array.size for array in arrays if isinstance(array, np.ndarray))


@dataclass
class Power:
    """Collects the inputs of a gate and certifies what they separate."""

    contract: Contract
    dtype: str
    profile: Profile
    executor: Executor | None = None
    _examples: list[_Example] = field(default_factory=list)
    _spent: int = 0

    def add(self, inputs: Inputs, values: Sequence[Value | None], number: int) -> None:
        """Take the inputs of example ``number`` where they are of ordinary size.

        Of an opaque reference no certificate is asked: it has no bound to separate from.
        """
        opaque = any(isinstance(value, Opaque) for value in values)
        if len(self._examples) < _MOST_CASES and not opaque:
            dtypes = list(stored_dtypes(self.contract, self.dtype, inputs, values))
            example = _Example(number, inputs, values, dtypes)
            if 0 < example.size <= _MOST_ELEMENTS:
                self._examples.append(example)

    def certificate(self) -> Certificate:
        """Mutate the plan on the inputs until all mutants are separated or the inputs end."""
        examples = sorted(self._examples, key=lambda e: abs(math.log2(e.size / _ORDINARY)))
        found = list(self._factors(examples))
        mutants = self._steps(examples)
        untried = sum(not self._tried(m, mutant, examples) for mutant, m in mutants.items())
        found += mutants.values()
        named = {mutant.mutation for mutant in found}
        absent = [PlanMutant(name, "", applicable=False) for name in MUTATIONS if name not in named]
        return Certificate(found + absent, untried)

    def _factors(self, examples: Sequence[_Example]) -> Iterator[PlanMutant]:
        """Yield the mistakes of whole outputs, for each output that is a number but zero."""
        for name, factor in FACTORS.items():
            for place in range(max((len(e.values) for e in examples), default=0)):
                mutant = PlanMutant(name, f"output {place}", applicable=False)
                for example in examples:
                    value = example.values[place]
                    if value is None or value.error is None or not _scalable(value):
                        continue
                    mutant.applicable = True
                    wrong = Value(value.value * factor, value.error * factor, value.blame)
                    if _separates(mutant, example, place, wrong):
                        break
                if mutant.applicable:
                    yield mutant

    def _steps(self, examples: Sequence[_Example]) -> dict[Mutant, PlanMutant]:
        survey = Survey()
        for example in examples[:_SURVEYED]:
            with survey.watching():
                self._values(example)
        return {m: PlanMutant(m.mutation, str(m.site)) for m in survey.mutants}

    def _tried(self, record: PlanMutant, mutant: Mutant, examples: Sequence[_Example]) -> bool:
        """Look for an example that separates a mutant; False where the evaluations ran out."""
        for example in examples:
            if self._spent >= _EVALUATIONS * self.profile.examples:
                return False
            self._spent += 1
            with mutated(mutant):
                wrong = self._values(example)
            for place, value in enumerate(wrong[: len(example.values)]):
                if value is not None and _separates(record, example, place, value):
                    return True
        return True

    def _values(self, example: _Example) -> list[Value | None]:
        """The plan's values; none where a mutant cannot be computed."""
        oracle = self.contract.oracles[0]
        try:
            return plan_values(self.contract, oracle, example.inputs, self.executor)
        except (OracleError, ArithmeticError, ValueError, IndexError):
            return []


def _scalable(value: Value) -> bool:
    return bool((np.isfinite(value.value) & (value.value != 0)).any())


def _separates(record: PlanMutant, example: _Example, place: int, wrong: Value) -> bool:
    """Note in ``record`` whether a gate would refuse ``wrong`` at this output."""
    right = example.values[place]
    if right is None or wrong.value.shape != right.value.shape:
        return False
    with np.errstate(all="ignore"):
        stored = wrong.value.astype(DTYPES[example.dtypes[place]].numpy)
        judged = accept(stored, right)
        bad = ~(judged.ok | judged.undecided)
        if bad.any():
            record.separated, record.case = True, example.number
            record.certain = bool((bad & _beyond(right, wrong, stored)).any())
    return record.separated


def _beyond(right: Value, wrong: Value, stored: NDArray[np.generic]) -> NDArray[np.bool_]:
    distance = np.abs(wrong.value.astype(np.float64) - right.value)
    own = 0.0 if wrong.error is None else wrong.error
    certain = (distance > room(right, stored) + own) | np.isnan(distance)
    return np.asarray(certain)


def stored_dtypes(
    contract: Contract, dtype: str, inputs: Inputs, values: Sequence[Value | None]
) -> Iterator[str]:
    """Yield the dtype that each output of the oracle is stored in."""
    names = [*(contract.outputs or ()), *contract.written_arguments()]
    for place, value in enumerate(values):
        name = names[place] if place < len(names) else ""
        declared = contract.output_dtype(name, dtype)
        if declared is None and name in contract.args:
            declared = contract.dtype_of(name, dtype)
        if declared is None and value is not None and value.error is None:
            declared = value.value.dtype.name
        yield declared or promoted(inputs)


def certificate(
    contract: Contract, dtype: str, seed: int = 0, profile: str = "quick"
) -> Certificate:
    """Certify a contract's plan on the planned inputs, without its kernel.

    A gate learns block sizes from the kernel first, so its inputs are these and more.
    """
    power = Power(contract, dtype, PROFILES[profile])
    cases = plan(contract, dtype, seed=seed, blocks=(), count=PROFILES[profile].planned)
    for number, case in enumerate(cases):
        inputs = build(contract, case, dtype)
        if assumption_failed(contract, inputs) is not None:
            continue
        try:
            power.add(inputs, reference_values(contract, contract.oracles[0], inputs), number)
        except (DiscardedError, NotJudgedError):
            continue
    return power.certificate()
