"""Oracles vote: where two of them disagree, no verdict about the kernel is given."""

import inspect
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from trivet.oracles._evaluate import Value
from trivet.oracles._exact import carried
from trivet.properties._observe import DiscardedError, Observation, reference_values
from trivet.properties._verdict import NotJudgedError

_SCALAR_ELEMENTS = 32
# A scalar oracle in mpmath costs microseconds a term: every fifth example is enough of a vote.
_SCALAR_EVERY = 5


def is_scalar(oracle: Callable[..., object], arguments: Collection[str]) -> bool:
    """Return whether ``oracle`` answers for one output element.

    Then its first parameter is index, and none of the ``arguments`` it may be called with is.
    """
    first = next(iter(inspect.signature(oracle).parameters), "")
    return first == "index" and "index" not in arguments


def oracles_agree(observation: Observation) -> None:
    """Raise NotJudgedError where a further oracle lies outside the sum of the bounds."""
    number = observation.notes.get("example", 0)
    for oracle in observation.contract.oracles[1:]:
        if not is_scalar(oracle, observation.inputs.arrays):
            _arrays_agree(observation, oracle)
        elif isinstance(number, int) and number % _SCALAR_EVERY == 0:
            _elements_agree(observation, oracle)


def _arrays_agree(observation: Observation, oracle: Callable[..., object]) -> None:
    name = oracle.__name__
    try:
        others = reference_values(
            observation.contract, oracle, observation.inputs, observation.executor
        )
    except DiscardedError as error:
        raise NotJudgedError(f"oracles disagree: {name} alone refuses inputs: {error}") from error
    firsts = observation.values
    if len(firsts) != len(others):
        raise NotJudgedError(
            f"oracles disagree: the first returns {len(firsts)} output(s), {name} {len(others)}"
        )
    for number, (first, second) in enumerate(zip(firsts, others, strict=True)):
        _values_agree(_name(observation, number), first, second, oracle)


def _name(observation: Observation, number: int) -> str:
    """The oracles may return more than the kernel does; matches_oracle says so."""
    names = observation.names
    return names[number] if number < len(names) else f"output {number}"


def _values_agree(
    name: str, first: Value | None, second: Value | None, oracle: Callable[..., object]
) -> None:
    if first is None and second is None:
        return
    shapes = ["None" if v is None else str(np.shape(v.value)) for v in (first, second)]
    if first is None or second is None or shapes[0] != shapes[1]:
        raise NotJudgedError(
            f"oracles disagree at {name}: the first gives {shapes[0]}, "
            f"{oracle.__name__} gives {shapes[1]}"
        )
    one, other = np.asarray(first.value, float), np.asarray(second.value, float)
    with np.errstate(invalid="ignore"):
        bad = ~_alike(one, other, _error(first) + _error(second))
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        _disagree(name, index, first.value[index], second.value[index], oracle)


def _alike(one: Any, other: Any, bound: Any) -> Any:
    """Whether two answers agree: within the bound, both NaN, one infinity, or undecidable."""
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return same | (np.abs(one - other) <= bound) | ~np.isfinite(bound)


def _error(value: Value) -> np.ndarray:
    return np.zeros(np.shape(value.value)) if value.error is None else value.error


def _elements_agree(observation: Observation, oracle: Callable[..., object]) -> None:
    takes = inspect.signature(oracle).parameters
    every = any(each.kind is each.VAR_KEYWORD for each in takes.values())
    known = {n: a for n, a in observation.inputs.arrays.items() if every or n in takes}
    for number, value in enumerate(observation.values):
        if value is None:
            continue
        name = _name(observation, number)
        named = {**known, "output": name} if "output" in takes else known
        error = _error(value)
        for index in _chosen(np.shape(value.value), len(observation.values)):
            exact = oracle(index, **named)
            if exact is None:
                continue
            got, wanted = float(value.value[index]), float(exact)  # type: ignore[arg-type]
            if not _alike(got, wanted, error[index] + carried(np.asarray(wanted), error[index])):
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
