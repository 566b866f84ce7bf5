"""Past bugs of the counters."""

from collections.abc import Callable
from typing import Any

from trivet.properties.diagnosis import diagnosis_count, diagnosis_settle

Edit = Callable[..., Any]
COUNTERS = "trivet.impl.diagnosis.counters"
STREAMS = "trivet.impl.diagnosis.streams"


@diagnosis_count.fault(expects=("convictions_fall_in_their_tenth", "matches_oracle"), number=35)
def last_bin_open_at_one(edit: Edit) -> Any:
    """A conviction of exactly 1 went one bin further, into the next counter's memory.

    A conviction reaches 1 only when all horizons are certain, so no stream of noise does.
    """
    old = "tl.minimum(tl.floor(x * 10.0).to(tl.int64), 9)"
    return edit(old, "tl.minimum(tl.floor(x * 10.0).to(tl.int64), 10) % 10", module=COUNTERS)


@diagnosis_count.fault(expects=("run_lengths_add_up_to_the_events",), number=35)
def ended_run_one_event_too_long(edit: Edit) -> Any:
    """The event that ends a run was counted in both runs: totals off by one a flip."""
    old = "runs.total + tl.where(flips, runs.length, 0)"
    return edit(old, "runs.total + tl.where(flips, runs.length + 1, 0)", module=COUNTERS)


@diagnosis_count.fault(expects=("long_runs_reach_their_bins",), number=35)
def run_bins_closed_on_the_wrong_side(edit: Edit) -> Any:
    """Runs of 10000 events stood under 1k-9999."""
    return edit("(length >= 10000)", "(length > 10000)", module=COUNTERS)


@diagnosis_count.fault(expects=("streams_are_told_apart",), number=41)
def both_counters_read_the_raw_stream(edit: Edit) -> Any:
    """The smoothed counters were fed with the raw stream: both lines plausible, and equal."""
    old = "smooth_runs = advance(smooth_runs, second, smooth_bins"
    return edit(old, "smooth_runs = advance(smooth_runs, first, smooth_bins", module=STREAMS)


@diagnosis_settle.fault(expects=("hold_edges_belong_to_the_upper_bin",), number=35)
def hold_edges_in_the_lower_bin(edit: Edit) -> Any:
    """A trade held for exactly ten seconds was counted with the shorter ones."""
    return edit("(held >= 10_000_000_000)", "(held > 10_000_000_000)", module=COUNTERS)


# ------------------------------------------------------------------------------ smaller slips


@diagnosis_count.fault(expects=("flips_are_changes_of_sign",))
def rests_end_a_run(edit: Edit) -> Any:
    """A direction of 0 was a direction of its own: quiet streams flipped twice a rest."""
    old = "flips = known & (direction != 0) & (direction != runs.direction)"
    return edit(old, "flips = known & (direction != runs.direction)", module=COUNTERS)


@diagnosis_count.fault(expects=("streams_can_be_cut_anywhere",))
def smoothed_runs_not_carried_to_the_next_launch(edit: Edit) -> Any:
    """The smoothed stream's open run was read and never written back: each launch began anew."""
    old = "    store_runs(runs + 4 * step, place, step, smooth_runs, inside)\n"
    return edit(old, "", module=STREAMS)


@diagnosis_settle.fault(expects=("closed_trades_are_counted_once",))
def break_even_counts_as_a_win(edit: Edit) -> Any:
    """A loss was a loss only when it was not counted as a win: the sign was never asked."""
    return edit("closes & (profit > 0.0)", "closes", module=COUNTERS)


@diagnosis_settle.fault(expects=("open_trades_change_nothing",))
def open_trades_add_their_profit(edit: Edit) -> Any:
    """The sum of profits was updated at every event, closed or not."""
    old = """\
    before = tl.load(outcome_profit + place, mask=closes, other=0.0)
    tl.store(outcome_profit + place, before + profit, mask=closes)
"""
    new = old.replace("mask=closes", "mask=simulation < S")
    return edit(old, new, module=COUNTERS)
