"""A stream of probabilities: signals, convictions and targets, event by event."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, reals
from trivet.impl import decision as kernels
from trivet.oracles import decision as oracles
from trivet.properties._expect import at_most, interval, same_bits, same_values
from trivet.properties.decision.formulas import cancelling
from trivet.properties.decision.inputs import (
    BAD_COST,
    BLOCK,
    COST,
    EDGE,
    EVENTS,
    FLOOR,
    HORIZONS,
    LOTS,
    PINNED,
    PROBABILITIES,
    SIMULATIONS,
    THRESHOLD,
    VAR,
    Array,
    Rerun,
    as_averages,
    filled,
    widened,
)

AVERAGES = reals(-0.5, 0.5).map(as_averages)
decision_follow = Contract(
    kernel=kernels.follow,
    oracles=[oracles.follow],
    dims=SIMULATIONS | EVENTS | HORIZONS,
    args={
        "p": PROBABILITIES,
        "net_edge": EDGE,
        "var": VAR,
        "cost": COST,
        "threshold": THRESHOLD,
        "max_lots": LOTS,
        "horizon_floor": FLOOR,
        "conviction_floor": FLOOR,
        "horizon_average": Tensor("5 S N", domain=AVERAGES, role="inout"),
        "conviction_average": Tensor(
            "5 S", domain=AVERAGES.map(lambda rows: np.abs(rows)), role="inout"
        ),
        "block": BLOCK,
    },
    outputs={
        "q": Tensor("E S N"),
        "signed": Tensor("E S"),
        "conviction": Tensor("E S"),
        "target": Tensor("E S", dtypes=("int32",)),
        "missing": Tensor("S", dtypes=("int64",)),
    },
    raises=(
        *BAD_COST,
        (ValueError, "p", filled("p", 1.5)),
        (ValueError, "p", filled("p", np.inf)),
        (ValueError, "max_lots", filled("max_lots", 0)),
        (ValueError, "max_lots", filled("max_lots", (1 << 20) + 1)),
        (ValueError, "horizon_floor", filled("horizon_floor", -0.5)),
        (ValueError, "threshold", filled("threshold", np.nan)),
        (TypeError, "max_lots", widened("max_lots")),
    ),
)
decision_follow.without("logic_matches", PINNED)
MEAN_AND_LAST = np.array([-1, 1, 1, -1, 1])


@decision_follow.law
def mirrored_probabilities_mirror_the_target(
    p: Array, horizon_average: Array, rerun: Rerun
) -> None:
    """1 - p in place of p negates q and target and leaves the conviction alone, bitwise.

    For p a multiple of 2^-24: elsewhere 1 - p is inexact.
    """
    grid = np.round(p * 2.0**24) / 2.0**24
    once = rerun(p=grid)
    mirrored = MEAN_AND_LAST.reshape(5, 1, 1) * horizon_average
    again = rerun(p=1 - grid, horizon_average=mirrored)
    same_values(again.q, -once.q, "q of 1 - p")
    same_bits(again.conviction, once.conviction, "conviction of 1 - p")
    same_bits(again.target, -once.target, "target of 1 - p")


@decision_follow.law
def disagreeing_horizons_hold_nothing(
    p: Array, net_edge: Array, horizon_average: Array, conviction_average: Array, rerun: Rerun
) -> None:
    """Alternating directions of equal weight have the target 0 from the first event on."""
    equal = np.ones_like(net_edge)
    fresh = {
        "horizon_average": np.zeros_like(horizon_average),
        "conviction_average": np.zeros_like(conviction_average),
    }
    again = rerun(p=0.5 + cancelling(p.shape), net_edge=equal, var=equal, **fresh)
    same_values(again.target, np.zeros_like(again.target), "target of cancelling horizons")


@decision_follow.law
def ties_go_to_the_even_target(
    p: Array,
    net_edge: Array,
    max_lots: Array,
    horizon_average: Array,
    conviction_average: Array,
    threshold: Array,
    rerun: Rerun,
) -> None:
    """A steady conviction of 1/2 holds half of max_lots, rounded to even, on either side."""
    equal = np.ones_like(net_edge)
    fresh = {
        "horizon_average": np.zeros_like(horizon_average),
        "conviction_average": np.zeros_like(conviction_average),
        "threshold": np.zeros_like(threshold),
    }
    odd = 2 * (max_lots // 4) + 1
    for side in (1, -1):
        steady = np.full(p.shape, 0.5 + side * 0.25)
        again = rerun(p=steady, net_edge=equal, var=equal, max_lots=odd, **fresh)
        wanted = np.broadcast_to(side * np.round(odd / 2), again.target.shape)
        same_values(again.target, wanted, "target at a tie")


@decision_follow.law
def target_keeps_within_the_lots_allowed(out: Any, max_lots: Array) -> None:
    """|target| <= max_lots."""
    at_most(np.abs(out.target), np.broadcast_to(max_lots, out.target.shape), "|target|")


@decision_follow.law
def target_keeps_within_the_range_seen(
    out: Any, max_lots: Array, conviction_average: Array
) -> None:
    """Neither conviction nor target exceeds what the largest signal so far allows.

    A mean moves by a gain of at most 1 times x - mean: three roundings, each of a number of at
    most 1. The target then lies within half a lot of max_lots times the conviction.
    """
    start = np.where(conviction_average[4] == 0, 0, conviction_average[0])
    strongest = np.maximum.accumulate(np.concatenate([start[None], np.abs(out.signed)]))[1:]
    limit = strongest + 3 * np.spacing(np.float32(0.5))
    at_most(out.conviction, limit, "conviction")
    lots = max_lots * limit
    at_most(np.abs(out.target), lots + 0.5 + max_lots * np.spacing(np.float32(0.5)), "|target|")


@decision_follow.law
def weaker_signals_never_enlarge_the_target(
    p: Array, max_lots: Array, conviction_average: Array, conviction_floor: Array, rerun: Rerun
) -> None:
    """From one state a smaller |signed| gives neither a larger conviction nor a larger |target|.

    Within the bound of the average, and away from rounding ties.
    """
    strong = rerun(p=p[:1])
    weak = rerun(p=0.5 + (np.nan_to_num(p[:1], nan=0.5) - 0.5) / 4)
    smaller = np.abs(weak.signed) <= np.abs(strong.signed)
    slack = np.zeros(len(max_lots))
    for signed in (weak.signed, strong.signed):
        for x in np.abs(signed):
            slack = (
                slack
                + interval(_mean_alone, x=x, average=conviction_average, floor=conviction_floor)[1]
            )
    slack = slack + 2 * np.spacing(np.float32(0.5))
    limit = np.where(smaller, strong.conviction + slack, np.inf)
    at_most(weak.conviction, limit, "conviction of the weaker signal")
    lots = np.where(smaller, np.abs(strong.target) + max_lots * slack + 1, np.inf)
    at_most(np.abs(weak.target), lots, "|target| of the weaker signal")


def _mean_alone(m: Any, x: Any, average: Any, floor: Any) -> Any:
    return oracles.smooth(m, x, average, floor)[0]


@decision_follow.law
def missing_probabilities_count_as_one_half(out: Any, p: Array, rerun: Rerun) -> None:
    """NaN changes nothing but the count of what was missing."""
    again = rerun(p=np.nan_to_num(p, nan=0.5))
    for name in ("q", "signed", "conviction", "target"):
        same_bits(getattr(again, name), getattr(out, name), f"{name} without NaN")
    same_values(out.missing, np.asarray(np.isnan(p).sum()), "missing")
    same_values(again.missing, np.zeros(1), "missing without NaN")


@decision_follow.law
def streams_can_be_cut_anywhere(out: Any, p: Array, E: int, rerun: Rerun) -> None:
    """Two launches with the averages carried over give what one gives, bitwise."""
    cut = E // 3
    first = rerun(p=p[:cut])
    carried = {
        "horizon_average": first.horizon_average,
        "conviction_average": first.conviction_average,
    }
    second = rerun(p=p[cut:], **carried)
    for name in ("q", "signed", "conviction", "target"):
        whole = np.concatenate([getattr(first, name), getattr(second, name)])
        same_bits(whole, getattr(out, name), f"{name} of two launches")
    same_bits(second.horizon_average, out.horizon_average, "horizon_average of two launches")
    same_bits(second.conviction_average, out.conviction_average, "conviction_average")


@decision_follow.law
def permuting_simulations_permutes_results(
    out: Any,
    net_edge: Array,
    var: Array,
    cost: Array,
    threshold: Array,
    max_lots: Array,
    horizon_floor: Array,
    conviction_floor: Array,
    horizon_average: Array,
    conviction_average: Array,
    rerun: Rerun,
) -> None:
    """Simulations do not see each other."""
    again = rerun(
        net_edge=net_edge[::-1],
        var=var[::-1],
        cost=cost[::-1],
        threshold=threshold[::-1],
        max_lots=max_lots[::-1],
        horizon_floor=horizon_floor[::-1],
        conviction_floor=conviction_floor[::-1],
        horizon_average=horizon_average[:, ::-1],
        conviction_average=conviction_average[:, ::-1],
    )
    for name in ("q", "signed", "conviction", "target"):
        same_bits(getattr(again, name)[:, ::-1], getattr(out, name), f"{name} of the others' order")
