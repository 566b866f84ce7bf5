"""Domains and bad inputs that the contracts of the controllers share."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import Tensor, reals, sizes

Array = NDArray[Any]
Rerun = Any
BadCase = Callable[..., dict[str, object]]

HORIZONS = {"N": sizes(1, 9, production=5)}
FEW_CHANNELS = {"H": sizes(1, 60, production=128)}
PER_HORIZON = Tensor("N")
ONE_INTEGER = Tensor("1", dtypes=("int32",))
# Columns of these sizes, up to the largest observation that counts.
SCALES = np.array([1.0, 2.0**-20, 2.0**60, 2.0**10, 1.0])


def scales(count: int) -> Array:
    """The size of each of `count` columns."""
    return SCALES[np.arange(count) % len(SCALES)]


def as_states(drawn: Array) -> Array:
    """States (5, A) from numbers in [-1, 1]; a third has seen nothing yet.

    Variances are not negative; some are far below or above the other one.
    """
    mean, diff_var, sample_var, last, seen = drawn
    used = 1.0 * (seen > -1 / 3)
    size = scales(drawn.shape[1])
    rows = [size * mean, (size * diff_var) ** 2, (size * sample_var**3) ** 2, size * last, used]
    states: Array = np.stack(rows) * used
    return states


def as_observations(drawn: Array) -> Array:
    """Observations (A,) from numbers in [-1, 1], now and then one that does not count."""
    place = np.arange(drawn.size)
    faulty = np.array([np.nan, np.inf, -(2.0**61), -np.inf])[place // 7 % 4]
    return np.where(place % 7 == 5, faulty, scales(drawn.size) * drawn)


def as_positive_states(drawn: Array) -> Array:
    """States (5, N) of averages of numbers in [0, 1]; a fifth has seen nothing yet."""
    used = 1.0 * (drawn[4] > 0.2)
    rows = [drawn[0], drawn[1] ** 4, drawn[2] ** 2, drawn[3], np.ones_like(used)]
    states: Array = np.stack(rows) * used
    return states


def on_grid(drawn: Array) -> Array:
    """Multiples of 1/64: sums of few of them are exact, and many are equal."""
    return np.round(drawn * 64) / 64


def with_powers_of_two(drawn: Array) -> Array:
    """Positive numbers, two of three rounded to powers of two: exact ties of their ratios."""
    rounded = 2.0 ** np.round(np.log2(np.maximum(drawn, 1e-300)))
    return np.where(np.arange(drawn.size).reshape(drawn.shape) % 3 == 1, drawn, rounded)


POSITIVE_STATES = Tensor("5 N", domain=reals(0, 1).map(as_positive_states), role="inout")
COUNTS = Tensor("N", dtypes=("int32",), role="inout")


def lengthened(name: str) -> BadCase:
    """A case that gives the argument `name` one element more along its last axis."""

    def case(**given: Any) -> dict[str, object]:
        return {name: torch.cat([given[name], torch.ones_like(given[name][..., :1])], dim=-1)}

    asked = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    case.__signature__ = inspect.Signature([asked])  # type: ignore[attr-defined]
    case.__name__ = f"{name} too long"
    return case
