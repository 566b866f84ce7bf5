"""Past bugs of the decision."""

from collections.abc import Callable
from typing import Any

from trivet.properties.decision import decision_follow, decision_smooth, decision_weighted

Edit = Callable[..., Any]
AVERAGES = "trivet.impl.decision.averages"
SIGNALS = "trivet.impl.decision.signals"
STREAMS = "trivet.impl.decision.streams"


@decision_follow.fault(
    expects=("weaker_signals_never_enlarge_the_target", "target_keeps_within_the_range_seen"),
    number=10,
)
def target_multiplied_by_conviction_over_signal(edit: Edit) -> Any:
    """The smoothed size was scaled once more, by conviction over the signal of the moment.

    The author took the average for a running maximum: after a strong past a signal thirty times
    weaker gave a target thirty times larger. Steady signals have a factor of 1.
    """
    old = "lots = round_half_even((sign(signed) * conviction) * most)"
    factor = "tl.div_rn(conviction, tl.maximum(tl.abs(signed), 1e-6))"
    new = f"lots = round_half_even(((sign(signed) * conviction) * {factor}) * most)"
    return edit(old, new, module=SIGNALS)


@decision_follow.fault(expects=("disagreeing_horizons_hold_nothing",), number=11)
def magnitudes_summed_without_direction(edit: Edit) -> Any:
    """Size came from the sum of magnitudes, the side from the strongest horizon alone.

    Horizons that disagree still traded. Streams in which all agree look right.
    """
    old = "signed = tl.minimum(tl.maximum(tl.div_rn(above, below), -1.0), 1.0)"
    new = (
        "above = tl.sum(tl.where(column[None, :] < N, strength, 0.0), axis=1)"
        " * sign(pick(q, column, 0))\n    " + old
    )
    return edit(old, new, module=SIGNALS)


@decision_follow.fault(expects=("missing_probabilities_count_as_one_half",), number=37)
def missing_probability_reaches_the_average(edit: Edit) -> Any:
    """One NaN and the average of its horizon, and every signal after it, stayed NaN.

    Test data had no gaps.
    """
    return edit("tl.where(missing, 0.0, p - 0.5)", "p - 0.5", module=STREAMS)


@decision_follow.fault(expects=("ties_go_to_the_even_target",), number=46)
def target_rounded_half_up(edit: Edit) -> Any:
    """Ties went up, so that a long target of 2.5 lots was 3 and a short one 2.

    Random convictions never tie; round ones with an odd number of lots do.
    """
    old = "up = (part > 0.5) | ((part == 0.5) & (odd == 1.0))"
    return edit(old, "up = part >= 0.5", module=SIGNALS)


@decision_follow.fault(expects=("matches_oracle",), number=46)
def target_truncated(edit: Edit) -> Any:
    """The target was cut off towards zero: up to one lot short, on small sizes half of it."""
    old = "lots = round_half_even((sign(signed) * conviction) * most)"
    new = "lots = tl.floor(conviction * most) * sign(signed)"
    return edit(old, new, module=SIGNALS)


@decision_follow.fault(expects=("mirrored_probabilities_mirror_the_target",), number=47)
def average_kept_of_p_itself(edit: Edit) -> Any:
    """The average ran on p, and 0.5 was taken off after it.

    Right within rounding, but 1 - p no longer mirrors p: a buy bias of an ulp, which ties turn
    into lots.
    """
    old = """\
    change = x - average.last
    off = x - average.mean
"""
    new = """\
    change = (x + 0.5) - (average.last + 0.5)
    off = (x + 0.5) - (average.mean + 0.5)
"""
    return edit(old, new, module=AVERAGES)


# ------------------------------------------------------------------------------ smaller slips


@decision_smooth.fault(expects=("matches_oracle", "constant_input_is_a_fixed_point"))
def first_observation_is_no_start(edit: Edit) -> Any:
    """Averages started at 0 and crept up: the first signals were too small."""
    return edit("first = average.seen == 0.0", "first = average.seen < 0.0", module=AVERAGES)


@decision_smooth.fault(expects=("matches_oracle",))
def floor_added_to_the_gain(edit: Edit) -> Any:
    """The floor was added where it should have been the least: close while gains are small."""
    old = "mean = average.mean + tl.maximum(floor, gain) * off"
    return edit(old, "mean = average.mean + (floor + gain) * off", module=AVERAGES)


@decision_smooth.fault(expects=("mean_stays_between_itself_and_the_input",))
def gain_over_one(edit: Edit) -> Any:
    """The variance of changes alone divided: the mean overshot the input on trends."""
    old = "gain = tl.div_rn(sample_var, (sample_var + diff_var) + 1e-30)"
    return edit(old, "gain = tl.div_rn(sample_var, diff_var + 1e-30)", module=AVERAGES)


@decision_weighted.fault(expects=("negative_edges_count_as_the_least",))
def losing_horizon_weighed_by_the_size_of_its_loss(edit: Edit) -> Any:
    """The edge's size was taken in place of its positive part: losers got the largest weights."""
    return edit(
        "tl.maximum(net_edge, least)", "tl.maximum(tl.abs(net_edge), least)", module=SIGNALS
    )


@decision_weighted.fault(expects=("scaling_all_weights_by_two_changes_no_bit",))
def least_edge_fixed(edit: Edit) -> Any:
    """The least edge was a constant, not a share of the cost: the unit of money mattered."""
    return edit("least = (0.01 * cost)[:, None]", "least = 0.01", module=SIGNALS)


@decision_weighted.fault(expects=("signal_lies_within_one",))
def signal_left_unclamped(edit: Edit) -> Any:
    """A quotient of two rounded sums passes 1 by an ulp where all horizons agree."""
    old = "signed = tl.minimum(tl.maximum(tl.div_rn(above, below), -1.0), 1.0)"
    return edit(old, "signed = tl.div_rn(above, below) * (1.0 + 1.2e-7)", module=SIGNALS)


@decision_follow.fault(expects=("matches_oracle",))
def horizons_summed_from_the_last(edit: Edit) -> Any:
    """Another order of the sum: within every bound, but sometimes another target by a lot."""
    old = "term = pick(terms, column, h)"
    return edit(old, "term = pick(terms, column, N - 1 - h)", module=SIGNALS)


@decision_follow.fault(expects=("streams_can_be_cut_anywhere",))
def averages_not_carried_to_the_next_launch(edit: Edit) -> Any:
    """The conviction's average was read and never written back: each launch began anew."""
    old = "    store_average(conviction_average, simulation, S, smoothed, live)\n"
    return edit(old, "", module=STREAMS)
