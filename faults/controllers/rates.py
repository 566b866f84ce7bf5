"""Past bugs of averages, rates and weights."""

from collections.abc import Callable
from typing import Any

from trivet.properties.controllers import (
    controllers_heads_lr_scale,
    controllers_label_deviation,
    controllers_rate_scale,
    controllers_smoothness_lambda,
    controllers_tau_change,
    controllers_wiener_ema,
)

Edit = Callable[..., Any]
SHARED = "trivet.impl.decision.averages"
AVERAGES = "trivet.impl.controllers.averages"
LABELS = "trivet.impl.controllers.labels"
MOVEMENT = "trivet.impl.controllers.movement"
RATES = "trivet.impl.controllers.rates"
SMOOTHNESS = "trivet.impl.controllers.smoothness"
BLOCK_DIAGONAL = "trivet.impl.optimiser.block_diagonal"


@controllers_wiener_ema.fault(
    expects=("constant_input_is_a_fixed_point", "a_first_observation_is_the_mean"), number=20
)
def mean_started_at_zero(edit: Edit) -> Any:
    """No bootstrap: the first observation moved a mean of 0 towards it.

    It converges, so that only the first steps of a run are wrong.
    """
    return edit("tl.where(first, x, mean),", "mean,", module=SHARED)


@controllers_wiener_ema.fault(expects=("matches_oracle",), number=21)
def variances_swapped_in_the_gain(edit: Edit) -> Any:
    """The share of changes in place of that of values: 0.59 for 0.38 on white noise."""
    old = "gain = tl.div_rn(sample_var, (sample_var + diff_var) + 1e-30)"
    return edit(old, old.replace("(sample_var, ", "(diff_var, "), module=SHARED)


@controllers_wiener_ema.fault(expects=("matches_oracle",))
def values_measured_from_the_new_mean(edit: Edit) -> Any:
    """The sample variance took the mean after its update: always too small."""
    old = "    mean = average.mean + tl.maximum(floor, gain) * off\n"
    new = old + ("    sample_var = 0.95 * average.sample_var + 0.05 * ((x - mean) * (x - mean))\n")
    return edit(old, new, module=SHARED)


@controllers_wiener_ema.fault(expects=("what_is_not_finite_leaves_the_state",))
def one_nan_for_ever(edit: Edit) -> Any:
    """A loss that overflowed once made the average NaN until the end of the run."""
    old = "counted = tl.abs(x) <= LARGEST"
    return edit(old, "counted = (tl.abs(x) <= LARGEST) | (x != x)", module=AVERAGES)


@controllers_wiener_ema.fault(expects=("what_is_not_finite_leaves_the_state",))
def infinity_taken_for_a_number(edit: Edit) -> Any:
    """Only NaN was asked for; an infinite observation left an infinite mean, then NaN."""
    return edit("counted = tl.abs(x) <= LARGEST", "counted = x == x", module=AVERAGES)


@controllers_wiener_ema.fault(expects=("matches_oracle",))
def rejections_not_counted(edit: Edit) -> Any:
    """What was passed over was passed over silently."""
    old = "passed_over + (counted == 0).to(tl.int32)"
    return edit(old, "passed_over", module=AVERAGES)


@controllers_wiener_ema.fault(expects=("gain_lies_between_floor_and_one", "matches_oracle"))
def floor_forgotten(edit: Edit) -> Any:
    """From a fresh start the gain stays above the floor: only chosen states show it."""
    return edit("tl.maximum(floor, gain) * off", "gain * off", module=SHARED)


@controllers_tau_change.fault(expects=("small_changes_keep_their_digits",))
def difference_of_logarithms(edit: Edit) -> Any:
    """log tau - log previous cancels: settled time constants looked like rounding noise."""
    old = "tl.where(growth < HUGE, near, tl.log(large) - tl.log(small))"
    return edit(old, "tl.log(large) - tl.log(small) + 0.0 * near", module=MOVEMENT)


@controllers_tau_change.fault(expects=("there_and_back_is_as_far", "matches_oracle"))
def falls_count_negative(edit: Edit) -> Any:
    """Without the absolute value changes up and down cancelled, and all had settled."""
    old = "near = log1p(tl.minimum(growth, HUGE))"
    new = "near = log1p(tl.minimum(growth, HUGE)) * tl.where(here < before, -1.0, 1.0)"
    return edit(old, new, module=MOVEMENT)


@controllers_tau_change.fault(expects=("matches_oracle",), number=8)
def only_the_first_block_of_channels_read(edit: Edit) -> Any:
    """Up to 128 channels, those of production, nothing is wrong."""
    old = "for start in range(0, H, BLOCK_CHANNELS):"
    return edit(old, "for start in range(0, BLOCK_CHANNELS, BLOCK_CHANNELS):", module=MOVEMENT)


@controllers_label_deviation.fault(expects=("matches_oracle",), number=37)
def absent_labels_counted_as_zero(edit: Edit) -> Any:
    """Labels past the end of the file, as 0, spread the others; short horizons have few."""
    old = """        count += (label == label).to(tl.int64)
    present"""
    return edit(old, old.replace("label == label", "live"), module=LABELS)


@controllers_label_deviation.fault(expects=("matches_oracle", "halves_have_half_a_deviation"))
def parts_merged_without_their_means(edit: Edit) -> Any:
    """Squares about each part's own mean were added: what the parts differ by was lost."""
    return edit(" + own * (off * off)", "", module=LABELS)


@controllers_label_deviation.fault(expects=("deviation_is_nan_without_labels_alone",))
def no_label_is_no_deviation(edit: Edit) -> Any:
    """A horizon without labels gave 0, which the average took for an observation."""
    old = 'tl.where(count > 0, spread, float("nan"))'
    return edit(old, "spread", module=LABELS)


@controllers_label_deviation.fault(expects=("matches_oracle", "halves_have_half_a_deviation"))
def deviation_of_a_sample(edit: Edit) -> Any:
    """Divided by one less than the number of labels: the sample's variance, not the window's."""
    old = "spread = tl.sqrt_rn(square / number)"
    return edit(old, "spread = tl.sqrt_rn(square / tl.maximum(number - 1.0, 1.0))", module=LABELS)


@controllers_rate_scale.fault(expects=("targets_depend_on_labels_alone",), number=16)
def target_anchored_on_the_models_own_jitter(edit: Edit) -> Any:
    """The floor came from the first jitter in place of the first deviation of the labels.

    A model that trembled at the start was allowed to for ever; consistent with itself.
    """
    old = "permanent_floor(least, spread, counted"
    return edit(old, "permanent_floor(least, change.mean, counted", module=RATES)


@controllers_rate_scale.fault(
    expects=("floors_are_permanent", "a_floor_holds_when_the_target_vanishes"), number=17
)
def floor_is_the_target_itself(edit: Edit) -> Any:
    """max(x, x / 16) is x: the floor followed the target down to 0, and the quotient went up."""
    old = "least = permanent_floor(least, spread, counted & (before.seen == 0.0))"
    new = "least = tl.where(counted, tl.maximum(aim.mean, aim.mean * 0.0625), least)"
    return edit(old, new, module=RATES)


@controllers_rate_scale.fault(expects=("unobserved_windows_update_nothing",))
def slowed_before_anything_was_seen(edit: Edit) -> Any:
    """Targets of 0 before the first labels: every first step was as good as none."""
    old = "known = (change.seen != 0.0) & (aim.seen != 0.0)"
    return edit(old, "known = aim.seen != 5.0", module=RATES)


@controllers_rate_scale.fault(expects=("matches_oracle",))
def mean_square_taken_for_its_root(edit: Edit) -> Any:
    """Jitter of 0.01 counted as 0.0001: no horizon was ever slowed."""
    old = "root = tl.sqrt_rn(tl.load(mean_square + horizon, mask=live, other=0.0))"
    new = "root = tl.load(mean_square + horizon, mask=live, other=0.0)"
    return edit(old, new, module=RATES)


@controllers_rate_scale.fault(expects=("matches_oracle",), number=42)
def rate_from_the_averages_of_before(edit: Edit) -> Any:
    """The rate was computed before the averages took the window in: late by one step."""
    old = "    known = (change.seen != 0.0) & (aim.seen != 0.0)\n"
    new = "    aim = before\n" + old
    return edit(old, new, module=RATES)


@controllers_heads_lr_scale.fault(
    expects=("what_did_not_move_stays", "the_step_is_shortened"), number=28
)
def rate_applied_to_the_weight(edit: Edit) -> Any:
    """The weight was multiplied, not its step: a decay that nobody asked for, unseen at rate 1."""
    old = "tl.where(rate == 1.0, after, before + (after - before) * rate)"
    return edit(old, "after * rate", module=BLOCK_DIAGONAL)


@controllers_heads_lr_scale.fault(expects=("a_rate_of_one_keeps_every_bit",))
def step_recomputed_at_rate_one(edit: Edit) -> Any:
    """snap + (w - snap) is not w in floating point: runs without the controller differed."""
    old = "tl.where(rate == 1.0, after, before + (after - before) * rate)"
    return edit(old, "before + (after - before) * rate", module=BLOCK_DIAGONAL)


@controllers_smoothness_lambda.fault(
    expects=("goals_fall_with_the_root_of_the_horizon", "matches_oracle"), number=15
)
def goals_fall_with_the_horizon_itself(edit: Edit) -> Any:
    """Without the root the longest horizon's goal is 200 times smaller: it was starved.

    The first horizon has the ratio 1 either way.
    """
    old = "tl.sqrt_rn(tl.div_rn(shortest, events))"
    return edit(old, "tl.div_rn(shortest, events)", module=SMOOTHNESS)


@controllers_smoothness_lambda.fault(
    expects=("floors_stay_as_first_set", "matches_oracle"), number=17
)
def floor_follows_the_goal(edit: Edit) -> Any:
    """Set anew at every step: with the goal at 0 nothing holds the quotient."""
    old = "known & (least == 0.0)"
    return edit(old, "known", module=SMOOTHNESS)


@controllers_smoothness_lambda.fault(expects=("weights_are_not_negative", "matches_oracle"))
def smooth_horizons_rewarded_for_trembling(edit: Edit) -> Any:
    """Below its goal a horizon had a negative weight, and its loss paid it to move."""
    old = "excess = excess_over(average.mean, goal, least)"
    new = "excess = tl.div_rn(average.mean - goal, tl.maximum(goal, least))"
    return edit(old, new, module=SMOOTHNESS)


@controllers_wiener_ema.fault(expects=("negating_every_input_negates_the_mean", "matches_oracle"))
def falls_followed_at_once(edit: Edit) -> Any:
    """A drop was taken whole, a rise smoothed: made for losses, and wrong for everything else."""
    old = "tl.maximum(floor, gain) * off"
    return edit(old, "tl.where(off < 0.0, 1.0, tl.maximum(floor, gain)) * off", module=SHARED)


@controllers_tau_change.fault(expects=("nothing_moved_is_no_change",))
def epsilon_in_the_change(edit: Edit) -> Any:
    """An epsilon against a division by zero that cannot be: settled constants never stood still."""
    old = "growth = (large - small) / small"
    return edit(old, "growth = (large - small) / small + 1e-7", module=MOVEMENT)


@controllers_label_deviation.fault(expects=("mirrored_labels_deviate_alike", "matches_oracle"))
def falls_taken_for_absent(edit: Edit) -> Any:
    """A label of 0 counted as none: where half the windows fall, half of them vanished."""
    old = """        count += (label == label).to(tl.int64)
    present"""
    return edit(old, old.replace("label == label", "label > 0.0"), module=LABELS)


@controllers_rate_scale.fault(expects=("rates_lie_above_zero_and_up_to_one", "matches_oracle"))
def rate_in_place_of_its_inverse(edit: Edit) -> Any:
    """1 + r, not 1 / (1 + r): the horizon that trembled most learned fastest."""
    old = "share = tl.div_rn(1.0, 1.0 + excess_over(change.mean, aim.mean, least))"
    return edit(old, "share = 1.0 + excess_over(change.mean, aim.mean, least)", module=RATES)


@controllers_rate_scale.fault(
    expects=("a_jitter_within_its_target_is_not_slowed", "matches_oracle")
)
def calm_horizons_slowed_too(edit: Edit) -> Any:
    """The distance from the target, on either side: a horizon too calm could not learn to move."""
    old = "above = tl.maximum(value - goal, 0.0)"
    return edit(old, "above = tl.abs(value - goal)", module=RATES)


@controllers_smoothness_lambda.fault(
    expects=("the_shortest_horizon_has_no_weight", "matches_oracle")
)
def goals_counted_from_the_second_horizon(edit: Edit) -> Any:
    """Ratios were taken to the longest horizon: the shortest was smoothed as well."""
    old = "shortest = tl.load(horizons).to(tl.float32)"
    return edit(
        old, "shortest = tl.load(horizons + (N - 1)).to(tl.float32) * 0.5", module=SMOOTHNESS
    )


@controllers_smoothness_lambda.fault(expects=("unseen_jitter_has_no_weight", "matches_oracle"))
def means_read_before_they_are_there(edit: Edit) -> Any:
    """What an average holds before its first observation was taken for a jitter."""
    old = "excess = tl.where(known & (average.seen != 0.0), excess, 0.0)"
    new = "excess = tl.where(known, tl.where(average.seen != 0.0, excess, 1.0), 0.0)"
    return edit(old, new, module=SMOOTHNESS)


@controllers_smoothness_lambda.fault(expects=("weights_grow_with_the_jitter", "matches_oracle"))
def excess_over_the_jitter_squared(edit: Edit) -> Any:
    """Divided by the jitter too: the more a horizon trembled, the less it was held."""
    old = "excess = excess_over(average.mean, goal, least)"
    new = old + " / tl.maximum(average.mean * average.mean, 1e-4)"
    return edit(old, new, module=SMOOTHNESS)
