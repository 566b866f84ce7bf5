"""Oracles vote: where two of them disagree, no verdict about the kernel is given."""

import inspect
from collections.abc import Callable

import numpy as np

from trivet.oracles._evaluate import Value
from trivet.properties._observe import Observation, reference_values
from trivet.properties._verdict import NotJudgedError

_SCALAR_ELEMENTS = 32
# A scalar oracle in mpmath costs microseconds a term: every fifth example is enough of a vote.
_SCALAR_EVERY = 5


def is_scalar(oracle: Callable[..., object]) -> bool:
    """Return whether ``oracle`` answers for one output element: its first parameter is index."""
    return next(iter(inspect.signature(oracle).parameters), "") == "index"


def oracles_agree(observation: Observation) -> None:
    """Raise NotJudgedError where a further oracle lies outside the sum of the bounds."""
    number = observation.notes.get("example", 0)
    for oracle in observation.contract.oracles[1:]:
        if not is_scalar(oracle):
            _arrays_agree(observation, oracle)
        elif isinstance(number, int) and number % _SCALAR_EVERY == 0:
            _elements_agree(observation, oracle)


def _arrays_agree(observation: Observation, oracle: Callable[..., object]) -> None:
    others = reference_values(
        observation.contract, oracle, observation.inputs, observation.executor
    )
    for name, first, second in zip(observation.names, observation.values, others, strict=True):
        if first is None or second is None:
            continue
        bound = _error(first) + _error(second)
        apart = np.abs(np.asarray(first.value, float) - np.asarray(second.value, float))
        bad = apart > bound
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            _disagree(name, index, first.value[index], second.value[index], oracle)


def _error(value: Value) -> np.ndarray:
    return np.zeros(np.shape(value.value)) if value.error is None else value.error


def _elements_agree(observation: Observation, oracle: Callable[..., object]) -> None:
    takes = inspect.signature(oracle).parameters
    known = {n: a for n, a in observation.inputs.arrays.items() if n in takes}
    for name, value in zip(observation.names, observation.values, strict=True):
        if value is None:
            continue
        named = {**known, "output": name} if "output" in takes else known
        error = _error(value)
        for index in _chosen(np.shape(value.value), len(observation.values)):
            exact = oracle(index, **named)
            if exact is None:
                continue
            got, wanted = float(value.value[index]), float(exact)  # type: ignore[arg-type]
            # float64 carries the array form: allow its own rounding beside the bound
            if abs(got - wanted) > error[index] + 16 * np.spacing(abs(wanted)):
                _disagree(name, index, got, wanted, oracle)


def _chosen(shape: tuple[int, ...], outputs: int) -> list[tuple[int, ...]]:
    """Corners first, then elements spread over the array: at most 32 over all outputs."""
    size = int(np.prod(shape))
    count = min(size, max(2, _SCALAR_ELEMENTS // max(1, outputs)))
    if not count:
        return []
    flat = np.unique(np.linspace(0, size - 1, count).astype(int))
    return [tuple(int(i) for i in np.unravel_index(k, shape)) for k in flat]


def _disagree(
    name: str,
    index: tuple[int, ...],
    first: object,
    second: object,
    oracle: Callable[..., object],
) -> None:
    raise NotJudgedError(
        f"oracles disagree at {name}{list(index)}: the first gives {first}, "
        f"{oracle.__name__} gives {second}"
    )
