"""Float64 functions NumPy lacks, and stable forms of those it would overflow in."""

import math

import numpy as np
import numpy.typing as npt

from trivet.oracles._formats import Array

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: npt.ArrayLike) -> Array:
    """The error function, elementwise."""
    return np.asarray(_erf(np.asarray(x, np.float64)), np.float64)


def sigmoid(x: npt.ArrayLike) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    x = np.asarray(x, np.float64)
    small = np.exp(-np.abs(x))
    result: Array = np.where(x >= 0, 1.0, small) / (1.0 + small)
    return result


def softplus(x: npt.ArrayLike) -> Array:
    """log(1 + exp(x)) without overflow or cancellation."""
    x = np.asarray(x, np.float64)
    result: Array = np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    return result


def rsqrt(x: npt.ArrayLike) -> Array:
    """1 / sqrt(x)."""
    return 1.0 / np.sqrt(np.asarray(x, np.float64))


def silu(x: npt.ArrayLike) -> Array:
    """x * sigmoid(x)."""
    return np.asarray(x, np.float64) * sigmoid(x)
