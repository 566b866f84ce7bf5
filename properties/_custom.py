"""A contract's own laws: plain functions whose arguments are given by name."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from trivet.properties._arrays import exact, numpy_of
from trivet.properties._changes import changed
from trivet.properties._contract import Contract
from trivet.properties._law import Law
from trivet.properties._laws import StandardLaw, Tally
from trivet.properties._laws._reruns import ran
from trivet.properties._observe import Observation, observe
from trivet.properties._verdict import Violation


def law_of(contract: Contract, law: Law) -> StandardLaw:
    """Return ``law`` in the form of the standard ones; it observes the shared runs."""

    def check(observation: Observation, dtype: str) -> Tally:
        if law.dtypes and dtype not in law.dtypes:
            return Tally()
        given = arguments_of(observation)
        wanted = inspect.signature(law.check).parameters
        missing = [name for name in wanted if name not in given]
        if missing:
            raise TypeError(f"law {law.name} asks for {missing[0]}: known are {', '.join(given)}")
        _judge(law, {name: given[name]() for name in wanted})
        outputs = [output for output in observation.outputs if output is not None]
        return Tally(sum(output.actual.size for output in outputs))

    return StandardLaw(law.name, law.claim, "observes", check)


def _judge(law: Law, named: dict[str, Any]) -> None:
    try:
        held = law.check(**named)
    except Violation:
        raise
    except AssertionError as error:
        raise Violation(str(error) or law.claim) from error
    if held is False or (isinstance(held, np.bool_) and not held):
        raise Violation(f"{law.name} returned False")


def arguments_of(observation: Observation) -> dict[str, Callable[[], Any]]:
    """Return what a law may ask for by name: every dim and argument, and the reserved names.

    Arrays are exact float64 (integers and booleans plain). ``out``, ``ref`` and ``bound`` are the
    outputs, the oracle's values and their bounds: one array, or a tuple when there are several.
    ``rerun(**changes)`` calls the kernel with some arguments changed and returns its outputs,
    ``kernel(**arguments)`` with all of them given; ``args`` holds the arguments after the call.
    """
    inputs = observation.inputs
    given: dict[str, Callable[[], Any]] = {}
    for name, value in {**inputs.dims, **inputs.arrays}.items():
        given[name] = lambda value=value: value  # type: ignore[misc]
    given["out"] = lambda: _one_or_all(
        [_array(o.actual) if o else None for o in observation.outputs]
    )
    given["ref"] = lambda: _one_or_all([v.value if v else None for v in observation.values])
    given["bound"] = lambda: _one_or_all([_bound(v) for v in observation.values])
    given["launches"] = lambda: observation.run.launches
    given["args"] = lambda: _Arguments(observation)
    given["rerun"] = lambda: lambda **changes: _outputs(observation, changes)
    given["kernel"] = given["rerun"]
    return given


def _arrays(observation: Observation) -> Any:
    return _one_or_all([exact(o.actual) if o else None for o in observation.outputs])


def _bound(value: Any) -> Any:
    if value is None:
        return None
    return np.zeros(np.shape(value.value)) if value.error is None else value.error


def _one_or_all(items: list[Any]) -> Any:
    return items[0] if len(items) == 1 else tuple(items)


def _outputs(observation: Observation, changes: dict[str, Any]) -> Any:
    inputs = changed(observation.contract, observation.inputs, changes)
    second = observe(observation.contract, inputs, observation.executor.variant())
    ran(second, "the rerun")
    return _arrays(second)


class _Arguments:
    """The arguments after the call, by attribute: exact arrays, scalars as they are."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation

    def __getattr__(self, name: str) -> Any:
        value = self._observation.arguments[name]
        if not isinstance(value, torch.Tensor):
            return value
        return exact(numpy_of(value))
