"""Past bugs of exits."""

from collections.abc import Callable
from typing import Any

from trivet.properties.exits import exits_judge, exits_levels

Edit = Callable[..., Any]
RULES = "trivet.impl.exits.rules"


@exits_judge.fault(expects=("holds_end_at_their_nanosecond", "matches_oracle"), number=33)
def hold_compared_in_milliseconds(edit: Edit) -> Any:
    """The limit was taken for milliseconds, time was in nanoseconds: no trade ever ended so."""
    old = "rule = tl.where(held >= max_hold, HOLD, STAYS)"
    return edit(old, "rule = tl.where(held // 1000000 >= max_hold, HOLD, STAYS)")


@exits_levels.fault(expects=("degradation_alone_stays_at_one_half",))
def degradation_not_halved(edit: Edit) -> Any:
    """The factor 2 went: a faded conviction closed trades by itself, and nobody had asked it to."""
    old = "tl.where(at_entry == 0.0, 1.0, at_entry)), 2.0)"
    return edit(old, old.replace("2.0)", "1.0)"))


@exits_levels.fault(expects=("matches_oracle",))
def late_entry_counts_as_faded(edit: Edit) -> Any:
    """A trade opened on a signal of 0 started out degraded: 0/1 was taken for all gone."""
    old = "degradation = tl.where(at_entry == 0.0, 0.0, faded)"
    return edit(old, "degradation = faded")


@exits_judge.fault(expects=("disagreement_fires_at_the_thirty_second_event",))
def disagreement_counted_in_thirties(edit: Edit) -> Any:
    """30 for 32: the trade ended two events early."""
    return edit("disagreement.to(tl.float32), 32.0)", "disagreement.to(tl.float32), 30.0)")


@exits_judge.fault(expects=("decay_fires_at_minus_one_alone",))
def decay_fires_before_one(edit: Edit) -> Any:
    """A composite of nearly 1 was enough."""
    return edit("level.composite >= 1.0", "level.composite >= 0.9999")


@exits_judge.fault(expects=("first_rule_wins",))
def stop_wins_over_the_composite(edit: Edit) -> Any:
    """Two rules fired at once and the later one was counted."""
    old = """\
    rule = tl.where(level.unrealised <= level.stop, STOP, rule)
    rule = tl.where(level.composite >= 1.0, COMPOSITE, rule)
"""
    new = "".join(reversed(old.splitlines(keepends=True)))
    return edit(old, new)


@exits_levels.fault(expects=("matches_oracle", "profit_is_measured_at_the_mid"))
def profit_measured_at_the_bid(edit: Edit) -> Any:
    """The bid stood for the mid: half a spread too little, for shorts too much."""
    return edit("(position * (bid + ask) - 2 * basis)", "(position * (bid + bid) - 2 * basis)")


@exits_judge.fault(expects=("stops_can_be_turned_off",))
def infinite_stop_becomes_a_tight_one(edit: Edit) -> Any:
    """Infinity was read as 'not given' and became 1."""
    old = "spread = tl.sqrt_rn(mean_var + cost * cost)"
    new = old + "\n    stop_multiple = tl.where(stop_multiple < float('inf'), stop_multiple, 1.0)"
    return edit(old, new)
