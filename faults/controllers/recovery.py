"""Past bugs of swapping and inheriting."""

from collections.abc import Callable
from typing import Any

from trivet.properties.controllers import (
    controllers_channel_swap,
    controllers_inherit_tau,
    controllers_reset_channels,
    controllers_swap_bucket,
)

Edit = Callable[..., Any]
SWAP = "trivet.impl.controllers.swap"
RECOVERY = "trivet.impl.controllers.recovery"
INHERITANCE = "trivet.impl.controllers.inheritance"


@controllers_channel_swap.fault(expects=("matches_oracle", "the_least_active_leave"))
def the_most_active_leave(edit: Edit) -> Any:
    """The dead bucket gave its best channels away."""
    old = 'least = tl.min(tl.where(mine, active, float("inf")), axis=0)'
    return edit(old, "least = tl.max(tl.where(mine, active, -1.0), axis=0)", module=SWAP)


@controllers_channel_swap.fault(expects=("sizes_never_change", "matches_oracle"))
def neighbours_channel_taken_twice(edit: Edit) -> Any:
    """Who had been taken could be taken again: one bucket shrank, the other grew."""
    return edit("        theirs = theirs & (channel != got)\n", "", module=SWAP)


@controllers_channel_swap.fault(expects=("matches_oracle",))
def nearest_in_seconds(edit: Edit) -> Any:
    """Nearest by the difference of tau, not of its logarithm: always the short ones."""
    old = """    square = wanted.to(tl.float64) * wanted.to(tl.float64)
    product = below.to(tl.float64) * above.to(tl.float64)"""
    new = """    square = wanted.to(tl.float64) + wanted.to(tl.float64)
    product = below.to(tl.float64) + above.to(tl.float64)"""
    return edit(old, new, module=SWAP)


@controllers_channel_swap.fault(expects=("matches_oracle",))
def weaker_neighbour_chosen(edit: Edit) -> Any:
    """The comparison was turned round: two dying buckets exchanged their channels."""
    old = "lower = mean_below * floor_above >= mean_above * floor_below"
    return edit(old, old.replace(">=", "<="), module=SWAP)


@controllers_channel_swap.fault(expects=("matches_oracle", "a_silent_bucket_swaps_all_it_can"))
def always_one_channel(edit: Edit) -> Any:
    """max(1, ...) was lost in min(1, ...): a silent bucket recovered one channel in fifty steps."""
    old = "tl.maximum(own - kept, 1)"
    return edit(old, "tl.minimum(own - kept, 1)", module=SWAP)


@controllers_reset_channels.fault(
    expects=("channels_that_moved_start_at_plus_zero", "matches_oracle"), number=27
)
def moments_not_reset(edit: Edit) -> Any:
    """The weight was zeroed, its momentum pulled it back at the next step."""
    return edit("    tl.store(exp_avg + place, 0.0, mask=moved)\n", "", module=SWAP)


@controllers_swap_bucket.fault(expects=("all_of_a_record_agrees", "matches_oracle"), number=27)
def table_alone_updated(edit: Edit) -> Any:
    """The mask was made of the buckets of before: a partial refactoring."""
    return edit("mask_init(swapped, N)", "mask_init(bucket_of, N)", module=RECOVERY)


@controllers_swap_bucket.fault(expects=("all_of_a_record_agrees", "matches_oracle"), number=27)
def weights_packed_before_they_were_reset(edit: Edit) -> Any:
    """Packed weights still held what the parameters no longer did."""
    old = "    reset_channels(params, exp_avg, exp_avg_sq, bucket_of, swapped)\n"
    new = "    w_compact, _ = heads_compact(params, channels_in_bucket(swapped, len(params), M))\n"
    following = """    N = params.shape[0]
    table = channels_in_bucket(swapped, N, M)
    w_compact, _ = heads_compact(params, table)
"""
    kept = following.replace("    w_compact, _ = heads_compact(params, table)\n", "")
    return edit(old + following, new + old + kept, module=RECOVERY)


@controllers_swap_bucket.fault(
    expects=("moved_channels_lose_weights_and_moments", "matches_oracle"), number=27
)
def weights_and_moments_kept(edit: Edit) -> Any:
    """Off bucket the old skip weight lived on, and the new one was not a fresh start."""
    old = "    reset_channels(params, exp_avg, exp_avg_sq, bucket_of, swapped)\n"
    return edit(old, "", module=RECOVERY)


@controllers_inherit_tau.fault(
    expects=("the_range_is_the_neighbours", "inheritance_survives_the_next_clamp"), number=43
)
def range_not_inherited(edit: Edit) -> Any:
    """The next clamp put the channels back: recovery was reported, nothing recovered."""
    old = "source = tl.where((row == bucket) & (neighbour >= 0), neighbour, row)"
    return edit(old, "source = row", module=INHERITANCE)


@controllers_inherit_tau.fault(expects=("matches_oracle", "heirs_lie_among_the_neighbours"))
def quantiles_of_n_in_place_of_n_less_one(edit: Edit) -> Any:
    """i / n: the last heir never reached the neighbour's longest time constant."""
    old = "parts = tl.where(single, 2, tl.maximum(heirs - 1, 1))"
    return edit(old, "parts = tl.where(single, 2, tl.maximum(heirs, 1))", module=INHERITANCE)


@controllers_inherit_tau.fault(expects=("a_single_heir_takes_the_middle",))
def a_single_heir_takes_the_least(edit: Edit) -> Any:
    """0 / 0 was read as 0: a bucket of one channel took the shortest in place of the middle."""
    old = "scaled = tl.where(single, 1, tl.load(rank"
    return edit(old, "scaled = tl.where(single, 0, tl.load(rank", module=INHERITANCE)


@controllers_inherit_tau.fault(expects=("matches_oracle",))
def ranks_counted_over_all_buckets(edit: Edit) -> Any:
    """The rank among all channels in place of that among the bucket's own."""
    old = "before = (smaller | earlier) & (mates[None, :] == owner[:, None])"
    return edit(old, "before = (smaller | earlier) & (other < H)[None, :]", module=INHERITANCE)


@controllers_channel_swap.fault(
    expects=("only_the_bucket_and_its_neighbour_exchange", "sizes_never_change")
)
def given_to_the_bucket_after(edit: Edit) -> Any:
    """An index too far: channels went to the neighbour's neighbour."""
    old = "tl.where(channel == given, neighbour, "
    return edit(old, "tl.where(channel == given, neighbour + 1, ", module=SWAP)


@controllers_channel_swap.fault(expects=("scaling_every_tau_changes_no_swap", "matches_oracle"))
def nearest_beyond_a_second_only(edit: Edit) -> Any:
    """Time constants under a second were rounded up to one before they were compared."""
    old = "wanted = tl.sum(tl.where(channel == given, value, 0.0), axis=0)"
    return edit(old, f"{old}\n        wanted = tl.maximum(wanted, 1.0)", module=SWAP)


@controllers_reset_channels.fault(
    expects=("channels_that_stayed_keep_their_bits", "matches_oracle")
)
def every_channel_reset(edit: Edit) -> Any:
    """All of the model's skip weights were forgotten whenever one bucket recovered."""
    old = "tl.store(params + place, 0.0, mask=moved)"
    return edit(old, "tl.store(params + place, 0.0, mask=live)", module=SWAP)


@controllers_inherit_tau.fault(expects=("others_keep_their_bits", "matches_oracle"))
def later_buckets_inherit_too(edit: Edit) -> Any:
    """A comparison too wide: every longer horizon got the neighbour's time constants."""
    old = "heir = (owner == bucket) & (neighbour >= 0)"
    return edit(old, "heir = (owner >= bucket) & (neighbour >= 0)", module=INHERITANCE)
