"""The law of gradients: a backward function against the oracle's forward mode."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet.oracles._accept import accept
from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import Value
from trivet.oracles._gradient import gradient
from trivet.oracles._logic import Opaque, accept_logic, logic_room
from trivet.properties._arrays import copies_of, exact, numpy_of
from trivet.properties._constants import NUDGES
from trivet.properties._laws import Tally, standard
from trivet.properties._laws._memory import of_fault
from trivet.properties._laws._values import outside
from trivet.properties._observe import Observation, Output, known_arrays
from trivet.properties._opaque import bounded, why_unbounded
from trivet.properties._tensors import stored_tensor
from trivet.properties._torch_gradients import torch_gradients
from trivet.properties._torch_reference import is_torch
from trivet.properties._verdict import (
    InapplicableError,
    NotJudgedError,
    NotPromisedError,
    Violation,
)
from trivet.simulator.executors import Run, Simulator

# One direction of forward mode costs a run of the oracle on tangents as large as its arguments:
# whole gradients where this product is small, elements spread over each argument where it is not.
_WORK = 2**21
_CHOSEN = 16

Gradients = Mapping[str, torch.Tensor | None]


@standard("reruns", share=0.25)
def gradients_match(observation: Observation, dtype: str) -> Tally:
    """Every gradient lies in the interval of the oracle's forward mode, for drawn cotangents.

    Cotangents are by turns normal, all ones and a single one; the bound covers every order in
    which a backward pass may accumulate its paths. Kinks are undecided and counted.
    """
    backward = observation.contract.backward
    if backward is None:
        raise NotPromisedError("the contract has no backward")
    cotangents = _cotangents(observation, dtype)
    if is_torch(observation.contract.oracles[0], known_arrays(observation.inputs)):
        return _by_autograd(observation, backward, cotangents)
    found, run = called(observation, backward, cotangents)
    for fault in run.faults:
        raise of_fault(fault)
    elements = undecided = 0
    margin = 0.0
    for name, actual, value, places in _judged(observation, found, cotangents):
        output = Output(f"gradient of {name}", torch.empty(0), actual)
        judged = accept(actual, value)
        if not (judged.ok | judged.undecided).all():
            raise outside(output, value, judged, what="forward mode", places=places)
        elements += actual.size
        undecided += int(judged.undecided.sum())
        margin = max([margin, *judged.ratio[~judged.undecided].ravel().tolist()])
    return Tally(elements, undecided, margin)


def _by_autograd(
    observation: Observation,
    backward: Callable[..., Any] | str,
    cotangents: list[torch.Tensor | None],
) -> Tally:
    """Judge gradients by float64 autograd of a torch reference.

    Their shadow has to lie within 1e-9 of its condition, and they within what the backward pass's
    own rounding explains.
    """
    if not isinstance(observation.executor, Simulator):
        raise NotPromisedError("a torch reference bounds gradients by a run in the simulator")
    precision = observation.contract.precision
    found, run = called(observation, backward, cotangents, shadow=True, running=precision)
    for fault in run.faults:
        raise of_fault(fault)
    arrays = known_arrays(observation.inputs)
    names = [name for name, value in found.items() if value is not None]
    for name in names:
        _same_shape(name, found[name], arrays)
    weights = [None if g is None else exact(numpy_of(g)) for g in cotangents]
    try:
        values = torch_gradients(observation.contract.oracles[0], arrays, names, weights)
    except OracleError as error:
        raise NotPromisedError(str(error)) from error
    tally = Tally(note="by float64 autograd of the reference and the backward pass's own rounding")
    reach = cache(lambda: _reaches(observation, backward, cotangents, found, run))
    for name, value in zip(names, values, strict=True):
        tally = _one_gradient(run, found[name], name, value, tally, reach)
    return tally


def _reaches(
    observation: Observation,
    backward: Callable[..., Any] | str,
    cotangents: list[torch.Tensor | None],
    found: Gradients,
    run: Run,
) -> dict[str, NDArray[np.float64]]:
    """How far the digits that constants lost can move the shadow of each gradient."""
    reach: dict[str, NDArray[np.float64]] = {}
    for nudge in NUDGES:
        others, other_run = called(observation, backward, cotangents, shadow=True, nudge=nudge)
        for name, first in found.items():
            other = others.get(name)
            if first is None or other is None:
                continue
            one, two = run.shadow_of(first), other_run.shadow_of(other)
            if one is not None and two is not None and one.shape == two.shape:
                moved = len(NUDGES) * np.abs(one - two)
                reach[name] = np.fmax(reach.get(name, np.zeros(one.shape)), moved)
    return reach


def _one_gradient(
    run: Run,
    gradient: torch.Tensor | None,
    name: str,
    value: Opaque,
    tally: Tally,
    reach: Callable[[], Mapping[str, NDArray[np.float64]]],
) -> Tally:
    assert gradient is not None
    output = Output(f"gradient of {name}", gradient, numpy_of(gradient))
    shadow, error = run.shadow_of(gradient), run.error_of(gradient)
    if shadow is not None and not run.shadow_rounded:
        judged = accept_logic(shadow, value)
        if not (judged.ok | judged.undecided).all():
            judged = accept_logic(shadow, value, reach().get(name, 0.0))
        if not (judged.ok | judged.undecided).all():
            allowed = Value(value.value, logic_room(value), value.blame)
            what = "in float64, autograd"
            raise outside(Output(output.name, gradient, shadow), allowed, judged, what=what)
    if error is None:
        raise InapplicableError(f"no run bounds the gradients' rounding: {why_unbounded(run)}")
    limits = bounded(value, error)
    judged = accept(output.actual, limits)
    if not (judged.ok | judged.undecided).all():
        raise outside(output, limits, judged, what="autograd")
    return replace(
        tally,
        elements=tally.elements + output.actual.size,
        undecided=tally.undecided + int(judged.undecided.sum()),
        margin=max([tally.margin or 0.0, *judged.ratio[~judged.undecided].ravel().tolist()]),
    )


def _cotangents(observation: Observation, dtype: str) -> list[torch.Tensor | None]:
    """Draw a cotangent for every float output, in the output's dtype and shape."""
    number = int(observation.notes.get("example", 0))
    generator = np.random.default_rng(number)
    drawn: list[torch.Tensor | None] = []
    for output in observation.outputs:
        if output is None or not output.tensor.is_floating_point():
            drawn.append(None)
            continue
        shape = output.actual.shape
        kind = (number // 4) % 3
        values = np.ones(shape) if kind == 1 else generator.standard_normal(shape)
        if kind == 2 and values.size:
            values = np.zeros(shape)
            values.reshape(-1)[int(generator.integers(values.size))] = 1.0
        drawn.append(stored_tensor(values, str(output.tensor.dtype).removeprefix("torch.")))
    return drawn


def called(
    observation: Observation,
    backward: Callable[..., Any] | str,
    cotangents: list[torch.Tensor | None],
    **options: object,
) -> tuple[Gradients, Run]:
    """Call the backward function, or autograd through the kernel, on the executor so changed."""
    returned: dict[str, torch.Tensor | None] = {}

    def call(**arguments: Any) -> None:
        if backward == "autograd":
            returned.update(_autograd(observation, cotangents, arguments))
            return
        assert callable(backward)
        given = [g.clone() for g in cotangents if g is not None]
        found = backward(*given, **_taken(backward, arguments))
        if not isinstance(found, Mapping):
            raise TypeError(
                f"backward returned {type(found).__name__}, expected {{argument: gradient}}"
            )
        returned.update(found)

    run = observation.executor.variant(**options).run(call, copies_of(observation.inputs.tensors))
    if run.failed is not None:
        raise NotJudgedError(f"backward failed: {run.failed.text}")
    if run.error is not None:
        raise Violation(f"backward raised {type(run.error).__name__}: {run.error}")
    return returned, run


def _taken(backward: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a backward function has parameters for."""
    parameters = inspect.signature(backward).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in parameters}


def _autograd(
    observation: Observation, cotangents: list[torch.Tensor | None], arguments: dict[str, Any]
) -> Gradients:
    """Differentiate the kernel by torch's autograd, as its user does."""
    leaves = {
        name: value.requires_grad_()
        for name, value in arguments.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    }
    result = observation.contract.kernel(**arguments)
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    # A backward pass may leave its result in the gradient it is given.
    pairs = [
        (output, g.clone())
        for output, g in zip(outputs, cotangents, strict=False)
        if g is not None and isinstance(output, torch.Tensor) and output.requires_grad
    ]
    found = torch.autograd.grad(
        [output for output, _ in pairs],
        list(leaves.values()),
        [g for _, g in pairs],
        allow_unused=True,
    )
    return dict(zip(leaves, found, strict=True))


def _judged(
    observation: Observation, found: Gradients, cotangents: list[torch.Tensor | None]
) -> list[tuple[str, NDArray[Any], Value, list[tuple[int, ...]]]]:
    """Return, for every gradient, its chosen elements, the oracle's values, and their indices."""
    arrays = known_arrays(observation.inputs)
    names = [name for name, value in found.items() if value is not None]
    for name in names:
        _same_shape(name, found[name], arrays)
    sizes = {name: int(np.size(arrays[name])) for name in names}
    directions = _WORK // max(1, sum(sizes.values()) * len(sizes))
    number = int(observation.notes.get("example", 0))
    chosen = {name: _elements(size, directions, number) for name, size in sizes.items()}
    weights = [None if g is None else exact(numpy_of(g)) for g in cotangents]
    try:
        values = gradient(
            observation.contract.oracles[0],
            arrays,
            names,
            weights,
            precision=observation.contract.precision,
            profile=str(getattr(observation.executor, "profile", observation.executor.name)),
            elements=chosen,
        )
    except OracleError as error:
        raise NotJudgedError(str(error)) from error
    flat = {
        name: numpy_of(tensor).reshape(-1) for name, tensor in found.items() if tensor is not None
    }
    return [
        (name, flat[name][chosen[name]], value, _indices(chosen[name], np.shape(arrays[name])))
        for name, value in zip(names, values, strict=True)
    ]


def _indices(flat: NDArray[np.int64], shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [tuple(map(int, np.unravel_index(place, shape))) if shape else () for place in flat]


def _same_shape(name: str, gradient: torch.Tensor | None, arrays: Mapping[str, Any]) -> None:
    wanted = np.shape(arrays[name]) if name in arrays else None
    if gradient is None or wanted == tuple(gradient.shape):
        return
    if wanted is None:
        raise Violation(f"backward returned a gradient of {name}, which is no argument", key=name)
    got = tuple(gradient.shape)
    raise Violation(f"the gradient of {name} has shape {got}, the argument {wanted}", key=name)


def _elements(size: int, directions: int, seed: int) -> NDArray[np.int64]:
    """Return the flat indices to judge: all if there are directions enough, else some, the ends
    among them where there are two."""
    if size <= directions:
        return np.arange(size)
    count = min(max(directions, 1), _CHOSEN)
    drawn = np.random.default_rng(seed).integers(0, size, count)
    if count > 1:
        drawn[:2] = 0, size - 1
    return np.unique(drawn)
