"""The weight of each horizon's smoothness loss."""

from typing import Any

import numpy as np

from trivet import Contract, Scalar, Tensor, integers, log_uniform, reals
from trivet.impl import controllers as kernels
from trivet.oracles import controllers as oracles
from trivet.properties._expect import at_most, interval, same_bits
from trivet.properties.controllers.inputs import (
    HORIZONS,
    PER_HORIZON,
    Array,
    Rerun,
    as_positive_states,
    lengthened,
)
from trivet.properties.controllers.rates import LEAST
from trivet.properties.decision.inputs import filled, widened


def some_unset(drawn: Array) -> Array:
    """Floors, every third not set yet."""
    return np.where(np.arange(drawn.size) % 3 == 1, 0.0, drawn)


controllers_smoothness_lambda = Contract(
    kernel=kernels.smoothness_lambda,
    oracles=[oracles.smoothness_lambda, oracles.smoothness_lambda_scalar],
    dims=HORIZONS,
    args={
        "jitter": Tensor("5 N", domain=reals(0, 1).map(as_positive_states)),
        "horizons": Tensor("N", dtypes=("int32",), domain=integers(1, 6000)),
        "floor": Tensor("N", domain=log_uniform(LEAST, 1 / 16).map(some_unset), role="inout"),
        "base": Scalar(float, 0, 100),
    },
    outputs={"weight": PER_HORIZON},
    raises=(
        (ValueError, "horizons", filled("horizons", 0)),
        (ValueError, "base", {"base": -1.0}),
        (ValueError, "base", {"base": float("nan")}),
        (ValueError, "horizons", lengthened("jitter")),
        (TypeError, "floor", widened("floor")),
        (TypeError, "horizons", widened("horizons")),
    ),
)


@controllers_smoothness_lambda.law
def the_shortest_horizon_has_no_weight(out: Any) -> None:
    """lambda_0 = 0, bitwise: it is its own goal."""
    same_bits(out.weight[:1], np.zeros(1), "weight of the shortest horizon")


@controllers_smoothness_lambda.law
def without_a_base_nothing_weighs(rerun: Rerun) -> None:
    """base = 0 gives 0."""
    weight = rerun(base=0.0).weight
    same_bits(weight, np.zeros_like(weight), "weight of base 0")


@controllers_smoothness_lambda.law
def weights_are_not_negative(out: Any) -> None:
    """lambda >= 0."""
    at_most(-out.weight, np.zeros_like(out.weight), "-weight")


@controllers_smoothness_lambda.law
def weights_grow_with_the_jitter(
    out: Any, bound: Any, jitter: Array, horizons: Array, floor: Array, base: float, rerun: Rerun
) -> None:
    """A larger J_k, J_0 as it was, gives no smaller weight, within the bound."""
    larger = jitter.copy()
    larger[0, 1:] = (larger[0, 1:] + 0.125 * jitter[4, 1:]).astype(np.float32)
    _, error = interval(_weight_alone, jitter=larger, horizons=horizons, floor=floor, base=base)
    grown = rerun(jitter=larger).weight
    slack = bound.weight + error + np.spacing(grown.astype(np.float32))
    at_most(out.weight, grown + slack, "weight of the smaller jitter")


def _weight_alone(m: Any, jitter: Any, horizons: Any, floor: Any, base: Any) -> Any:
    return oracles.smoothness_lambda(m, jitter, horizons, floor, base)[0]


@controllers_smoothness_lambda.law
def goals_fall_with_the_root_of_the_horizon(
    jitter: Array, horizons: Array, floor: Array, rerun: Rerun
) -> None:
    """A horizon four times as long has half the goal: J_k = J_0 is then twice it, ratio 1."""
    states = np.stack([np.ones_like(floor), *jitter[1:4], np.ones_like(floor)])
    four = np.where(np.arange(len(horizons)) == 0, 16, 64)
    weight = rerun(jitter=states, horizons=four, floor=np.full_like(floor, 0.0625), base=1.0).weight
    same_bits(weight[1:], np.ones(len(weight) - 1), "weight of a horizon four times as long")


@controllers_smoothness_lambda.law
def floors_stay_as_first_set(out: Any, floor: Array, jitter: Array, rerun: Rerun) -> None:
    """A floor that is set is permanent; one that is not is set by the first goal, if there is."""
    kept = (floor != 0) | (jitter[4, 0] == 0)
    same_bits(np.where(kept, out.floor, 0.0), np.where(kept, floor, 0.0), "floor")
    calm = np.stack([np.zeros_like(floor), *jitter[1:4], np.ones_like(floor)])
    first = rerun(jitter=calm, floor=0 * floor).floor
    least = np.float64(np.float32(1e-3)) / 16
    same_bits(first, np.full_like(floor, least), "floor of a first goal of 0")


@controllers_smoothness_lambda.law
def unseen_jitter_has_no_weight(out: Any, jitter: Array) -> None:
    """Before J_0 and J_k were observed lambda_k is 0."""
    unseen = (jitter[4] == 0) | (jitter[4, 0] == 0)
    same_bits(np.where(unseen, out.weight, 0.0), np.zeros_like(out.weight), "weight before J")
