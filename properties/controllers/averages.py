"""The adaptive average, from chosen states."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, reals, sizes
from trivet.impl import controllers as kernels
from trivet.oracles import controllers as oracles
from trivet.properties._expect import at_most, interval, same_bits, same_values
from trivet.properties.controllers.inputs import (
    Array,
    Rerun,
    as_observations,
    as_states,
    lengthened,
    scales,
)
from trivet.properties.decision.inputs import BLOCK, filled, widened

controllers_wiener_ema = Contract(
    kernel=kernels.wiener_ema,
    oracles=[oracles.wiener_ema, oracles.wiener_ema_scalar],
    dims={"A": sizes(0, 300)},
    args={
        "x": Tensor("A", domain=reals(-1, 1).map(as_observations)),
        "floor": Tensor("A", domain=reals(0, 1).map(lambda drawn: np.round(drawn * 10) / 10)),
        "average": Tensor("5 A", domain=reals(-1, 1).map(as_states), role="inout"),
        "rejected": Tensor("A", dtypes=("int32",), role="inout"),
        "block": BLOCK,
    },
    raises=(
        (ValueError, "floor", filled("floor", 1.5)),
        (ValueError, "floor", filled("floor", -0.1)),
        (ValueError, "floor", filled("floor", np.nan)),
        (ValueError, "average", lengthened("average")),
        (TypeError, "average", widened("average")),
        (TypeError, "rejected", widened("rejected")),
    ),
)
SIGNS = np.array([-1, 1, 1, -1, 1])[:, None]


def counted(x: Array) -> Array:
    """Which observations count: finite and at most 2^60 in size."""
    with np.errstate(invalid="ignore"):
        found: Array = np.abs(x) <= 2.0**60
    return found


def sound(x: Array) -> Array:
    """The observations, with 0 in place of those that do not count."""
    return np.where(counted(x), x, 0.0)


@controllers_wiener_ema.law
def constant_input_is_a_fixed_point(x: Array, average: Array, rerun: Rerun) -> None:
    """Where nothing was seen, or mean and last are x already, the mean is x, bitwise, twice."""
    value, unseen = sound(x), average[4] == 0
    known = np.where(unseen, 0, value)
    state = np.stack([known, average[1], average[2], known, average[4]])
    for _ in range(2):
        state = rerun(x=value, average=state).average
        same_bits(0.0 + state[0], 0.0 + value, "mean of a constant input")


@controllers_wiener_ema.law
def a_first_observation_is_the_mean(x: Array, average: Array, rerun: Rerun) -> None:
    """From nothing: mean and last are x, the variances 0, seen 1."""
    state = rerun(x=sound(x), average=0 * average).average
    zero = np.zeros_like(x)
    wanted = np.stack([sound(x), zero, zero, sound(x), zero + 1])
    same_bits(state, wanted, "state after a first observation")


@controllers_wiener_ema.law
def mean_stays_between_itself_and_the_input(out: Any, x: Array, average: Array) -> None:
    """The new mean lies between the old one and x, within one rounding of x - mean.

    The gain is at most 1: x - mean is rounded, times the gain, and the sum.
    """
    value = np.where(counted(x), x, average[0])
    old = np.where(average[4] == 0, value, average[0])
    slack = np.spacing(np.abs(value - old).astype(np.float32)).astype(float)
    slack = slack + np.spacing(np.maximum(np.abs(value), np.abs(old)).astype(np.float32))
    at_most(np.minimum(old, value) - slack, out.average[0], "lower end of the range")
    at_most(out.average[0], np.maximum(old, value) + slack, "mean")


@controllers_wiener_ema.law
def gain_lies_between_floor_and_one(
    out: Any, bound: Any, x: Array, floor: Array, average: Array
) -> None:
    """The mean moves at least by floor times x - mean, and at most by all of it."""
    moves = counted(x) & (average[4] != 0)
    off = np.where(moves, x - average[0], 0.0)
    moved = np.where(off == 0, 0.0, out.average[0] - average[0]) * np.sign(off)
    slack = bound.average[0] + np.spacing(np.abs(off).astype(np.float32))
    at_most(floor * np.abs(off), moved + slack, "floor times x - mean")
    at_most(moved, np.abs(off) + slack, "movement of the mean")


@controllers_wiener_ema.law
def negating_every_input_negates_the_mean(out: Any, x: Array, average: Array, rerun: Rerun) -> None:
    """An average knows no sides, bitwise."""
    again = rerun(x=-x, average=SIGNS * average)
    same_values(again.average, SIGNS * out.average, "state of negated input")


@controllers_wiener_ema.law
def mean_never_falls_when_the_input_grows(
    out: Any, bound: Any, x: Array, floor: Array, average: Array, rerun: Rerun
) -> None:
    """From one state a larger x gives no smaller mean, within the bound."""
    size = scales(x.size)
    larger = np.minimum(sound(x) + size / 8, size).astype(np.float32).astype(float)
    larger = np.where(counted(x), larger, x)
    _, error = interval(_mean_alone, x=larger, floor=floor, average=average)
    grown = rerun(x=larger).average[0]
    slack = bound.average[0] + error + np.spacing(np.abs(grown).astype(np.float32))
    at_most(out.average[0], grown + slack, "mean of the smaller input")


def _mean_alone(m: Any, x: Any, floor: Any, average: Any) -> Any:
    return oracles.wiener_ema(m, x, floor, average, np.zeros(x.shape[0], np.int64))[0][0]


@controllers_wiener_ema.law
def what_is_not_finite_leaves_the_state(
    x: Array, average: Array, rejected: Array, rerun: Rerun
) -> None:
    """NaN, infinities and more than 2^60 change no bit of the state, and are counted."""
    for wild in (np.nan, np.inf, -np.inf, 2.0**61):
        again = rerun(x=np.full_like(x, wild))
        same_bits(again.average, average, f"state after {wild}")
        same_values(again.rejected, rejected + 1, f"rejected after {wild}")
    kept = rerun(x=np.full_like(x, 2.0**60))
    same_values(kept.rejected, rejected, "rejected after 2^60")
    same_bits(kept.average[3], np.full_like(x, 2.0**60), "last after 2^60")
