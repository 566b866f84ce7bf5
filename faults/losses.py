"""Past bugs of the training losses."""

from collections.abc import Callable
from typing import Any

from trivet.properties.losses import (
    losses_bce_multi_horizon,
    losses_bce_multi_horizon_backward,
    losses_output_smoothness,
    losses_output_smoothness_backward,
)

Edit = Callable[..., Any]
ENTROPY = "trivet.impl.losses.cross_entropy"
SMOOTHNESS = "trivet.impl.losses.smoothness"


@losses_bce_multi_horizon.fault(expects=("matches_oracle",), number=8)
def only_the_first_tile_of_a_part_read(edit: Edit) -> Any:
    """The loop over a part's rows was lost: windows of up to one tile a part are right."""
    old = """for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)[:, None]
        live = (row < last) & (horizon < N)[None, :]
        place = row * N + horizon[None, :]"""
    return edit(old, old.replace("last, BLOCK_ROWS)", "first + 1, BLOCK_ROWS)"), module=ENTROPY)


@losses_bce_multi_horizon.fault(
    expects=("matches_oracle", "a_horizon_without_labels_has_loss_zero"), number=37
)
def absent_label_poisons_its_horizon(edit: Edit) -> Any:
    """A NaN label was multiplied by a zero weight in place of being left out: NaN all the same.

    Windows in the middle of a file have every label, and so had the tests.
    """
    old = "tl.where(present, _cross_entropy(logit, label), 0.0)"
    new = "_cross_entropy(logit, label) * present.to(tl.float32)"
    return edit(old, new, module=ENTROPY)


@losses_bce_multi_horizon.fault(expects=("matches_oracle",), number=37)
def absent_labels_counted(edit: Edit) -> Any:
    """The sum left absent labels out, the count did not: losses of long horizons were small."""
    old = "count += present.to(tl.int64)"
    return edit(old, "count += live.to(tl.int64)", module=ENTROPY)


@losses_bce_multi_horizon.fault(expects=("a_horizon_without_labels_has_loss_zero",), number=37)
def no_label_divides_by_zero(edit: Edit) -> Any:
    """Without any label the mean was 0 / 0, which is NaN in the sum over horizons."""
    old = "tl.store(loss + horizon, total / tl.maximum(count, 1).to(tl.float32), mask=live)"
    return edit(old, old.replace("tl.maximum(count, 1)", "count"), module=ENTROPY)


@losses_bce_multi_horizon.fault(expects=("matches_oracle",))
def softplus_overflows(edit: Edit) -> Any:
    """log(1 + exp(x)) as written: infinite from logits of 89 on, 0 below -17."""
    old = "shared = log1p(tl.exp(-tl.abs(logit)))"
    new = "shared = tl.log(1.0 + tl.exp(logit)) - tl.maximum(logit, 0.0)"
    return edit(old, new, module=ENTROPY)


@losses_bce_multi_horizon_backward.fault(expects=("matches_oracle",))
def gradient_by_subtraction(edit: Edit) -> Any:
    """p - label: for a sure and right prediction all digits cancel."""
    old = "(1.0 - label) * sigmoid(logit) - label * sigmoid(-logit)"
    return edit(old, "sigmoid(logit) - label", module=ENTROPY)


@losses_bce_multi_horizon_backward.fault(
    expects=("matches_oracle", "absent_labels_have_zero_gradient"), number=37
)
def absent_label_poisons_its_gradient(edit: Edit) -> Any:
    """The forward kernel was repaired, the backward one still computed with the NaN."""
    old = "tl.where(label == label, scale[None, :] * slope, 0.0)"
    return edit(old, "scale[None, :] * slope", module=ENTROPY)


@losses_output_smoothness.fault(expects=("stays_in_bounds", "matches_oracle"), number=22)
def one_step_too_many(edit: Edit) -> Any:
    """The last event was compared with one after the window.

    With a clamped index the difference is 0 and nothing shows; without one it is what memory held.
    """
    old = "steps = max(K - 1, 0) * B"
    return edit(old, "steps = K * B", module=SMOOTHNESS)


@losses_output_smoothness.fault(expects=("matches_oracle",))
def mean_over_events_in_place_of_steps(edit: Edit) -> Any:
    """Divided by K B where there are (K - 1) B steps; hardly to be seen in a long window."""
    old = "total / tl.maximum(steps, 1).to(tl.float32)"
    new = "total / (tl.maximum(steps, 1) + parts).to(tl.float32)"
    return edit(old, new, module=SMOOTHNESS)


@losses_output_smoothness.fault(expects=("matches_oracle",))
def mean_without_its_weight_returned_weighted(edit: Edit) -> Any:
    """The controllers were handed the weighted mean: with a weight of 0 they saw no jitter."""
    old = "tl.store(mean + horizon, average, mask=live)"
    new = "tl.store(mean + horizon, factor * average, mask=live)"
    return edit(old, new, module=SMOOTHNESS)


@losses_output_smoothness_backward.fault(expects=("stays_in_bounds",), number=22)
def neighbour_index_not_clamped(edit: Edit) -> Any:
    """Both ends read a neighbour that is not there; its term was times zero, until it was NaN."""
    old = "before = (row - B * has_before)"
    return edit(old, "before = (row - B)", module=SMOOTHNESS)


@losses_output_smoothness_backward.fault(
    expects=("matches_oracle", "gradients_sum_to_zero_over_time"), number=22
)
def last_event_wraps_round(edit: Edit) -> Any:
    """The event after the last was the first: a term that no step has."""
    old = "after = (row + B * has_after)[:, None] * N + horizon[None, :]"
    new = "after = ((row + B) % (K * B))[:, None] * N + horizon[None, :]"
    return edit(
        old + "\n    rise = here - tl.load(p + before, mask=live, other=0.0)\n"
        "    fall = here - tl.load(p + after, mask=live, other=0.0)\n"
        "    change = rise * has_before.to(tl.float32)[:, None]"
        " + fall * has_after.to(tl.float32)[:, None]",
        new + "\n    rise = here - tl.load(p + before, mask=live, other=0.0)\n"
        "    fall = here - tl.load(p + after, mask=live, other=0.0)\n"
        "    change = rise * has_before.to(tl.float32)[:, None] + fall",
        module=SMOOTHNESS,
    )


@losses_output_smoothness_backward.fault(expects=("offsets_fit",))
def rows_of_the_series_counted_in_32_bits(edit: Edit) -> Any:
    """Row times horizons wrapped beyond 2^31 elements."""
    old = "row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS"
    return edit(old, old.replace(".to(tl.int64)", ""), module=SMOOTHNESS)
