"""Past bugs of activity and of the levels of dead buckets."""

from collections.abc import Callable
from typing import Any

import torch

from trivet.impl.controllers.buckets import dead_buckets, h_mag_per_bucket
from trivet.properties.controllers import (
    controllers_channel_activity,
    controllers_dead_buckets,
    controllers_h_mag_per_bucket,
    controllers_watch_buckets,
)

Edit = Callable[..., Any]
SHARED = "trivet.impl.decision.averages"
BUCKETS = "trivet.impl.controllers.buckets"


@controllers_h_mag_per_bucket.fault(
    expects=("matches_oracle", "equal_states_are_their_own_mean"), number=24
)
def unused_slots_counted(edit: Edit) -> Any:
    """The mean was over the capacity: buckets that are not full looked half dead."""
    old = "size += tl.sum((channel >= 0).to(tl.int32), axis=0)"
    return edit(old, "size += tl.sum((slot < M).to(tl.int32), axis=0)", module=BUCKETS)


@controllers_h_mag_per_bucket.fault(expects=("stays_in_bounds", "matches_oracle"), number=7)
def unused_slots_read(edit: Edit) -> Any:
    """A slot of -1 read the channel before the row's first: that of another row, or none."""
    old = "live = (row < B)[:, None] & (channel >= 0)[None, :]"
    return edit(old, "live = (row < B)[:, None] & (slot < M)[None, :]", module=BUCKETS)


@controllers_h_mag_per_bucket.fault(expects=("matches_oracle",))
def signs_kept(edit: Edit) -> Any:
    """The mean of h, not of |h|: a bucket that swings about 0 was declared dead."""
    old = "total += tl.abs(tl.load(h + place, mask=live, other=0.0))"
    return edit(old, "total += tl.load(h + place, mask=live, other=0.0)", module=BUCKETS)


@controllers_h_mag_per_bucket.fault(expects=("matches_oracle",), number=8)
def only_the_first_slots_read(edit: Edit) -> Any:
    """Capacities beyond one tile: the channels after the 32nd were left out."""
    old = "for first in range(0, M, BLOCK_SLOTS):"
    return edit(old, "for first in range(0, 1, BLOCK_SLOTS):", module=BUCKETS)


@controllers_channel_activity.fault(expects=("matches_oracle",), number=8)
def only_the_first_rows_read(edit: Edit) -> Any:
    """Batches beyond one tile: the rows after it did not count, but divided."""
    old = "    for start in range(0, B, BLOCK_ROWS):\n        row = (start"
    return edit(old, old.replace("(0, B,", "(0, tl.minimum(B, 1),"), module=BUCKETS)


@controllers_dead_buckets.fault(expects=("levels_rise_one_a_window", "matches_oracle"), number=25)
def counter_kept_after_recovery(edit: Edit) -> Any:
    """The counter went on after a level had fired: the next ones fired at every step."""
    return edit("        dead_run = tl.where(fires, 0, dead_run)\n", "", module=BUCKETS)


@controllers_dead_buckets.fault(expects=("a_live_bucket_never_fires", "matches_oracle"), number=25)
def live_steps_do_not_reset_the_counter(edit: Edit) -> Any:
    """Dead steps were counted over the whole run, not in a row."""
    old = "tl.where(counted, tl.where(dead, dead_run + 1, 0), dead_run)"
    return edit(old, "tl.where(counted & dead, dead_run + 1, dead_run)", module=BUCKETS)


@controllers_dead_buckets.fault(expects=("matches_oracle",), number=25)
def average_started_at_zero(edit: Edit) -> Any:
    """The average began at 0: after one step half the floor, which never fires, but is wrong."""
    return edit("tl.where(first, x, mean),", "mean,", module=SHARED)


@controllers_dead_buckets.fault(
    expects=("a_bucket_that_stayed_awake_gets_twice_the_window", "matches_oracle")
)
def window_never_doubled(edit: Edit) -> Any:
    """Buckets that had been awake all along were recovered as fast as doubtful ones."""
    old = "(fell == 0), 2 * window, span)"
    return edit(old, "(fell == 0), window, span)", module=BUCKETS)


@controllers_dead_buckets.fault(
    expects=("a_window_of_live_steps_ends_the_recovery", "matches_oracle")
)
def levels_never_fall(edit: Edit) -> Any:
    """A bucket that had recovered went straight to the next level years later."""
    old = "        level = tl.where(live_run >= span, 0, level)\n"
    return edit(old, "", module=BUCKETS)


@controllers_dead_buckets.fault(expects=("an_empty_bucket_is_never_dead",))
def at_the_floor_is_dead(edit: Edit) -> Any:
    """0 <= 0: an empty bucket was recovered every fifty steps."""
    old = "dead = state.mean < tl.div_rn(least, E)"
    return edit(old, old.replace("<", "<="), module=BUCKETS)


@controllers_watch_buckets.fault(
    expects=("reads_initialised", "the_average_observes_this_step"), number=42
)
def levels_before_the_activity_they_read(
    h: torch.Tensor,
    table: torch.Tensor,
    average: torch.Tensor,
    floor: torch.Tensor,
    counters: torch.Tensor,
    window: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The controller was launched before the kernel that measures: what memory held, then a lag."""
    h_mag = torch.empty_like(floor)
    fired = dead_buckets(h_mag[None], average, floor, counters, window)[0]
    h_mag.copy_(h_mag_per_bucket(h, table))
    return h_mag, fired


@controllers_channel_activity.fault(expects=("silence_has_activity_zero", "matches_oracle"))
def activity_held_above_an_epsilon(edit: Edit) -> Any:
    """An epsilon kept the mean from 0, and silent channels from being told from nearly silent."""
    old = "mean = tl.sum(total, axis=0) / tl.maximum(B, 1).to(tl.float32)"
    return edit(old, old + " + 1e-3", module=BUCKETS)


@controllers_dead_buckets.fault(expects=("streams_can_be_cut_anywhere", "matches_oracle"))
def window_started_anew_at_each_call(edit: Edit) -> Any:
    """The window in force was not kept: a run that was resumed recovered twice as fast."""
    old = "span = tl.where(span == 0, window, span)"
    return edit(old, "span = tl.where(span == 0, window, window)", module=BUCKETS)


@controllers_dead_buckets.fault(expects=("what_is_not_finite_is_only_counted", "matches_oracle"))
def floor_set_by_what_diverged(edit: Edit) -> Any:
    """A first activity of infinity was the floor: every bucket was dead from then on."""
    old = "least = tl.where(counted & first, x, least)"
    return edit(old, "least = tl.where(first | (counted == 0), x, least)", module=BUCKETS)
