"""Several versions in one process: random order, cold cache, copied inputs, checked results."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trivet.ci.timing.device import Device

Launch = Callable[..., Any]
Arguments = Mapping[str, Any]
Inputs = Callable[[int], Arguments]

ROUNDS = 100
WARM = 5
# So many input sets, made before the clock runs, are used in turn: no call finds the values of the
# one before it.
SETS = 4


class WrongResultError(Exception):
    """A timed call returned something else than it should: its time means nothing."""


@dataclass(frozen=True)
class Version:
    """One implementation; ``exact`` where equal inputs must give equal bits."""

    name: str
    launch: Launch
    exact: bool = True


def interleaved(
    versions: Sequence[Version],
    inputs: Inputs,
    device: Device,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> list[list[float]]:
    """Seconds of every call of each version: all on the same inputs, in random order each round.

    ``inputs(number)`` makes a set of arguments. Every call gets copies of one, so a version that
    writes into its arguments cannot help or hurt the next. Results, written arguments among them,
    are checked call by call against those of a call before the clock ran. Raises WrongResultError
    for others, and where different inputs gave the same.
    """
    order = random.Random(seed)
    sets = [inputs(number) for number in range(SETS)]
    wanted = [[_results(version, given, device) for given in sets] for version in versions]
    for version, known in zip(versions, wanted, strict=True):
        _told_apart(version, sets, known)
    for number in range(WARM * len(versions)):
        _results(versions[number % len(versions)], sets[number % SETS], device)
    device.wait()
    seconds: list[list[float]] = [[] for _ in versions]
    for number in range(rounds):
        given = sets[number % SETS]
        for place in order.sample(range(len(versions)), len(versions)):
            took, results = _timed(versions[place], given, device)
            seconds[place].append(took)
            _unchanged(versions[place], wanted[place][number % SETS], results)
    return seconds


def _timed(version: Version, given: Arguments, device: Device) -> tuple[float, list[torch.Tensor]]:
    """Seconds of one call on copies, out of a cold cache, and its results."""
    mine = _copied(given)
    device.flush()
    start = device.stamp()
    returned = device.call(version.launch, mine)
    end = device.stamp()
    return end - start, tensors((returned, mine))


def _results(version: Version, given: Arguments, device: Device) -> list[torch.Tensor]:
    """What a call returned, and its arguments as it left them."""
    mine = _copied(given)
    return tensors((device.call(version.launch, mine), mine))


def _copied(given: Arguments) -> dict[str, Any]:
    """Copies of the tensors, strides and alignment kept, other values as they are."""
    return {k: _copy(v) if isinstance(v, torch.Tensor) else v for k, v in given.items()}


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    whole.set_(tensor.untyped_storage())
    return whole.clone().as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _unchanged(
    version: Version, wanted: Sequence[torch.Tensor], found: Sequence[torch.Tensor]
) -> None:
    if len(wanted) != len(found):
        raise WrongResultError(f"{version.name} returned {len(found)} tensors, not {len(wanted)}")
    for one, other in zip(wanted, found, strict=True):
        if one.shape != other.shape or (version.exact and not same_bits(one, other)):
            raise WrongResultError(
                f"{version.name} returned something else for inputs that it had before"
            )


def _told_apart(
    version: Version, sets: Sequence[Arguments], results: Sequence[Sequence[torch.Tensor]]
) -> None:
    """Refuse a version that returns the same for inputs that differ throughout."""
    first, second = (tensors(given) for given in sets[:2])
    if any(same_bits(a, b) for a, b in zip(first, second, strict=True)):
        return
    for one, other in zip(*(result[: -len(first)] for result in results[:2]), strict=True):
        if one.numel() and one.shape == other.shape and same_bits(one, other):
            raise WrongResultError(f"{version.name} returned the same for different inputs")


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers; NaN equals NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    both = one.isnan() & other.isnan()
    return bool((both | (one == other)).all())


def tensors(result: Any) -> list[torch.Tensor]:
    """The tensors in what a version returned, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, Mapping):
        return [t for value in result.values() for t in tensors(value)]
    if isinstance(result, tuple | list):
        return [t for value in result for t in tensors(value)]
    return []
