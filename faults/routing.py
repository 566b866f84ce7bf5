"""Past bugs of bucket routing."""

from collections.abc import Callable
from typing import Any

import torch

from trivet.impl.routing import tau_clamp
from trivet.properties.routing import (
    routing_bucket_iqr,
    routing_grad_mask_apply,
    routing_heads_compact,
    routing_iqr_double_widen,
    routing_tau_clamp,
)

Edit = Callable[..., Any]
RANGES = "trivet.impl.routing.ranges"
WEIGHTS = "trivet.impl.routing.weights"


@routing_tau_clamp.fault(
    expects=("each_channel_lies_in_its_own_buckets_range", "matches_oracle"), number=1
)
def tau_regrouped_while_bucket_of_is_by_channel(
    tau: torch.Tensor, bucket_of: torch.Tensor, lo: torch.Tensor, hi: torch.Tensor
) -> torch.Tensor:
    """Tau was sorted by bucket, bucket_of was not: channels were clamped to strangers' ranges.

    All buckets ended up with nearly the same range and nothing looked broken; with contiguous
    buckets, as tests had them, regrouping moves nothing.
    """
    order = torch.argsort(bucket_of, stable=True)
    clamped = torch.empty_like(tau)
    clamped[order] = tau_clamp(tau[order], bucket_of, lo, hi)
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

    The result depends on old memory: it is right whenever that sorts behind every channel.
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


@routing_grad_mask_apply.fault(
    expects=("masked_out_is_plus_zero", "propagates_nonfinite"), number=49
)
def gradient_multiplied_by_the_mask(edit: Edit) -> Any:
    """Zero times a gradient is not zero: Inf and NaN give NaN, negative ones -0.0.

    Finite positive gradients pass, and comparisons that take -0.0 for 0.0 pass all finite ones.
    """
    return edit("tl.where(kept, value, 0.0)", "value * kept.to(tl.float32)", module=WEIGHTS)
