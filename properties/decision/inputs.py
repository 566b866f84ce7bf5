"""Domains, bad inputs and comparisons that the contracts of the backtest share."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import Choice, Tensor, integers, log_uniform, reals, sizes

Array = NDArray[Any]
Rerun = Any
BadCase = Callable[..., dict[str, object]]

SIMULATIONS = {"S": sizes(0, 40, production=8192)}
HORIZONS = {"N": sizes(1, 6, production=5)}
EVENTS = {"E": sizes(0, 14)}
# The first is the kernels' own choice; the other cuts the simulations more finely.
BLOCK = Choice(32, 4)
PINNED = (
    "every rounding is pinned and decides integers: matches_oracle demands equal bits, and a run "
    "in float64 rightly takes other branches"
)


def on_grid(values: Array) -> Array:
    """Probabilities rounded to multiples of 2^-12: p, 1 - p and p - 0.5 are exact."""
    return np.asarray(np.round(values * 4096) / 4096)


def with_gaps(values: Array) -> Array:
    """Every eleventh value missing, by position."""
    place = np.arange(values.size).reshape(values.shape)
    return np.where(place % 11 == 7, np.nan, values)


def as_averages(values: Array) -> Array:
    """States of averages from numbers in [-0.5, 0.5], rows mean, diff_var, sample_var, last, seen.

    Variances are not negative and up to 1/4; a third of the averages has seen nothing yet.
    """
    mean, diff_var, sample_var, last, seen = values
    used = 1.0 * (seen > -1 / 6)
    rows: Array = np.stack([mean, diff_var * diff_var, sample_var**4, last, used]) * used
    return rows


PROBABILITIES = Tensor("E N", domain=reals(0, 1).map(with_gaps))
COSTS = log_uniform(1e-3, 1e2)
COST = Tensor("S", domain=COSTS)
EDGE = Tensor("S N", domain=reals(-40, 40))
VAR = Tensor("S N", domain=log_uniform(1e-6, 1e6, zero=True))
THRESHOLD = Tensor("S", domain=log_uniform(1e-3, 0.5, zero=True))
LOTS = Tensor("S", dtypes=("int32",), domain=integers(1, 1 << 20))
FLOOR = Tensor("S", domain=reals(0, 1))


def filled(name: str, value: float) -> BadCase:
    """A case that fills the argument `name` with one bad value."""

    def case(**given: Any) -> dict[str, object]:
        return {name: torch.full_like(given[name], value)}

    asked = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    case.__signature__ = inspect.Signature([asked])  # type: ignore[attr-defined]
    case.__name__ = f"{name} of {value}"
    return case


def widened(name: str) -> BadCase:
    """A case that hands the argument `name` over in 64 bits."""

    def case(**given: Any) -> dict[str, object]:
        value = given[name]
        return {name: value.double() if value.is_floating_point() else value.long()}

    asked = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    case.__signature__ = inspect.Signature([asked])  # type: ignore[attr-defined]
    case.__name__ = f"{name} in 64 bits"
    return case


BAD_COST = tuple((ValueError, "cost", filled("cost", v)) for v in (0.0, 9e-4, 2e9, np.nan))
