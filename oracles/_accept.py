"""Accepts or refuses what a kernel stored, element by element."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trivet.oracles._evaluate import Value
from trivet.oracles._formats import Array, Format, format_of, round_to

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Acceptance:
    """Per element: `ok`, `undecided` (the bound is infinite: accepted, but counted) and `ratio`,
    the distance from the value over bound plus storage rounding (infinite for a wrong element
    the ratio cannot measure)."""

    ok: Mask
    undecided: Mask
    ratio: Array


def accept(actual: npt.NDArray[Any], value: Value) -> Acceptance:
    """Judge `actual`, in its storage dtype, against an oracle's value and bound.

    A float y of format T is right when rn_T(value - error) <= y <= rn_T(value + error); rounding
    is monotone, so no tighter rule is sound. NaN is right where the value is a decided NaN.
    Integers and bools are exact. Raises ValueError when the shapes differ.
    """
    actual = np.asarray(actual)
    if actual.shape != value.value.shape:
        raise ValueError(f"shape {actual.shape} where the oracle has {value.value.shape}")
    if actual.dtype.kind in "iub":
        return _accept_whole(actual, value)
    format = format_of(actual.dtype)
    with np.errstate(invalid="ignore"):
        stored = actual.astype(np.float64)
    centre = value.value.astype(np.float64)
    error = np.zeros(stored.shape) if value.error is None else value.error
    undecided = np.isinf(error) | np.isnan(error)
    with np.errstate(all="ignore"):
        saturate = not format.infinite
        low = round_to(centre - error, format, saturate=saturate)
        high = round_to(centre + error, format, saturate=saturate)
        inside = (stored >= low) & (stored <= high)
        inside |= np.isnan(centre) & np.isnan(stored)
        if saturate:
            inside |= np.isnan(stored) & (np.abs(centre) + error > format.largest)
        ok = inside | undecided
        ratio = _ratio(stored, centre, error, format)
    unmeasured = ~np.isfinite(ratio)
    ratio = np.where(undecided | (unmeasured & ok), 0.0, np.where(unmeasured, np.inf, ratio))
    return Acceptance(ok, undecided, ratio)


def room(value: Value, actual: npt.NDArray[Any]) -> Array:
    """How far a right output of the dtype of ``actual`` may lie from the value: bound and storage
    rounding; 0 for integers and bools."""
    if value.error is None or actual.dtype.kind in "iub":
        return np.zeros(np.shape(value.value))
    return _room(value.value.astype(np.float64), value.error, format_of(actual.dtype))


def ulps(distance: float, value: float, dtype: Any) -> float:
    """A distance in units in the last place of ``value`` in a float dtype; NaN where it has none.

    >>> ulps(2.0**-22, 1.5, np.float32)
    2.0
    """
    format = format_of(dtype)
    if not math.isfinite(value):
        return math.nan
    exponent = max(math.frexp(value)[1], format.minimum + 1)
    return distance / 2.0 ** (exponent - format.significand)


def _room(centre: Array, error: Array, format: Format) -> Array:
    return error + np.maximum(format.unit * (np.abs(centre) + error), format.subnormal / 2)


def _ratio(stored: Array, centre: Array, error: Array, format: Format) -> Array:
    distance = np.abs(stored - centre)
    ratio: Array = np.where(stored == centre, 0.0, distance / _room(centre, error, format))
    return ratio


def _accept_whole(actual: npt.NDArray[Any], value: Value) -> Acceptance:
    error = np.zeros(actual.shape) if value.error is None else value.error
    undecided = np.isinf(error) | np.isnan(error)
    equal = actual == value.value
    if value.value.dtype.kind == "f":
        equal = equal | (np.abs(actual - value.value) <= error)
    ratio = np.where(equal | undecided, 0.0, np.inf)
    return Acceptance(equal | undecided, undecided, ratio)
