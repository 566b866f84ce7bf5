"""Bounds where a reference is opaque: its float64 value, and the rounding of the kernel's own run.

A torch reference with an operation that has no rule gives values without bounds. The kernel's own
launches, run once more on numbers that carry their errors under the declared precision, say how
far rounding can have moved an output; the reference's change when its inputs move by one ulp is
added. That this bound says nothing about what the kernel ought to compute is no loss: the law of
logic judges its shadow. Where a run has no such bound, that law decides alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.oracles._accept import accept, room
from trivet.oracles._evaluate import Value
from trivet.oracles._logic import Opaque, accept_logic, logic_room
from trivet.properties._constants import constants_reach
from trivet.properties._observe import Observation, Output, observe
from trivet.properties._verdict import InapplicableError, NotJudgedError, NotPromisedError
from trivet.simulator.executors import Run, Simulator

_KEY = "bounded values"


def bounded_values(observation: Observation) -> list[Value | None]:
    """The oracle's values in the order of ``observation.outputs``, opaque ones with a bound.

    Raises NotPromisedError, or NotJudgedError where logic_matches cannot decide either, when the
    kernel's run has no bound, and InapplicableError when on these inputs a decision of the kernel
    depends on rounding.
    """
    if not any(isinstance(v, Opaque) and v.value.size for v in observation.values):
        return observation.values
    if observation.reference is not None:
        return bounded_values(observation.reference)
    known = observation.notes.get(_KEY)
    if known is None:
        known = observation.notes[_KEY] = _bounded(observation)
    return list(known)


def opaque_note(observation: Observation) -> str:
    """What a green gate says of an opaque reference; empty for any other."""
    if not any(isinstance(value, Opaque) for value in observation.values):
        return ""
    return f"{_reason(observation)}: bound by the kernel's own run, no power certificate"


def _bounded(observation: Observation) -> list[Value | None]:
    executor = observation.executor
    if not isinstance(executor, Simulator):
        raise NotPromisedError(
            f"{_reason(observation)}: its bound comes from the kernel's run in the simulator"
        )
    precision = observation.contract.precision
    second = observe(
        observation.contract,
        observation.inputs,
        executor.variant(shadow=True, running=precision),
        reference=observation,
    )
    if len(second.outputs) != len(observation.values):
        return observation.values
    return [
        _with_bound(observation, second.run, output, value)
        for output, value in zip(second.outputs, observation.values, strict=True)
    ]


def _with_bound(
    observation: Observation, run: Run, output: Output | None, value: Value | None
) -> Value | None:
    if not isinstance(value, Opaque) or output is None or not value.value.size:
        return value
    error = run.error_of(output.tensor)
    if error is None:
        raise _without_bound(observation, run)
    if error.shape != value.value.shape:
        return value
    known = bounded(value, error)
    whole = np.asarray(known.error)
    shadow = run.shadow_of(output.tensor)
    assert shadow is not None
    unlike = ~accept_logic(shadow, value).ok
    if unlike.any():
        reach = constants_reach(observation, output.name, shadow)
        unlike = ~accept_logic(shadow, value, reach).ok
    # The shadow's rounding bounds nothing of what the shadow itself does not come near to.
    hidden = unlike & accept(output.actual, known).ok
    meant = rounds_on_purpose(output.actual, value, shadow)
    other = np.where(meant, _float32_distance(value), np.inf)
    return Value(known.value, np.where(hidden, other, whole), known.blame)


def _float32_distance(value: Opaque) -> NDArray[np.float64]:
    """How far the reference's own float32 run on inputs half an ulp off lies from its value."""
    return np.broadcast_to(np.asarray(value.condition) * 2.0**-24, value.value.shape)


def rounds_on_purpose(actual: NDArray[Any], value: Opaque, shadow: NDArray[Any]) -> NDArray[Any]:
    """Where the native result is right though its shadow is not: there rounding does the work.

    Right is what lies as near to the reference as its own float32 run on inputs half an ulp off.
    """
    near = Value(value.value, _float32_distance(value), value.blame)
    stored = Value(value.value, np.zeros(shadow.shape), value.blame)
    with np.errstate(all="ignore"):
        gap = np.abs(actual.astype(np.float64) - shadow)
        beyond = (gap >= np.abs(shadow - value.value)) & (gap > room(stored, actual))
    return np.asarray(accept(actual, near).ok & beyond)


def bounded(value: Opaque, error: np.ndarray) -> Value:
    """An opaque value with the kernel's own ``error`` and the reference's change by one ulp."""
    change = np.broadcast_to(np.asarray(value.change, np.float64), value.value.shape)
    # The shadow that the error counts from may itself be off by what the law of logic allows.
    whole = np.broadcast_to(error, value.value.shape) + change + logic_room(value)

    def blame(index: tuple[int, ...]) -> str:
        return f"{error[index]:.3g} by the kernel's own run; {value.reason}"

    return Value(value.value, whole, blame)


def _without_bound(observation: Observation, run: Run) -> Exception:
    """What to say of a run without a bound: nothing, of these inputs or of the kernel."""
    if run.errors is not None and run.errors.arithmetic.doubt and not run.errors.unbounded:
        return InapplicableError(f"{_reason(observation)}: {run.errors.arithmetic.doubt}")
    reason = why_unbounded(run)
    if observation.run.shadow_rounded or observation.run.shadow_failure is not None:
        return NotJudgedError(f"{_reason(observation)}, and no run bounds its rounding: {reason}")
    return NotPromisedError(
        f"{_reason(observation)}, and no run bounds its rounding: {reason}; logic_matches judges "
        "the kernel by the reference's float64 value"
    )


def why_unbounded(run: Run) -> str:
    """Why ``error_of`` of a run that was asked to bound its rounding is None."""
    if run.shadow_failure is not None:
        return run.shadow_failure.text
    if run.shadow_rounded:
        return f"the host computes with a rounded number, at {run.shadow_rounded}"
    return run.errors.reason if run.errors is not None else "it does not run"


def _reason(observation: Observation) -> str:
    found = next((v.reason for v in observation.values if isinstance(v, Opaque)), "")
    return f"the reference is opaque, {found}"
