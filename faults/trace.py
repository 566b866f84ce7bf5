"""Past bugs of the trace: of its records, its drainer and of kept launch sequences."""

from collections.abc import Callable
from typing import Any

from trivet.properties.trace import (
    trace_log_tick,
    trace_planned,
    trace_traced,
    trace_write,
    trace_write_per_horizon,
)

Edit = Callable[..., Any]
RING = "trivet.impl.trace.ring"
DRAINER = "trivet.impl._trace.drainer"
PLAN = "trivet.impl._perception.launch_plan"


@trace_planned.fault(
    expects=("replay_equals_eager_under_changed_host_state", "matches_oracle"), number=14
)
def host_decision_frozen_in_the_plan(edit: Edit) -> Any:
    """A kept sequence was run again whatever its key: the first replay was right."""
    old = "self._replay is not None and exact == self._key"
    return edit(old, "self._replay is not None", module=PLAN)


@trace_traced.fault(expects=("a_short_run_is_complete", "matches_oracle"), number=18)
def drainer_started_in_event_loops_alone(edit: Edit) -> Any:
    """The drainer was a task of the running loop; a plain program has none, hence no line."""
    old = "            self._cycle(last=False)\n        self._cycle(last=True)"
    new = "            pass\n        import asyncio\n\n"
    new += "        if asyncio._get_running_loop() is not None:\n            self._cycle(last=True)"
    return edit(old, new, module=DRAINER)


@trace_traced.fault(expects=("a_short_run_is_complete", "matches_oracle"), number=19)
def tail_of_a_run_not_drained(edit: Edit) -> Any:
    """Closing stopped the thread as it was: what came after the last poll was never a line."""
    return edit("        self._cycle(last=True)\n", "", module=DRAINER)


@trace_traced.fault(expects=("written_is_drained_plus_lost", "matches_oracle"), number=19)
def overrun_not_reported(edit: Edit) -> Any:
    """What the ring had overwritten was skipped without a word: long runs looked complete."""
    return edit("        if gone:\n", "        if gone < 0:\n", module=DRAINER)


# ------------------------------------------------------------------------------ smaller slips


@trace_planned.fault(expects=("every_replay_ticks", "matches_oracle"))
def only_the_first_launch_kept(edit: Edit) -> Any:
    """A replay ran the first launch of the list: the counter ticked, no record was written."""
    return edit("for step in steps:", "for step in steps[:1]:", module=PLAN)


@trace_write.fault(expects=("matches_oracle", "fields_come_back_from_the_bytes"))
def ids_in_each_others_place(edit: Edit) -> Any:
    """Kernel id and record type swapped their bytes: right wherever they are equal."""
    old = "tl.full((), kernel_id, tl.int32) | (tl.full((), record_type, tl.int32) << 8)"
    new = "tl.full((), record_type, tl.int32) | (tl.full((), kernel_id, tl.int32) << 8)"
    return edit(old, new, module=RING)


@trace_write.fault(expects=("matches_oracle", "fields_come_back_from_the_bytes"))
def slot_taken_from_the_low_half_of_the_number(edit: Edit) -> Any:
    """The record's number lost its high half: another slot, once 2^31 records were written."""
    old = "(pen.number % pen.capacity) * WORDS"
    new = "((pen.number & 0x7FFFFFFF) % pen.capacity) * WORDS"
    return edit(old, new, module=RING)


@trace_write.fault(expects=("head_counts_every_record", "matches_oracle"))
def head_wraps_with_the_slots(edit: Edit) -> Any:
    """Head held the next slot in place of the count: a drainer cannot tell how much it missed."""
    old = "tl.atomic_xchg(pen.head, pen.number + 1,"
    return edit(old, "tl.atomic_xchg(pen.head, (pen.number + 1) % pen.capacity,", module=RING)


@trace_write.fault(expects=("matches_oracle", "values_that_are_no_numbers_come_through"))
def last_value_left_as_it_was(edit: Edit) -> Any:
    """Twelve of the thirteen values were written; the last was what the slot had held."""
    old = "tl.store(place + FIRST_VALUE_WORD + lane, values, mask=lane < VALUE_LANES)"
    return edit(old, old.replace("VALUE_LANES)", "VALUE_LANES - 1)"), module=RING)


@trace_write.fault(expects=("other_slots_keep_their_bits", "matches_oracle"))
def padding_lanes_written_too(edit: Edit) -> Any:
    """The tile's last three lanes went into the next slot: seen until a record comes there."""
    old = "values, mask=lane < VALUE_LANES)"
    return edit(old, "values, mask=lane < LANES)", module=RING)


@trace_write.fault(expects=("records_can_be_written_in_parts", "head_counts_every_record"))
def every_launch_begins_at_the_first_slot(edit: Edit) -> Any:
    """The count was not carried from launch to launch: each step overwrote the one before."""
    return edit("tl.load(step), tl.load(head))", "tl.load(step), tl.load(head) * 0)", module=RING)


@trace_write_per_horizon.fault(expects=("every_horizon_comes_back_once",), number=8)
def horizons_beyond_the_first_record_dropped(edit: Edit) -> Any:
    """The continuation was forgotten: five horizons fit one record, seven do not."""
    old = "for first in range(0, N, HORIZON_LANES):"
    return edit(old, "for first in range(0, 1, HORIZON_LANES):", module=RING)


@trace_write_per_horizon.fault(expects=("signs_of_zeros_and_what_is_no_number_come_through",))
def horizons_gathered_on_plus_zero(edit: Edit) -> Any:
    """Values were added to +0.0 to find their lane: -0.0 lost its sign on the way."""
    return edit("values[None, :], -0.0), axis=1)", "values[None, :], 0.0), axis=1)", module=RING)


@trace_log_tick.fault(expects=("every_tick_counts",))
def counter_wraps_at_32_bits(edit: Edit) -> Any:
    """The counter itself was cut to the record's 32 bits: a long run began again at 0."""
    old = "tl.store(step, tl.load(step) + 1)"
    return edit(old, "tl.store(step, (tl.load(step) + 1) & 0xFFFFFFFF)", module=RING)
