"""Activity of buckets and channels, and the levels of dead buckets."""

from typing import Any

import numpy as np
import torch

from trivet import Choice, Contract, Scalar, Tensor, integers, log_uniform, partition, reals, sizes
from trivet.impl import controllers as kernels
from trivet.oracles import controllers as oracles
from trivet.properties._expect import same_bits, same_values
from trivet.properties.controllers.inputs import (
    HORIZONS,
    PER_HORIZON,
    Array,
    Rerun,
    as_positive_states,
    lengthened,
    on_grid,
)
from trivet.properties.decision.inputs import PINNED, widened
from trivet.properties.routing.inputs import BUCKETS, INDICES, with_odd_rows_reversed, zero_record

BATCH = {"B": sizes(0, 9, production=1024), "H": sizes(1, 60, production=128)}
CAPACITY = {"M": sizes(1, "H+3", production=28)}
TABLE = Tensor(
    "N M", dtypes=INDICES, domain=partition("H", total=False).map(with_odd_rows_reversed)
)
STATES = reals(-8, 8)
TILES = {"block_rows": Choice(32, 4), "block_slots": Choice(32, 4)}


def record_never_filled(h: torch.Tensor, table: torch.Tensor) -> dict[str, object]:
    """A routing record whose sizes are all 0."""
    return {"table": zero_record(h.shape[1], *table.shape)}


def channel_beyond_the_last(h: torch.Tensor, table: torch.Tensor) -> dict[str, object]:
    """A slot that names a channel that h does not have."""
    return {"table": torch.full((table.shape[0], 1), h.shape[1], dtype=torch.int32)}


BAD_TABLE = (
    (ValueError, "size", record_never_filled),
    (ValueError, "table", channel_beyond_the_last),
    (TypeError, "h", widened("h")),
)

controllers_h_mag_per_bucket = Contract(
    kernel=kernels.h_mag_per_bucket,
    oracles=[oracles.h_mag_per_bucket, oracles.h_mag_per_bucket_scalar],
    dims=BATCH | BUCKETS | CAPACITY,
    args={"h": Tensor("B H", domain=STATES), "table": TABLE, **TILES},
    outputs={"h_mag": PER_HORIZON},
    raises=BAD_TABLE,
)


@controllers_h_mag_per_bucket.law
def an_empty_bucket_has_no_activity(out: Array, table: Array) -> None:
    """+0.0 where a bucket has no channel."""
    empty = (table < 0).all(axis=1)
    same_bits(out[empty], np.zeros(int(empty.sum())), "activity of an empty bucket")


@controllers_h_mag_per_bucket.law
def equal_states_are_their_own_mean(out: Array, h: Array, table: Array, rerun: Rerun) -> None:
    """States of 1 and -1 have a mean size of exactly 1, padding slots and all."""
    filled = (table >= 0).any(axis=1) & (h.shape[0] > 0)
    again = rerun(h=np.where(h < 0, -1.0, 1.0))
    same_bits(again, 1.0 * filled, "activity of states of size 1")


@controllers_h_mag_per_bucket.law
def channels_in_no_bucket_do_not_count(out: Array, h: Array, table: Array, rerun: Rerun) -> None:
    """Whatever the states of channels that no bucket has: the same bits."""
    outside = ~np.isin(np.arange(h.shape[1]), table)
    same_bits(rerun(h=np.where(outside, 77.0, h)), out, "activity beside other channels")


controllers_channel_activity = Contract(
    kernel=kernels.channel_activity,
    oracles=[oracles.channel_activity, oracles.channel_activity_scalar],
    dims=BATCH,
    args={
        "h": Tensor("B H", domain=STATES),
        "block_rows": Choice(32, 4),
        "block_channels": Choice(32, 4),
    },
    outputs={"activity": Tensor("H")},
    raises=((TypeError, "h", widened("h")),),
)


@controllers_channel_activity.law
def silence_has_activity_zero(h: Array, rerun: Rerun) -> None:
    """Channels at 0 have exactly +0.0, of either sign of zero."""
    same_bits(rerun(h=-0.0 * np.abs(h)), np.zeros(h.shape[1]), "activity of silent channels")


def as_phases(drawn: Array) -> Array:
    """Activities (T, N) of buckets that fall silent and wake again; now and then one diverges."""
    step, bucket = np.indices(drawn.shape)
    silent = (step + bucket) // (2 + bucket % 4) % 2 == 1
    values = np.where(silent & (bucket % 3 != 2), 0.001 * drawn, 0.5 + drawn)
    return np.where((7 * step + bucket) % 23 == 11, np.nan, values)


def as_counters(drawn: Array) -> Array:
    """Counters (7, N) such as steps leave behind, from whole numbers from 0 to 5."""
    dead, live, level, steps, fell, window, rejected = drawn
    alive = dead > 2
    fresh = steps == 0
    rows = [dead * ~alive, live * alive, np.minimum(level, 3), steps, fell > 2, window, rejected]
    kept: Array = np.stack(rows) * np.where(fresh, 0, 1)
    return kept


COUNTERS = Tensor("7 N", dtypes=INDICES, domain=integers(0, 5).map(as_counters), role="inout")
LEVELS: dict[str, Any] = {
    "average": Tensor("5 N", domain=reals(0, 1).map(as_positive_states), role="inout"),
    "floor": Tensor("N", domain=log_uniform(0.01, 10.0, zero=True), role="inout"),
    "counters": COUNTERS,
    "window": Scalar(int, 1, 4),
}
BAD_LEVELS = (
    (ValueError, "window", {"window": 0}),
    (ValueError, "floor", lengthened("floor")),
    (TypeError, "counters", widened("counters")),
)

controllers_dead_buckets = Contract(
    kernel=kernels.dead_buckets,
    oracles=[oracles.dead_buckets, oracles.dead_buckets_one_by_one],
    dims={"T": sizes(0, 24, production=1)} | HORIZONS,
    args={"h_mag": Tensor("T N", domain=reals(0, 1).map(as_phases)), **LEVELS},
    outputs={"fired": Tensor("T N", dtypes=INDICES)},
    raises=BAD_LEVELS,
)
controllers_dead_buckets.without("logic_matches", PINNED)


def from_nothing(counters: Array, average: Array, floor: Array) -> dict[str, Array]:
    """The state before the first step."""
    return {"counters": 0 * counters, "average": 0 * average, "floor": 0 * floor}


@controllers_dead_buckets.law
def a_live_bucket_never_fires(counters: Array, average: Array, floor: Array, rerun: Rerun) -> None:
    """Dead and live steps in turn: no window of dead ones is ever full, and no level rises.

    From the first observation 1 an activity of 0 falls under 1/e after two steps and one of 1
    brings the average back at once; the window is 3.
    """
    phases = np.array([1.0] + [0.0, 0.0, 0.0, 1.0, 1.0] * 4)[:, None].repeat(len(floor), 1)
    again = rerun(h_mag=phases, window=3, **from_nothing(counters, average, floor))
    same_values(again.fired, np.zeros_like(again.fired), "level fired of a bucket that wakes")


@controllers_dead_buckets.law
def levels_rise_one_a_window(counters: Array, average: Array, floor: Array, rerun: Rerun) -> None:
    """Silence after a first observation fires 1, 2, 3 and 3 again, a whole window apart.

    The gain is at least 0.4: 0.6^2 is under 1/e, so the second silent step is the first dead one.
    """
    silence = np.array([1.0] + [0.0] * 13)[:, None].repeat(len(floor), 1)
    again = rerun(h_mag=silence, window=3, **from_nothing(counters, average, floor))
    told = {4: 1, 7: 2, 10: 3, 13: 3}
    wanted = np.array([told.get(t, 0) for t in range(14)])[:, None]
    same_values(again.fired, np.broadcast_to(wanted, again.fired.shape), "level fired")


@controllers_dead_buckets.law
def a_bucket_that_stayed_awake_gets_twice_the_window(
    counters: Array, average: Array, floor: Array, rerun: Rerun
) -> None:
    """Awake up to observation 3 of a window of 3, it fires after 6 dead steps, not after 3."""
    late = np.array([1.0] * 3 + [0.0] * 7)[:, None].repeat(len(floor), 1)
    again = rerun(h_mag=late, window=3, **from_nothing(counters, average, floor))
    wanted = (np.arange(10) == 9)[:, None]
    same_values(again.fired, np.broadcast_to(wanted, again.fired.shape), "level fired")
    same_values(again.counters[5], np.full_like(floor, 6), "window")


@controllers_dead_buckets.law
def a_window_of_live_steps_ends_the_recovery(
    counters: Array, average: Array, floor: Array, rerun: Rerun
) -> None:
    """Level 1 after silence, level 0 after as many live steps in a row."""
    phases = np.array([1.0] + [0.0] * 4 + [1.0] * 6)[:, None].repeat(len(floor), 1)
    start = from_nothing(counters, average, floor)
    before = rerun(h_mag=phases[:7], window=3, **start).counters[2]
    after = rerun(h_mag=phases, window=3, **start).counters[2]
    same_values(before, np.ones_like(before), "level after two live steps")
    same_values(after, np.zeros_like(after), "level after a window of live steps")


@controllers_dead_buckets.law
def streams_can_be_cut_anywhere(out: Any, h_mag: Array, rerun: Rerun) -> None:
    """Two calls with the state carried over give what one gives, bitwise: resume is exact."""
    cut = len(h_mag) // 2
    first = rerun(h_mag=h_mag[:cut])
    carried = {name: getattr(first, name) for name in ("average", "floor", "counters")}
    second = rerun(h_mag=h_mag[cut:], **carried)
    fired = np.concatenate([first.fired, second.fired])
    same_values(fired, out.fired, "fired of a stream that was cut")
    same_bits(second.average, out.average, "average of a stream that was cut")
    same_values(second.counters, out.counters, "counters of a stream that was cut")


@controllers_dead_buckets.law
def an_empty_bucket_is_never_dead(
    counters: Array, average: Array, floor: Array, rerun: Rerun
) -> None:
    """An activity of 0 from the first step on has the floor 0, which nothing lies under."""
    again = rerun(
        h_mag=np.zeros((6, len(floor))), window=1, **from_nothing(counters, average, floor)
    )
    same_values(again.fired, np.zeros_like(again.fired), "level fired of an empty bucket")


@controllers_dead_buckets.law
def what_is_not_finite_is_only_counted(
    h_mag: Array, average: Array, floor: Array, counters: Array, rerun: Rerun
) -> None:
    """An activity that diverged changes averages and floors by no bit."""
    again = rerun(h_mag=np.full_like(h_mag, np.inf))
    same_bits(again.average, average, "average after infinity")
    same_bits(again.floor, floor, "floor after infinity")
    same_values(again.counters[6], counters[6] + len(h_mag), "observations passed over")


controllers_watch_buckets = Contract(
    kernel=kernels.watch_buckets,
    oracles=[oracles.watch_buckets, oracles.watch_buckets_one_by_one],
    dims=BATCH | HORIZONS | CAPACITY,
    args={"h": Tensor("B H", domain=STATES.map(on_grid)), "table": TABLE, **LEVELS},
    outputs={"h_mag": PER_HORIZON, "fired": Tensor("N", dtypes=INDICES)},
    raises=BAD_TABLE + BAD_LEVELS,
)
controllers_watch_buckets.without("logic_matches", PINNED)


@controllers_watch_buckets.law
def the_average_observes_this_step(out: Any, h: Array, average: Array, rerun: Rerun) -> None:
    """From nothing, the first average is the activity of these states, not of an earlier step."""
    again = rerun(average=0 * average)
    same_bits(again.average[0], out.h_mag, "first mean")
    louder = rerun(h=2 * h, average=again.average)
    same_bits(louder.average[3], 2 * out.h_mag, "last observation of the second step")
