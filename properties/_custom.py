"""A contract's own laws: plain functions whose arguments are given by name."""

import inspect
import traceback
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trivet.oracles._accept import room
from trivet.properties._arrays import exact, numpy_of
from trivet.properties._cases import Inputs
from trivet.properties._changes import changed
from trivet.properties._contract import Contract
from trivet.properties._law import Law
from trivet.properties._laws import StandardLaw, Tally
from trivet.properties._laws._gradients import called
from trivet.properties._laws._reruns import ran
from trivet.properties._observe import Observation, Output, observe
from trivet.properties._opaque import bounded_values
from trivet.properties._tensors import stored_tensor
from trivet.properties._verdict import NotPromisedError, Violation


def law_of(contract: Contract, law: Law) -> StandardLaw:
    """Return ``law`` in the form of the standard ones; it observes the shared runs."""

    def check(observation: Observation, dtype: str) -> Tally:
        if law.dtypes and dtype not in law.dtypes:
            raise NotPromisedError(f"the contract states it for {', '.join(law.dtypes)} alone")
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
        raise Violation(str(error) or _asserted(error)) from error
    if held is False or (isinstance(held, np.bool_) and not held):
        raise Violation(f"{law.name} returned False")


def _asserted(error: AssertionError) -> str:
    """The line of an assertion that says nothing."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}: {frame.line}"


def arguments_of(observation: Observation) -> dict[str, Callable[[], Any]]:
    """Return what a law may ask for by name: every dim and argument, and the reserved names.

    Arrays are exact float64 (integers and booleans plain). ``out``, ``ref`` and ``bound`` are the
    outputs, the oracle's values, and how far a right output may lie from them (bound and storage
    rounding): one array, or a named tuple when there are several. ``rerun(**changes)`` calls the
    kernel with some arguments changed and returns its outputs, ``rerun.other(function, **args)``
    another host function; ``kernel(**arguments)`` is ``rerun`` with all arguments given; ``args``
    holds the arguments after the call. ``grads(out=g)`` are the gradients of the backward function
    for these cotangents (ones where none is given), by argument.
    """
    inputs = observation.inputs
    given: dict[str, Callable[[], Any]] = {}
    for name, value in {**inputs.dims, **inputs.arrays}.items():
        given[name] = partial(_itself, value)
    given["out"] = lambda: outputs_of(observation)
    given["ref"] = lambda: _references(observation)
    given["bound"] = lambda: _bounds(observation)
    given["launches"] = lambda: observation.run.launches
    given["args"] = lambda: _Arguments(observation)
    given["grads"] = lambda: partial(_gradients, observation)
    given["rerun"] = given["kernel"] = lambda: Rerun(observation)
    return given


def _itself(value: Any) -> Any:
    """A law gets copies: what it does to them reaches neither the oracle nor other laws."""
    return value.copy() if isinstance(value, np.ndarray) else value


def outputs_of(observation: Observation) -> Any:
    """Return the outputs as laws see them: one exact array, or a named tuple of several."""
    arrays = [_itself(exact(o.actual)) if o else None for o in observation.outputs]
    return _one_or_named(observation, arrays)


def _references(observation: Observation) -> Any:
    return _one_or_named(observation, [_itself(v.value) if v else None for v in observation.values])


def _bounds(observation: Observation) -> Any:
    pairs = zip(bounded_values(observation), observation.outputs, strict=True)
    return _one_or_named(observation, [room(v, o.actual) if v and o else None for v, o in pairs])


def _one_or_named(observation: Observation, items: list[Any]) -> Any:
    if len(items) == 1:
        return items[0]
    return namedtuple("Outputs", observation.names, rename=True)(*items)


def _gradients(observation: Observation, **cotangents: Any) -> dict[str, Any]:
    """Call the backward function and return the gradients by argument, exact arrays or None.

    Raises TypeError for an unknown output and for a contract without a backward function.
    """
    backward = observation.contract.backward
    unknown = sorted(set(cotangents) - set(observation.names))
    if backward is None or unknown:
        what = f"no output {unknown[0]}" if unknown else "the contract has no backward"
        raise TypeError(f"grads: {what}; outputs: {', '.join(observation.names)}")
    given = [
        _cotangent(output, cotangents.get(name))
        for name, output in zip(observation.names, observation.outputs, strict=True)
    ]
    found, _ = called(observation, backward, given)
    return {n: None if g is None else exact(numpy_of(g)) for n, g in found.items()}


def _cotangent(output: Output | None, values: Any) -> torch.Tensor | None:
    if output is None or not output.tensor.is_floating_point():
        return None
    drawn = np.ones(output.actual.shape) if values is None else np.asarray(values)
    return stored_tensor(drawn, str(output.tensor.dtype).removeprefix("torch."))


class Rerun:
    """Calls kernels on the law's executor: inputs and outputs are NumPy arrays."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation

    def __call__(self, **changes: Any) -> Any:
        """Call the kernel on the same inputs with ``changes`` in place of some."""
        return self._outputs(changed(self._contract, self._observation.inputs, changes))

    def other(self, function: Callable[..., object], **changes: Any) -> Any:
        """Call another host function on those of these inputs that it has parameters for.

        One with ``**others`` gets all of them.
        """
        inputs = changed(self._contract, self._observation.inputs, changes)
        parameters = inspect.signature(function).parameters
        every = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        taken = {n: t for n, t in inputs.tensors.items() if every or n in parameters}
        return self._outputs(replace(inputs, tensors=taken), function)

    @property
    def _contract(self) -> Contract:
        return self._observation.contract

    def _outputs(self, inputs: Inputs, function: Callable[..., object] | None = None) -> Any:
        executor = self._observation.executor.variant()
        contract = self._contract if function is None else self._contract.with_kernel(function)
        second = observe(contract, inputs, executor)
        ran(second, "the rerun")
        return outputs_of(second)


class _Arguments:
    """The arguments after the call, by attribute: exact arrays, scalars as they are."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation

    def __getattr__(self, name: str) -> Any:
        arguments = self._observation.arguments
        if name not in arguments:
            raise AttributeError(f"args.{name}: no such argument; known are {', '.join(arguments)}")
        value = arguments[name]
        if not isinstance(value, torch.Tensor):
            return value
        return exact(numpy_of(value))
