"""Laws that need inputs of their own kind: exact integers, empty sizes, planted NaN and Inf."""

import numpy as np

from trivet.oracles._accept import accept
from trivet.properties._laws import Tally, standard
from trivet.properties._laws._reruns import call_twice
from trivet.properties._laws._values import outside, pairs
from trivet.properties._observe import Observation, Output
from trivet.properties._verdict import InapplicableError, Violation


@standard("observes_cases")
def exact_on_integers(observation: Observation, dtype: str) -> Tally:
    """On integers whose every partial sum is exact, the result is exact to the bit."""
    elements = 0
    for output, value in pairs(observation, dtype):
        certain = np.ones(output.actual.shape, bool) if value.error is None else value.error == 0
        judged = accept(output.actual, value)
        bad = certain & ~judged.ok
        if bad.any():
            narrowed = type(judged)(judged.ok | ~certain, judged.undecided, judged.ratio)
            raise outside(output, value, narrowed, what="exactly")
        elements += int(certain.sum())
    if not elements:
        raise InapplicableError("the oracle is exact nowhere on these integers")
    return Tally(elements, margin=0.0)


@standard("observes_cases")
def handles_empty(observation: Observation, dtype: str) -> Tally:
    """A size of 0 in any dim that admits it gives the oracle's empty or neutral result, each time.

    A second call must give the same and leave the first's results, as `repeats` has it.
    """
    elements = 0
    for output, value in pairs(observation, dtype):
        judged = accept(output.actual, value)
        if not (judged.ok | judged.undecided).all():
            raise outside(output, value, judged, what="oracle")
        elements += output.actual.size
    call_twice(observation)
    return Tally(elements)


@standard("observes_cases")
def propagates_nonfinite(observation: Observation, dtype: str) -> Tally:
    """A planted NaN or infinity shows in the outputs exactly where the oracle has one.

    In an argument that may hold anything where it is unread, a plant that the oracle reads is no
    input of the contract.
    """
    elements = 0
    if _reads_the_plant(observation):
        raise InapplicableError("the oracle reads the planted element")
    for output, value in pairs(observation, dtype):
        if value.error is None:
            continue
        wanted = np.asarray(value.value)
        decided = ~np.isinf(value.error)
        actual = output.actual.astype(np.float64)
        for name, test in (("NaN", np.isnan), ("an infinity", np.isinf)):
            bad = decided & (test(actual) != test(wanted))
            if bad.any():
                raise _misplaced(output, wanted, bad, name)
        elements += int(decided.sum())
    return Tally(elements)


def _reads_the_plant(observation: Observation) -> bool:
    case = observation.notes.get("case")
    if case is None or case.label != "unread":
        return False
    floats = [v.value for v in observation.values if v is not None and v.error is not None]
    return not all(np.isfinite(value).all() for value in floats)


def _misplaced(output: Output, wanted: np.ndarray, bad: np.ndarray, name: str) -> Violation:
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    where = f"{output.name}[{', '.join(map(str, index))}]" if index else output.name
    got, expected = output.actual[index], wanted[index]
    return Violation(
        f"{where} = {got}, the oracle gives {expected}: {name} on one side alone",
        key=output.name,
        index=where,
        got=str(got),
        wanted=str(expected),
    )
