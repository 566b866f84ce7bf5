"""When an open trade is given up."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, integers, log_uniform, reals
from trivet.impl import exits as kernels
from trivet.oracles import exits as oracles
from trivet.properties._expect import at_most, same_bits, same_values
from trivet.properties.decision.inputs import (
    BAD_COST,
    BLOCK,
    COST,
    PINNED,
    SIMULATIONS,
    Array,
    Rerun,
    filled,
    widened,
)
from trivet.properties.orders.inputs import COUNTS, NANOSECONDS

STAYS, COMPOSITE, STOP, HOLD = range(4)
PRICE = Tensor("S", dtypes=COUNTS, domain=integers(0, 200))
TRADE = {
    "position": Tensor("S", dtypes=NANOSECONDS, domain=integers(-50, 50)),
    "basis": Tensor("S", dtypes=NANOSECONDS, domain=integers(-10_000, 10_000)),
    "bid": PRICE,
    "ask": PRICE,
    "at_entry": Tensor("S", domain=log_uniform(1e-3, 1, zero=True)),
    "conviction": Tensor("S", domain=reals(0, 1)),
    "pnl": Tensor("S", domain=reals(-1, 1)),
    "disagreement": Tensor("S", dtypes=COUNTS, domain=integers(0, 40)),
    "mean_var": Tensor("S", domain=log_uniform(1e-3, 1e4, zero=True)),
    "cost": COST,
}
LEVELS = {name: Tensor("S") for name in ("unrealised", "composite", "stop")}
BAD = (
    *BAD_COST,
    (ValueError, "stop_multiple", filled("stop_multiple", 0.0)),
    (ValueError, "mean_var", filled("mean_var", np.nan)),
    (TypeError, "conviction", widened("conviction")),
)

exits_levels = Contract(
    kernel=kernels.levels_of,
    oracles=[oracles.levels, oracles.levels_scalar],
    dims=SIMULATIONS,
    args={**TRADE, "stop_multiple": Tensor("S", domain=log_uniform(0.1, 10)), "block": BLOCK},
    outputs=LEVELS,
    raises=BAD,
)


@exits_levels.law
def degradation_alone_stays_at_one_half(
    out: Any, conviction: Array, pnl: Array, rerun: Rerun
) -> None:
    """A conviction that is all gone gives 1/2: degradation never fires alone."""
    quiet = {"pnl": np.abs(pnl), "conviction": np.zeros_like(conviction)}
    faded = rerun(disagreement=np.zeros(len(pnl), np.int64), **quiet)
    at_most(faded.composite, np.full_like(faded.composite, 0.5), "composite of degradation")


@exits_levels.law
def profit_is_measured_at_the_mid(
    out: Any, position: Array, basis: Array, bid: Array, ask: Array
) -> None:
    """unrealised is position times mid less basis, without costs; exact on small numbers."""
    wanted = position * (bid + ask) / 2 - basis
    same_values(out.unrealised, wanted, "unrealised")


@exits_levels.law
def stops_grow_with_size_and_multiple(
    out: Any, position: Array, stop_multiple: Array, rerun: Rerun
) -> None:
    """Twice the position, or twice the multiple, doubles the stop, bitwise."""
    same_bits(rerun(position=2 * position).stop, 2 * out.stop, "stop of twice the position")
    wider = rerun(stop_multiple=2 * stop_multiple)
    same_bits(wider.stop, 2 * out.stop, "stop of twice the multiple")


def sometimes_off(values: Array) -> Array:
    """Every fifth stop turned off."""
    return np.asarray(np.where(np.arange(values.size) % 5 == 3, np.inf, values))


exits_judge = Contract(
    kernel=kernels.judge,
    oracles=[oracles.judge],
    dims=SIMULATIONS,
    args={
        **TRADE,
        "held": Tensor("S", dtypes=NANOSECONDS, domain=integers(0, 20)),
        "stop_multiple": Tensor("S", domain=log_uniform(0.1, 10).map(sometimes_off)),
        "max_hold": Tensor("S", dtypes=NANOSECONDS, domain=integers(1, 20)),
        "block": BLOCK,
    },
    outputs={**LEVELS, "reason": Tensor("S", dtypes=COUNTS)},
    raises=(*BAD, (ValueError, "max_hold", filled("max_hold", 0))),
)
exits_judge.without("logic_matches", PINNED)


@exits_judge.law
def disagreement_fires_at_the_thirty_second_event(
    position: Array, conviction: Array, at_entry: Array, pnl: Array, rerun: Rerun
) -> None:
    """31 events in a row do not fire, 32 do, whatever else is quiet."""
    count = np.ones(len(position), np.int64)
    quiet = {"conviction": at_entry, "pnl": np.abs(pnl), "held": 0 * count}
    quiet |= {"stop_multiple": np.full(len(position), np.inf)}
    before, after = (rerun(disagreement=n * count, **quiet) for n in (31, 32))
    same_values(before.reason, 0 * count, "reason after 31 events")
    same_values(after.reason, np.where(position != 0, COMPOSITE, STAYS), "reason after 32")


@exits_judge.law
def decay_fires_at_minus_one_alone(position: Array, at_entry: Array, rerun: Rerun) -> None:
    """An average of -1 fires, the next float32 above it does not."""
    quiet = {"conviction": at_entry, "disagreement": np.zeros(len(position), np.int64)}
    quiet |= {"held": np.zeros(len(position), np.int64)}
    quiet |= {"stop_multiple": np.full(len(position), np.inf)}
    worst, nearly = (
        rerun(pnl=np.full(len(position), low), **quiet) for low in (-1.0, -1.0 + 2.0**-24)
    )
    same_values(worst.reason, np.where(position != 0, COMPOSITE, STAYS), "reason at -1")
    same_values(nearly.reason, np.zeros(len(position)), "reason just above -1")


@exits_judge.law
def stops_can_be_turned_off(position: Array, rerun: Rerun) -> None:
    """An infinite multiple never stops."""
    out = rerun(stop_multiple=np.full(len(position), np.inf))
    same_values(out.reason == STOP, np.zeros(len(position)), "stops")


@exits_judge.law
def holds_end_at_their_nanosecond(
    position: Array, at_entry: Array, pnl: Array, max_hold: Array, rerun: Rerun
) -> None:
    """At max_hold a trade ends, one nanosecond before it goes on; a day has all its digits."""
    day = 86_400_000_000_000
    none = np.zeros(len(position), np.int64)
    quiet = {"conviction": at_entry, "disagreement": none, "pnl": np.abs(pnl)}
    quiet |= {"stop_multiple": np.full(len(position), np.inf), "max_hold": max_hold + day}
    early, late = (rerun(held=max_hold + day - n, **quiet) for n in (1, 0))
    same_values(early.reason, none, "reason a nanosecond early")
    same_values(late.reason, np.where(position != 0, HOLD, STAYS), "reason at max_hold")


@exits_judge.law
def first_rule_wins(out: Any, position: Array, held: Array, max_hold: Array) -> None:
    """Composite before stop before hold; no rule without a position."""
    late = np.where(held >= max_hold, HOLD, STAYS)
    rule = np.where(out.unrealised <= out.stop, STOP, late)
    rule = np.where(out.composite >= 1, COMPOSITE, rule)
    same_values(out.reason, np.where(position != 0, rule, STAYS), "reason")
