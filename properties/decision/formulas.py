"""The formulas of a decision: the adaptive average, the weights and the sum over horizons."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, log_uniform, reals
from trivet.impl import decision as kernels
from trivet.oracles import decision as oracles
from trivet.properties._expect import at_most, interval, near, same_bits, same_values
from trivet.properties.decision.inputs import (
    BAD_COST,
    BLOCK,
    COST,
    FLOOR,
    HORIZONS,
    SIMULATIONS,
    Array,
    Rerun,
    as_averages,
    filled,
    widened,
)

decision_smooth = Contract(
    kernel=kernels.smooth,
    oracles=[oracles.smooth, oracles.smooth_scalar],
    dims=SIMULATIONS,
    args={
        "x": Tensor("S", domain=reals(-0.5, 0.5)),
        "average": Tensor("5 S", domain=reals(-0.5, 0.5).map(as_averages)),
        "floor": FLOOR,
        "block": BLOCK,
    },
    outputs={"smoothed": Tensor("5 S")},
    raises=(
        (ValueError, "x", filled("x", np.nan)),
        (ValueError, "x", filled("x", 2.0**61)),
        (ValueError, "floor", filled("floor", 1.5)),
        (TypeError, "average", widened("average")),
    ),
)


@decision_smooth.law
def constant_input_is_a_fixed_point(x: Array, average: Array, rerun: Rerun) -> None:
    """Where mean and last are x already, or nothing was seen, the mean is x, bitwise."""
    known = np.where(average[4] == 0, 0, x)
    rows = np.stack([known, average[1], average[2], known, average[4]])
    again = rerun(average=rows)
    same_values(again[0], x, "mean of a constant input")
    same_values(rerun(average=again)[0], x, "mean of a constant input, second step")


@decision_smooth.law
def mean_stays_between_itself_and_the_input(
    out: Array, bound: Array, x: Array, average: Array
) -> None:
    """The new mean lies between the old one and x: the gain is at most 1."""
    old = np.where(average[4] == 0, x, average[0])
    at_most(np.minimum(old, x) - bound[0], out[0], "lower end")
    at_most(out[0], np.maximum(old, x) + bound[0], "mean")


@decision_smooth.law
def negating_every_input_negates_the_mean(
    out: Array, x: Array, average: Array, rerun: Rerun
) -> None:
    """An average knows no sides."""
    signs = np.array([-1, 1, 1, -1, 1])[:, None]
    same_values(rerun(x=-x, average=signs * average), signs * out, "state of negated input")


@decision_smooth.law
def mean_never_falls_when_the_input_grows(
    out: Array, bound: Array, x: Array, average: Array, floor: Array, rerun: Rerun
) -> None:
    """From one state a larger x gives no smaller mean, within the bound."""
    larger = np.minimum(x + 0.125, 0.5)
    more, error = interval(oracles.smooth, x=larger, average=average, floor=floor)
    grown = rerun(x=larger)
    near(grown[0], more[0], error[0] + np.spacing(np.float32(1)), "mean of a larger input")
    at_most(out[0] - bound[0], grown[0] + error[0] + bound[0], "mean of the smaller input")


decision_weighted = Contract(
    kernel=kernels.weighted,
    oracles=[oracles.weighted, oracles.weighted_scalar],
    dims=SIMULATIONS | HORIZONS,
    args={
        "q": Tensor("S N", domain=reals(-0.5, 0.5)),
        "net_edge": Tensor("S N", domain=reals(-1e3, 1e3)),
        "var": Tensor("S N", domain=log_uniform(1e-6, 1e9, zero=True)),
        "cost": COST,
        "block": BLOCK,
    },
    outputs={"weight": Tensor("S N"), "signed": Tensor("S")},
    raises=(
        *BAD_COST,
        (ValueError, "q", filled("q", 0.75)),
        (ValueError, "var", filled("var", -1.0)),
        (ValueError, "net_edge", filled("net_edge", np.inf)),
        (TypeError, "var", widened("var")),
    ),
)


def cancelling(shape: tuple[int, ...]) -> Array:
    """q of 0.2, -0.2, 0.2, -0.2, ...; the last is 0 where their number is odd."""
    horizons = shape[-1]
    signs = np.where(np.arange(horizons) % 2 == 0, 1.0, -1.0)
    signs[-1] *= horizons % 2 == 0
    return np.broadcast_to(0.2 * signs, shape)


@decision_weighted.law
def disagreeing_horizons_cancel(q: Array, net_edge: Array, rerun: Rerun) -> None:
    """Equal weights and alternating directions give a signal of 0: the direction is summed."""
    equal = np.ones_like(net_edge)
    _, signed = rerun(q=cancelling(q.shape), net_edge=equal, var=equal)
    same_values(signed, np.zeros(len(q)), "signed of cancelling horizons")


@decision_weighted.law
def mirrored_horizons_mirror_the_signal(out: Any, q: Array, rerun: Rerun) -> None:
    """Negating every q negates the signal, bitwise, and leaves the weights alone."""
    weight, signed = rerun(q=-q)
    same_bits(weight, out.weight, "weight of mirrored horizons")
    same_values(signed, -out.signed, "signed of mirrored horizons")


@decision_weighted.law
def signal_lies_within_one(out: Any) -> None:
    """|signed| <= 1, rounding included."""
    at_most(np.abs(out.signed), np.ones_like(out.signed), "|signed|")


@decision_weighted.law
def scaling_all_weights_by_two_changes_no_bit(
    out: Any, net_edge: Array, var: Array, cost: Array, rerun: Rerun
) -> None:
    """Edges and costs times 2, variances times 4 halve every weight and leave the signal alone."""
    weight, signed = rerun(net_edge=2 * net_edge, var=4 * var, cost=2 * cost)
    same_bits(signed, out.signed, "signed of halved weights")
    same_bits(2 * weight, out.weight, "twice the halved weight")


@decision_weighted.law
def scaling_all_weights_by_three_is_neutral_within_the_bound(
    q: Array, net_edge: Array, var: Array, rerun: Rerun
) -> None:
    """As with 2, but a factor of 3 rounds; whole numbers stay exact when multiplied."""
    edge, spread, fee = np.round(net_edge), np.round(np.minimum(var, 1e5)), np.full(len(q), 2.0)
    once = {"q": q, "net_edge": edge, "var": spread, "cost": fee}
    thrice = {"q": q, "net_edge": 3 * edge, "var": 9 * spread, "cost": 3 * fee}
    slack = interval(_signal_alone, **once)[1] + interval(_signal_alone, **thrice)[1]
    near(rerun(**thrice).signed, rerun(**once).signed, slack + 2 * HALF_ULP, "signed")


# A signal lies in [-1, 1], where storing it rounds by at most half of an ulp of 1/2.
HALF_ULP = 2.0**-24


def _signal_alone(m: Any, q: Any, net_edge: Any, var: Any, cost: Any) -> Any:
    return oracles.weighted(m, q, net_edge, var, cost)[1]


@decision_weighted.law
def reordering_horizons_changes_rounding_only(
    out: Any, bound: Any, q: Array, net_edge: Array, var: Array, rerun: Rerun
) -> None:
    """Horizons have no rank in the sum."""
    again = rerun(q=q[:, ::-1], net_edge=net_edge[:, ::-1], var=var[:, ::-1])
    same_bits(again.weight, out.weight[:, ::-1], "weight of reordered horizons")
    near(again.signed, out.signed, 2 * bound.signed, "signed of reordered horizons")


@decision_weighted.law
def negative_edges_count_as_the_least(out: Any, net_edge: Array, rerun: Rerun) -> None:
    """A horizon with negative edge drops to eps: it does not change sides."""
    weight, signed = rerun(net_edge=np.maximum(net_edge, 0))
    same_bits(weight, out.weight, "weight of edges raised to 0")
    same_bits(signed, out.signed, "signed of edges raised to 0")
    at_most(np.zeros_like(weight), out.weight, "0")
