"""Past bugs of bucket routing."""

from collections.abc import Callable
from typing import Any

import torch

from trivet.impl.routing import RoutingRecord, heads_compact, tau_clamp
from trivet.properties.routing import (
    routing_bucket_assign,
    routing_bucket_iqr,
    routing_channels_in_bucket,
    routing_grad_mask_apply,
    routing_heads_compact,
    routing_iqr_double_widen,
    routing_iqr_widen,
    routing_mask_init,
    routing_tau_clamp,
    routing_tau_sort,
    routing_zero_off_bucket,
)

Edit = Callable[..., Any]
ASSIGNMENT = "trivet.impl.routing.assignment"
RANGES = "trivet.impl.routing.ranges"
WEIGHTS = "trivet.impl.routing.weights"


@routing_tau_clamp.fault(
    expects=("each_channel_lies_in_its_own_buckets_range", "matches_oracle"), number=1
)
def tau_regrouped_while_bucket_of_is_by_channel(
    tau: torch.Tensor,
    bucket_of: torch.Tensor,
    lo: torch.Tensor,
    hi: torch.Tensor,
    block_channels: int = 128,
) -> torch.Tensor:
    """Tau was sorted by bucket, bucket_of was not: channels were clamped to strangers' ranges.

    All buckets ended up with nearly the same range and nothing looked broken; with contiguous
    buckets, as tests had them, regrouping moves nothing.
    """
    order = torch.argsort(bucket_of, stable=True)
    clamped = torch.empty_like(tau)
    clamped[order] = tau_clamp(tau[order], bucket_of, lo, hi, block_channels=block_channels)
    return clamped


@routing_bucket_iqr.fault(expects=("stays_in_bounds",), number=24)
def lanes_beyond_the_last_channel_counted_up_to_32(edit: Edit) -> Any:
    """Buckets of 28 were reduced over 32 lanes: the last four held whatever memory did.

    With a number of channels that is a multiple of 32 there are no such lanes.
    """
    old = "inside = other_channel < H"
    return edit(old, "inside = other_channel < (H + 31) // 32 * 32", module=RANGES)


@routing_bucket_iqr.fault(expects=("ignores_masked_lanes",), number=24)
def stale_lanes_take_part_in_the_ranking(edit: Edit) -> Any:
    """Lanes past the end counted as members, with what an earlier tile had left in them.

    The result depends on old memory: it is right whenever that sorts behind every channel, and the
    simulator, which fills such lanes with zeros in tests, shows it at once.
    """
    old = """\
            mates = tl.load(bucket_of + other_channel, mask=inside, other=-1) == bucket
            # Infinity sorts after every member, so other channels count nothing.
            others = tl.load(tau + other_channel, mask=inside, other=0.0)
"""
    new = """\
            mates = tl.load(bucket_of + other_channel, mask=inside, other=bucket) == bucket
            others = -tl.load(tau + other_channel, mask=inside)
            others = -others
"""
    return edit(old, new, module=RANGES)


@routing_iqr_double_widen.fault(expects=("other_buckets_keep_their_bits",), number=26)
def every_bucket_widened(edit: Edit) -> Any:
    """The doubling forgot which bucket had fallen silent: the neighbours' ranges loosened too.

    No range is wrong by itself, and with one bucket nothing is. A test that compares all of them,
    not bucket k alone, sees it.
    """
    return edit("tl.where(bucket == chosen, low * 0.5, low)", "low * 0.5", module=RANGES)


@routing_heads_compact.fault(
    expects=("matches_oracle", "unpacking_gives_the_own_weights_back"), number=2
)
def weights_packed_from_the_slots_position(edit: Edit) -> Any:
    """The row was read at the position in the bucket, not at the original channel.

    Finite weights of other channels look like noise; with one bucket, or equal columns, the two
    positions agree. Tests with several buckets see it.
    """
    old = "weight = tl.load(w_skip + bucket * H + channel, mask=live)"
    new = "weight = tl.load(w_skip + bucket * H + slot, mask=live & (slot < H))"
    return edit(old, new, module=WEIGHTS)


@routing_heads_compact.fault(expects=("rejects_bad_input",), number=5)
def record_trusted_without_a_look(
    w_skip: torch.Tensor, table: torch.Tensor | RoutingRecord, block_slots: int = 128
) -> tuple[torch.Tensor, torch.Tensor]:
    """The consumer took the record's table as it was: of a record never filled, nothing at all.

    No weight was packed and no error raised; tests hand over tables that are right.
    """
    slots = table.table if isinstance(table, RoutingRecord) else table
    return heads_compact(w_skip, slots, block_slots=block_slots)


@routing_grad_mask_apply.fault(
    expects=("masked_out_is_plus_zero", "propagates_nonfinite"), number=49
)
def gradient_multiplied_by_the_mask(edit: Edit) -> Any:
    """Zero times a gradient is not zero: Inf and NaN give NaN, negative ones -0.0.

    Finite positive gradients pass, and comparisons that take -0.0 for 0.0 pass all finite ones.
    """
    return edit("tl.where(kept, value, 0.0)", "value * kept.to(tl.float32)", module=WEIGHTS)


# ------------------------------------------------------------------------------ smaller slips


@routing_tau_sort.fault(expects=("ties_keep_the_order_of_channels",))
def ties_sorted_from_the_back(edit: Edit) -> Any:
    """Of equal time constants the later channel went first; random ones never tie."""
    old = "before = other_channel[None, :] < channel[:, None]"
    return edit(old, old.replace("<", ">"), module=ASSIGNMENT)


@routing_tau_sort.fault(expects=("order_is_a_permutation",))
def ties_share_a_place(edit: Edit) -> Any:
    """Equal time constants counted the same channels before them: one place twice, one never."""
    return edit("(smaller | (equal & before))", "smaller", module=ASSIGNMENT)


@routing_tau_sort.fault(expects=("scaling_by_a_power_of_two_keeps_the_order",))
def nearly_equal_taken_for_equal(edit: Edit) -> Any:
    """A microsecond's tolerance in the comparison: short time constants lose their order."""
    old = "smaller = others[None, :] < value[:, None]"
    return edit(old, "smaller = others[None, :] + 1e-6 < value[:, None]", module=ASSIGNMENT)


@routing_bucket_assign.fault(
    expects=("sizes_sum_to_the_channels_and_differ_by_one", "buckets_are_runs_of_the_order")
)
def last_buckets_said_to_hold_one_more(edit: Edit) -> Any:
    """Sizes gave the spare channels to the last buckets, bucket_of to the first ones."""
    return edit("(bucket < larger_buckets)", "(bucket >= N - larger_buckets)", module=ASSIGNMENT)


@routing_channels_in_bucket.fault(expects=("table_and_bucket_of_determine_each_other",))
def chunks_listed_over_each_other(edit: Edit) -> Any:
    """Each chunk of channels started where the one before did, not where it ended."""
    old = "slot = listed + tl.cumsum(member.to(tl.int32), axis=0) - 1"
    return edit(old, old.replace("listed + ", ""), module=ASSIGNMENT)


@routing_channels_in_bucket.fault(expects=("rows_ascend_and_then_hold_minus_one",))
def unused_slots_hold_channel_zero(edit: Edit) -> Any:
    """Unused slots were filled with 0, a channel; full buckets have none."""
    return edit("tl.store(row + slot, -1, mask", "tl.store(row + slot, 0, mask", module=ASSIGNMENT)


@routing_bucket_iqr.fault(expects=("quartiles_lie_among_their_buckets_own",))
def first_quartile_counted_from_the_back(edit: Edit) -> Any:
    """The lower quartile of the descending order: with ties, or up to two channels, no matter."""
    return edit("under_q1 = last // 4", "under_q1 = last - last // 4", module=RANGES)


@routing_bucket_iqr.fault(
    expects=("quartiles_scale_by_powers_of_two", "equal_channels_are_their_own_quartiles")
)
def quartile_held_above_a_microsecond(edit: Edit) -> Any:
    """A floor against division by zero, where there is no zero: in production it never shows."""
    old = "low1 + past_q1 * (high1 - low1)"
    return edit(old, f"tl.maximum({old}, 1e-6)", module=RANGES)


@routing_iqr_widen.fault(expects=("ranges_hold_their_quartiles",))
def lower_end_raised(edit: Edit) -> Any:
    """The slack multiplied both quartiles: the range moved in place of growing."""
    return edit("tl.div_rn(first, slack)", "first * slack", module=RANGES)


@routing_iqr_widen.fault(
    expects=("equal_quartiles_are_not_widened", "ranges_scale_by_powers_of_two")
)
def epsilon_under_the_quotient(edit: Edit) -> Any:
    """An epsilon against an empty bucket narrowed the range of every short one."""
    return edit("tl.div_rn(third, first)", "tl.div_rn(third, first + 1e-6)", module=RANGES)


@routing_tau_clamp.fault(expects=("clamping_twice_is_clamping_once",))
def pulled_half_way(edit: Edit) -> Any:
    """Channels beyond the range moved half-way to it: each step clamps a little more."""
    old = "value = tl.where(value > high, high, value)"
    return edit(old, old.replace("high, value", "0.5 * (high + value), value"), module=RANGES)


@routing_mask_init.fault(expects=("every_channel_is_in_its_one_bucket",))
def mask_of_this_and_earlier_buckets(edit: Edit) -> Any:
    """A comparison let the shorter horizons' channels in; the first bucket's mask is right."""
    old = "mask=channel < H, other=-1) == bucket"
    return edit(old, old.replace("==", "<="), module=WEIGHTS)


@routing_zero_off_bucket.fault(expects=("off_bucket_is_plus_zero",))
def off_bucket_multiplied_by_zero(edit: Edit) -> Any:
    """Zeroed by a product: negative weights leave -0.0 behind, Inf leaves NaN."""
    old = "tl.store(buffer + bucket * H + channel, 0.0, mask=off_bucket)"
    new = """\
entry = buffer + bucket * H + channel
    tl.store(entry, 0.0 * tl.load(entry, mask=off_bucket), mask=off_bucket)"""
    return edit(old, new, module=WEIGHTS)
