"""One judged run: a kernel on one set of inputs, its outputs, and what the oracle says of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import Value
from trivet.properties._arrays import copies_of, numpy_of
from trivet.properties._cases import Inputs
from trivet.properties._contract import Contract
from trivet.properties._torch_reference import evaluate_plain, evaluate_reference
from trivet.properties._verdict import NotJudgedError
from trivet.simulator.executors import Executor, Run

# An undeclared output of whole numbers: the oracle computes in int64, whatever the kernel stores.
ANY_INTEGER = "an integer type"


class DiscardedError(Exception):
    """The inputs lie outside the reference's domain: it raised, or made finite input non-finite."""


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a run: a tensor the kernel returned, or an argument it writes."""

    name: str
    tensor: torch.Tensor
    actual: NDArray[Any]
    argument: str | None = None


@dataclass
class Observation:
    """What one call of the kernel did.

    ``before`` are the arguments as generated, ``arguments`` the copies that the kernel was given
    (and may have written), ``run`` the executor's record of the call.
    """

    contract: Contract
    inputs: Inputs
    before: Mapping[str, object]
    arguments: Mapping[str, object]
    run: Run
    executor: Executor
    reference: "Observation | None" = None
    notes: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def outputs(self) -> list[Output | None]:
        """Every tensor returned, then every argument declared out or inout, in order."""
        found: list[Output | None] = []
        for name, value in zip(self.names, [*self.run.outputs, *self._written()], strict=True):
            if value is None:
                found.append(None)
                continue
            if not isinstance(value, torch.Tensor):
                raise NotJudgedError(
                    f"{name}: the kernel returned {type(value).__name__}, expected a tensor or None"
                )
            owner = next((a for a, t in self.arguments.items() if t is value), None)
            found.append(Output(name, value, numpy_of(value), owner))
        return found

    def hold(self) -> None:
        """Keep the outputs as they are now, whatever becomes of their memory."""
        self.outputs = [
            None if output is None else replace(output, actual=output.actual.copy())
            for output in self.outputs
        ]

    def _written(self) -> list[object]:
        return [self.arguments[name] for name in self._written_names()]

    def _written_names(self) -> list[str]:
        returned = {id(value) for value in self.run.outputs}
        return [
            name
            for name in self.contract.written_arguments()
            if self.arguments.get(name) is not None and id(self.arguments[name]) not in returned
        ]

    @cached_property
    def names(self) -> list[str]:
        """The outputs' names, in the order of ``outputs``."""
        count = len(self.run.outputs)
        declared = list(self.contract.outputs or ())
        if declared:
            returned = (declared + [f"out{i}" for i in range(len(declared), count)])[:count]
        elif count == 1:
            returned = ["out"]
        else:
            returned = [f"out{i}" for i in range(count)]
        return returned + self._written_names()

    @cached_property
    def values(self) -> list[Value | None]:
        """The first oracle's value and bound of every output, in the order of ``outputs``."""
        if self.reference is not None:
            return self.reference.values
        return reference_values(self.contract, self.contract.oracles[0], self.inputs, self.executor)

    def initialised(self, output: Output) -> NDArray[np.bool_]:
        """Return which elements of ``output`` were written, same shape."""
        return self.run.initialised_of(output.tensor)

    @property
    def launches(self) -> int:
        """How many launches the call made."""
        return len(self.run.launches)


def reference_values(
    contract: Contract,
    oracle: Callable[..., object],
    inputs: Inputs,
    executor: Executor | None = None,
) -> list[Value | None]:
    """Evaluate ``oracle`` in bounded arithmetic on ``inputs``.

    Raises DiscardedError where the reference raises or turns finite input non-finite, and
    NotJudgedError where it cannot be traced.
    """
    try:
        values = plan_values(contract, oracle, inputs, executor)
    except OracleError as error:
        _raises_as_well(oracle, inputs)
        raise NotJudgedError(str(error)) from error
    if _finite(inputs.arrays.values()) and any(_accidental(value) for value in values):
        raise DiscardedError("the reference turns finite inputs non-finite")
    return list(values)


def plan_values(
    contract: Contract,
    oracle: Callable[..., object],
    inputs: Inputs,
    executor: Executor | None = None,
) -> list[Value | None]:
    """What ``oracle`` says of ``inputs``, in its domain or not. Raises OracleError."""
    name = executor.name if executor is not None else "simulator"
    profile = str(getattr(executor, "profile", name))
    arrays = known_arrays(inputs)
    with np.errstate(all="ignore"):
        return evaluate_reference(oracle, arrays, precision=contract.precision, profile=profile)


def known_arrays(inputs: Inputs) -> dict[str, Any]:
    """Return what oracles see by name; a dim called m gives way to the math namespace."""
    hidden = {"m"} - set(inputs.contract.args)
    return {name: value for name, value in inputs.arrays.items() if name not in hidden}


def _raises_as_well(oracle: Callable[..., object], inputs: Inputs) -> None:
    """Raise DiscardedError when the reference refuses these inputs in plain float64, too."""
    try:
        evaluate_plain(oracle, known_arrays(inputs))
    except Exception as error:
        raise DiscardedError(f"{type(error).__name__}: {error}") from error


def _finite(values: Iterable[object]) -> bool:
    arrays = [np.asarray(v) for v in values if isinstance(v, np.ndarray | float)]
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _accidental(value: Value | None) -> bool:
    """Whether a NaN, or an infinity that rounding led to, stands in a reference's output.

    An infinity without error was meant: the reference selected it (an empty bucket's upper end).
    """
    if value is None or value.error is None:
        return False
    infinite = np.isinf(value.value) & (value.error != 0)
    return bool((np.isnan(value.value) | infinite).any())


def observe(
    contract: Contract,
    inputs: Inputs,
    executor: Executor,
    *,
    reference: Observation | None = None,
    kernel: Callable[..., object] | None = None,
) -> Observation:
    """Call the contract's kernel on fresh copies of ``inputs`` and record what it did.

    With ``reference``, the oracle's values are taken from that observation.
    """
    arguments = copies_of(inputs.tensors)
    run = executor.run(
        kernel or contract.kernel,
        arguments,
        read_only=contract.read_only_arguments(),
        unwritten=contract.unwritten_arguments(),
        whole_storage=contract.whole_storage_arguments(),
    )
    return Observation(contract, inputs, inputs.tensors, arguments, run, executor, reference)


def expected_dtypes(observation: Observation, dtype: str) -> Sequence[str]:
    """Return the dtype each output must have, in order: declared, or the oracle's and promotion."""
    contract = observation.contract
    wanted = []
    for name, value in zip(observation.names, observation.values, strict=False):
        declared = contract.output_dtype(name, dtype)
        if declared is None and name in contract.args:
            declared = contract.dtype_of(name, dtype)
        if declared is None and value is not None and value.error is None:
            declared = "bool" if value.value.dtype == np.bool_ else ANY_INTEGER
        wanted.append(declared or promoted(observation.inputs))
    return wanted


def promoted(inputs: Inputs) -> str:
    """Return the promotion of the float arguments' dtypes: that of an undeclared float output."""
    floats = [
        t.dtype
        for t in inputs.tensors.values()
        if isinstance(t, torch.Tensor) and t.dtype.is_floating_point
    ]
    if not floats:
        return "float32"
    dtype = floats[0]
    for other in floats[1:]:
        dtype = torch.promote_types(dtype, other)
    return str(dtype).removeprefix("torch.")
