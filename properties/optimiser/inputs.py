"""Domains and bad inputs that the contracts of the optimiser share."""

from typing import Any

import torch
from numpy.typing import NDArray

from trivet import Choice, Scalar, Tensor, log_uniform, reals
from trivet.properties.routing.inputs import BUCKETS, CHANNELS

Array = NDArray[Any]
Rerun = Any
MATRIX = CHANNELS | BUCKETS

PARAMETER = reals(-8, 8)
GRADIENT = reals(-1e3, 1e3)
MEAN = reals(-1e3, 1e3)
# The mean of squares is never negative; where all gradients were 0 it is 0.
SQUARE = log_uniform(1e-12, 1e6, zero=True)
POSITIVE = log_uniform(1e-12, 1e6)
SETTINGS: dict[str, Tensor | Scalar | Choice] = {
    "lr": Scalar(float, 0, 1),
    "beta1": Scalar(float, 0, 0.999),
    "beta2": Scalar(float, 0, 0.9999),
    "eps": Choice(1e-8, 0.0, 1e-3),
    "decay": Scalar(float, 0, 1),
    "t": Scalar(int, 1, 100_000),
}


def step_zero() -> dict[str, object]:
    """Steps count from 1."""
    return {"t": 0}


def beta_of_one() -> dict[str, object]:
    """A moment that never changes, whose correction is a division by 0."""
    return {"beta1": 1.0}


def beta_that_rounds_to_one() -> dict[str, object]:
    """A float64 below 1 that is 1 in float32."""
    return {"beta2": 1 - 1e-9}


def negative_eps() -> dict[str, object]:
    """An eps that could cancel the root."""
    return {"eps": -1e-8}


def infinite_lr() -> dict[str, object]:
    """A rate that is no number."""
    return {"lr": float("inf")}


def g_in_float64(g: torch.Tensor) -> dict[str, object]:
    """A gradient of another dtype."""
    return {"g": g.double()}


def moment_as_a_column(exp_avg: torch.Tensor) -> dict[str, object]:
    """A moment of another rank."""
    return {"exp_avg": exp_avg[..., None]}


BAD_SETTINGS = (
    (ValueError, "t", step_zero),
    (ValueError, "beta1", beta_of_one),
    (ValueError, "beta2", beta_that_rounds_to_one),
    (ValueError, "eps", negative_eps),
    (ValueError, "lr", infinite_lr),
    (TypeError, "g", g_in_float64),
)
BAD_MOMENT = ((ValueError, "exp_avg", moment_as_a_column),)


def inout(dims: str, domain: Any) -> Tensor:
    """A buffer that a step changes in place."""
    return Tensor(dims, domain=domain, role="inout")
