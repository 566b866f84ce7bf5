"""The rate of each horizon's skip weights, and the step it shortens."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, log_uniform, reals
from trivet.impl import controllers as kernels
from trivet.oracles import controllers as oracles
from trivet.properties._expect import at_most, same_bits, same_values
from trivet.properties.controllers.inputs import (
    COUNTS,
    HORIZONS,
    PER_HORIZON,
    POSITIVE_STATES,
    Array,
    Rerun,
    lengthened,
)
from trivet.properties.decision.inputs import BLOCK, filled, widened
from trivet.properties.optimiser.inputs import MATRIX, PARAMETER, inout

LEAST = 1e-3 / 16


def with_faulty_windows(drawn: Array) -> Array:
    """Mean squared changes in [0, 1], now and then one of a model that diverged."""
    place = np.arange(drawn.size)
    return np.where(place % 5 == 3, np.where(place % 2 == 0, np.inf, np.nan), drawn)


def with_absent_labels(drawn: Array) -> Array:
    """Deviations in [0, 1/2], 0 and tiny ones among them, NaN where no label was present."""
    return np.where(drawn < 0, np.nan, np.minimum(drawn, 0.5))


controllers_rate_scale = Contract(
    kernel=kernels.rate_scale,
    oracles=[oracles.rate_scale, oracles.rate_scale_scalar],
    dims=HORIZONS,
    args={
        "mean_square": Tensor("N", domain=reals(0, 1).map(with_faulty_windows), optional=True),
        "deviation": Tensor("N", domain=reals(-0.2, 0.7).map(with_absent_labels)),
        "jitter": POSITIVE_STATES,
        "target": POSITIVE_STATES,
        "floor": Tensor("N", domain=log_uniform(LEAST, 1 / 32), role="inout"),
        "rejected": COUNTS,
    },
    outputs={"rate": PER_HORIZON},
    raises=(
        (ValueError, "target", lengthened("target")),
        (ValueError, "mean_square", lengthened("mean_square")),
        (TypeError, "jitter", widened("jitter")),
        (TypeError, "rejected", widened("rejected")),
    ),
)


@controllers_rate_scale.law
def rates_lie_above_zero_and_up_to_one(out: Any) -> None:
    """A step is shortened, never turned round, stopped or made longer."""
    at_most(out.rate, np.ones_like(out.rate), "rate")
    at_most(np.full_like(out.rate, 2.0**-30), out.rate, "2^-30")


@controllers_rate_scale.law
def targets_depend_on_labels_alone(out: Any, jitter: Array, rerun: Rerun) -> None:
    """Another model's jitter, past or present, changes no bit of target and floor."""
    other = rerun(mean_square=np.full(len(out.rate), 0.25), jitter=jitter[:, ::-1])
    same_bits(other.target, out.target, "target of another model")
    same_bits(other.floor, out.floor, "floor of another model")
    same_bits(rerun(mean_square=None).target, out.target, "target without jitter")


@controllers_rate_scale.law
def floors_are_permanent(out: Any, deviation: Array, target: Array, floor: Array) -> None:
    """Set once, by the first deviation d, to max(d, 1e-3) / 16: 1/16 of the first target."""
    first = (target[4] == 0) & ~np.isnan(deviation)
    least = np.maximum(np.nan_to_num(deviation), np.float64(np.float32(1e-3))) / 16
    same_bits(out.floor, np.where(first, least, floor), "floor")


@controllers_rate_scale.law
def a_floor_holds_when_the_target_vanishes(
    deviation: Array, target: Array, jitter: Array, rerun: Rerun
) -> None:
    """A positive first target, then labels that never change again: rates stay above 0."""
    seen = rerun(deviation=np.full_like(deviation, 0.5), target=0 * target)
    aim, floor = seen.target, seen.floor
    for quiet in (0.0, 1e-30, 0.0):
        again = rerun(deviation=np.full_like(deviation, quiet), target=aim, floor=floor)
        aim = again.target
        same_bits(again.floor, np.full_like(floor, 1 / 32), "floor after the first target")
    gone = rerun(deviation=np.zeros_like(deviation), target=0 * aim + np.eye(5)[4][:, None])
    at_most(np.full_like(floor, 2.0**-30), gone.rate, "2^-30")


@controllers_rate_scale.law
def unobserved_windows_update_nothing(
    out: Any, deviation: Array, jitter: Array, target: Array, rejected: Array, rerun: Rerun
) -> None:
    """No step, no label: averages, floor and counts keep their bits."""
    again = rerun(mean_square=None, deviation=np.full_like(deviation, np.nan))
    same_bits(again.jitter, jitter, "jitter without a step")
    same_bits(again.target, target, "target without a label")
    same_values(again.rejected, rejected, "rejected without a step")
    never = rerun(mean_square=None, jitter=0 * jitter)
    same_bits(never.rate, np.ones_like(out.rate), "rate before the first jitter")
    blind = rerun(deviation=np.full_like(deviation, np.nan), target=0 * target)
    same_bits(blind.rate, np.ones_like(out.rate), "rate before the first label")


@controllers_rate_scale.law
def a_jitter_within_its_target_is_not_slowed(out: Any, deviation: Array, rerun: Rerun) -> None:
    """Where the smoothed jitter is at most the target the rate is 1, bitwise."""
    quiet = out.jitter[0] <= out.target[0]
    same_bits(np.where(quiet, out.rate, 1.0), np.ones_like(out.rate), "rate of a quiet horizon")


controllers_heads_lr_scale = Contract(
    kernel=kernels.heads_lr_scale,
    oracles=[oracles.heads_lr_scale, oracles.heads_lr_scale_scalar],
    dims=MATRIX,
    args={
        "params": inout("N H", PARAMETER),
        "snap": Tensor("N H", domain=PARAMETER),
        "rate": Tensor("N", domain=reals(2**-10, 1)),
        "block_channels": BLOCK,
    },
    raises=(
        (ValueError, "rate", filled("rate", 0.0)),
        (ValueError, "rate", filled("rate", 1.5)),
        (ValueError, "rate", filled("rate", np.nan)),
        (ValueError, "snap", lengthened("snap")),
        (TypeError, "params", widened("params")),
    ),
)


@controllers_heads_lr_scale.law
def a_rate_of_one_keeps_every_bit(params: Array, rate: Array, rerun: Rerun) -> None:
    """Rate 1 leaves the plain step, bitwise: a select."""
    same_bits(rerun(rate=np.ones_like(rate)), params, "params at rate 1")


@controllers_heads_lr_scale.law
def what_did_not_move_stays(params: Array, rate: Array, rerun: Rerun) -> None:
    """An entry that the step left where it was keeps its value, for any rate."""
    for slow in (rate, np.full_like(rate, 0.5)):
        same_values(rerun(snap=params, rate=slow), params, "an entry that did not move")


@controllers_heads_lr_scale.law
def the_step_is_shortened(out: Array, bound: Array, params: Array, snap: Array) -> None:
    """The result lies between snap and the plain step's, within the bound."""
    at_most(np.minimum(params, snap) - bound, out, "lower of snap and plain step")
    at_most(out, np.maximum(params, snap) + bound, "scaled weight")
