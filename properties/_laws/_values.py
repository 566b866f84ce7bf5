"""Laws that compare a run's outputs with the oracle's interval."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trivet.oracles._accept import Acceptance, accept, room, ulps
from trivet.oracles._evaluate import Value
from trivet.oracles._logic import Opaque, accept_logic, logic_room
from trivet.properties._constants import constants_reach
from trivet.properties._hints import approximation_hint
from trivet.properties._laws import Tally, standard
from trivet.properties._observe import (
    ANY_INTEGER,
    Observation,
    Output,
    expected_dtypes,
)
from trivet.properties._opaque import bounded_values, opaque_note, rounds_on_purpose
from trivet.properties._verdict import (
    InapplicableError,
    NotJudgedError,
    NotPromisedError,
    Violation,
)
from trivet.properties._votes import oracles_agree


def pairs(
    observation: Observation, dtype: str, *, bounds: bool = True
) -> list[tuple[Output, Value]]:
    """Return every output with its oracle value, after judging presence, shape and dtype.

    With ``bounds`` an opaque value has that of the kernel's own run. Raises NotJudgedError when
    oracle and kernel differ in the number of outputs; Violation when an output is missing, has
    another shape or another dtype.
    """
    outputs, values = observation.outputs, observation.values
    if len(outputs) != len(values):
        raise NotJudgedError(
            f"the oracle returned {len(values)} output(s), the kernel {len(outputs)} "
            f"({', '.join(observation.names) or 'none'}): return one for each, in this order"
        )
    found = []
    wanted = expected_dtypes(observation, dtype)
    for name, output, value, wanted_dtype in zip(
        observation.names, outputs, values, wanted, strict=True
    ):
        if output is None or value is None:
            _same_presence(name, output, value)
            continue
        _same_form(output, value, wanted_dtype)
        found.append((output, value))
    if not bounds:
        return found
    known = zip(values, bounded_values(observation), strict=True)
    bounded = {id(value): other for value, other in known}
    return [(output, bounded[id(value)] or value) for output, value in found]


def _same_presence(name: str, output: Output | None, value: Value | None) -> None:
    if (output is None) == (value is None):
        return
    got, wanted = ("None", "a tensor") if output is None else ("a tensor", "None")
    raise Violation(f"{name} is {got}, the oracle gives {wanted}", key=name, got=got, wanted=wanted)


def _same_form(output: Output, value: Value, wanted_dtype: str) -> None:
    got, wanted = tuple(output.actual.shape), tuple(np.shape(value.value))
    if got != wanted:
        raise Violation(
            f"{output.name} has shape {got}, the oracle gives {wanted}",
            key=output.name,
            got=str(got),
            wanted=str(wanted),
        )
    integer = wanted_dtype == ANY_INTEGER and output.actual.dtype.kind in "iu"
    if not integer and str(output.actual.dtype) != wanted_dtype:
        raise Violation(
            f"{output.name} has dtype {output.actual.dtype}, expected {wanted_dtype}",
            key=output.name,
            got=str(output.actual.dtype),
            wanted=wanted_dtype,
        )


def worst(bad: NDArray[np.bool_], ratio: NDArray[np.float64]) -> tuple[int, ...]:
    """Return the index of the worst of the ``bad`` elements; NaN is worse than any number."""
    score = np.where(bad, np.where(np.isnan(ratio), np.inf, ratio), -1.0)
    return tuple(int(i) for i in np.unravel_index(int(score.argmax()), score.shape))


def outside(
    output: Output,
    value: Value,
    judged: Acceptance,
    *,
    what: str,
    hint: str = "",
    places: Sequence[tuple[int, ...]] | None = None,
) -> Violation:
    """Say which element of ``output`` lies outside the oracle's interval, and by how much.

    ``hint`` is added to the text; ``places`` are the indices of an output of chosen elements.
    """
    bad = ~judged.ok & ~judged.undecided
    index = worst(bad, judged.ratio)
    got = output.actual[index]
    wanted = np.asarray(value.value)[index]
    place = index if places is None else places[index[0]]
    where = f"{output.name}[{', '.join(map(str, place))}]" if place else output.name
    if value.error is None:
        text, bound = f"{where} = {got}, {what} {wanted}: must be equal", "0"
    else:
        error = float(np.broadcast_to(value.error, output.actual.shape)[index])
        distance = abs(float(got) - float(wanted))
        bound = f"{error:.4g}"
        text = f"{where} = {float(got):.9g}, {what} {float(wanted):.9g}: "
        text += f"error {distance:.4g}{_in_ulps(output, distance, wanted)} > bound {bound}"
        text += f" ({value.blame(index)})"
    share = f"; {int(bad.sum())} of {bad.size} elements are wrong" if bad.sum() > 1 else ""
    return Violation(
        text + share + hint,
        key=output.name,
        index=where,
        got=str(got),
        wanted=str(wanted),
        bound=bound,
    )


def _in_ulps(output: Output, distance: float, wanted: object) -> str:
    """The distance in units in the last place of the wanted value, of a float that has some."""
    if output.actual.dtype.kind in "iub":
        return ""
    found = ulps(distance, float(wanted), output.actual.dtype)  # type: ignore[arg-type]
    return f" ({found:.3g} ulp)" if np.isfinite(found) else ""


@standard("observes")
def matches_oracle(observation: Observation, dtype: str) -> Tally:
    """Every output has the oracle's shape and dtype, and every element lies in its interval."""
    elements = undecided = 0
    margin = None
    oracles_agree(observation)
    for output, value in pairs(observation, dtype):
        judged = accept(output.actual, value)
        if not (judged.ok | judged.undecided).all():
            hint = approximation_hint(observation, output)
            raise outside(output, value, judged, what="oracle", hint=hint)
        elements += output.actual.size
        undecided += int(judged.undecided.sum())
        decided = judged.ratio[~judged.undecided]
        if decided.size:
            margin = max(margin or 0.0, float(decided.max()))
    return Tally(elements, undecided, margin, note=opaque_note(observation))


@standard("observes", needs=("values", "shadow"))
def logic_matches(observation: Observation, dtype: str) -> Tally:
    """The kernel run in float64 agrees with the oracle to 1e-9 of the condition: no wrong logic.

    Where native and shadow differ by more than the bound and storage allow, the kernel computes
    with rounding (magic constants, bit casts, quantisation) and matches_oracle decides.
    """
    elements = undecided = 0
    if observation.run.shadow_rounded:
        where = observation.run.shadow_rounded
        raise NotPromisedError(f"the host computes with a rounded number, at {where}")
    for output, value in pairs(observation, dtype, bounds=False):
        shadow = observation.run.shadow_of(output.tensor)
        if shadow is None or value.error is None:
            continue
        judged = accept_logic(shadow, value)
        if not (judged.ok | judged.undecided).all():
            _explain(observation, output, value, shadow)
        elements += shadow.size
        undecided += int(judged.undecided.sum()) if isinstance(value, Opaque) else 0
    if not elements and observation.outputs and all(v.size for v in _shadows(observation)):
        raise NotPromisedError("no output is a float: matches_oracle compares them exactly")
    return Tally(elements, undecided)


def _explain(
    observation: Observation, output: Output, value: Value, shadow: NDArray[np.float64]
) -> None:
    """Raise what a shadow outside the oracle's logic means; its constants may excuse it."""
    judged = accept_logic(shadow, value, constants_reach(observation, output.name, shadow))
    bad = ~(judged.ok | judged.undecided)
    if not bad.any():
        return
    native = accept(output.actual, value)
    with np.errstate(all="ignore"):
        gap = np.abs(output.actual.astype(np.float64) - shadow)
        least = room(value, output.actual)
    if isinstance(value, Opaque):
        excused = rounds_on_purpose(output.actual, value, shadow)[bad].all()
    else:
        excused = (native.ok | native.undecided).all() and (gap > least)[bad].all()
    if excused:
        raise InapplicableError("the kernel computes with rounding; matches_oracle decides")
    in_float64 = Output(output.name, output.tensor, shadow)
    allowed = Value(value.value, logic_room(value), value.blame)
    raise outside(in_float64, allowed, judged, what="in float64, oracle")


def _shadows(observation: Observation) -> list[NDArray[np.float64]]:
    shadows = [observation.run.shadow_of(o.tensor) for o in observation.outputs if o is not None]
    return [shadow for shadow in shadows if shadow is not None]
