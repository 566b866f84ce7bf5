"""Past bugs of the open trade record and of what it credits."""

from collections.abc import Callable
from typing import Any

from trivet.properties.trades import trades_credit, trades_replay, trades_unpack

Edit = Callable[..., Any]
CREDIT = "trivet.impl.trades.credit"
RECORD = "trivet.impl.trades.record"
LIFE = "trivet.impl.trades.life"
SIGNALS = "trivet.impl.decision.signals"
KERNEL = "trivet.impl._replay.kernel"
STATE = "trivet.impl._replay.state"


@trades_credit.fault(expects=("matches_oracle", "other_horizons_keep_their_bits"), number=13)
def profit_credited_by_the_byte_at_20(edit: Edit) -> Any:
    """The layout grew, and one reader took its horizon from the old place: part of a float now.

    Always a valid small integer, so nothing failed; a round trip of the record stays right.
    """
    old = "tl.load(first + DOMINANT_WORD, mask=live, other=0) & 0xFF"
    return edit(old, "tl.load(first + AT_ENTRY_WORD, mask=live, other=0) & 7", module=RECORD)


@trades_unpack.fault(expects=("matches_oracle",), number=39)
def reader_keeps_the_old_stride(edit: Edit) -> Any:
    """One reader went from record to record in steps of 24 bytes: right for simulation 0."""
    old = "first = words + simulation * WORDS\n    low = tl.load("
    return edit(old, "first = words + simulation * 6\n    low = tl.load(", module=RECORD)


# ------------------------------------------------------------------------------ smaller slips


@trades_unpack.fault(expects=("matches_oracle",))
def low_half_of_the_time_takes_its_sign_along(edit: Edit) -> Any:
    """The halves of a time stamp were joined as signed words: wrong for two seconds in four."""
    return edit("(high << 32) | (low & 0xFFFFFFFF)", "(high << 32) | low", module=RECORD)


@trades_unpack.fault(expects=("distinct_bytes_are_told_apart",))
def dominant_horizon_read_off_the_next_float(edit: Edit) -> Any:
    """Byte 60 was mixed with byte 20: the same where the conviction's last byte is zero."""
    old = "tl.load(first + DOMINANT_WORD, mask=live, other=0) & 0xFF"
    new = (
        "(tl.load(first + DOMINANT_WORD, mask=live, other=0)"
        " | tl.load(first + AT_ENTRY_WORD, mask=live, other=0)) & 0xFF"
    )
    return edit(old, new, module=RECORD)


@trades_credit.fault(expects=("closing_zeroes_all_64_bytes",))
def peak_survives_the_close(edit: Edit) -> Any:
    """One field was not cleared: the next reader saw the peak of a trade that was over."""
    old = "tl.where(closes, 0.0, record.peak)"
    return edit(old, "record.peak", module=RECORD)


@trades_credit.fault(expects=("first_profit_is_the_mean",))
def variance_from_distances_to_the_old_mean(edit: Edit) -> Any:
    """Squares were taken from the mean before its update: one trade alone had a variance."""
    old = "square = edges.square + gap * (x - mean)"
    return edit(old, "square = edges.square + gap * gap", module=CREDIT)


@trades_credit.fault(expects=("matches_oracle",))
def profit_credited_as_a_whole(edit: Edit) -> Any:
    """Net profit went in undivided: large trades outweighed many small ones."""
    old = "each = tl.div_rn(profit, tl.maximum(lots, 1).to(tl.float32))"
    return edit(old, "each = profit", module=CREDIT)


# ------------------------------------------------------------------------------ whole runs

FOLLOW = """\
        trade = followed(
            trade,
            is_open & (young == 0),
            smoothed.mean,
            2.0 * tl.abs(horizons.mean),
            signal,
            unrealised,
            pnl_adjusted(smoothed.mean, unrealised, fee, size),
            trade_gain,
        )
"""
LEVEL = """\
        level = levels(
            unrealised,
            size,
            trade.record.at_entry,
            trade.record.conviction,
            trade.pnl.mean,
            trade.record.disagreement,
            signal.mean_var,
            fee,
            multiple,
        )
"""


@trades_replay.fault(expects=("sampling_changes_nothing",), number=36)
def sampling_fills_the_gaps_it_reads(edit: Edit) -> Any:
    """The sampler replaced missing probabilities where they lay: the next launch found none.

    Invisible while sampling is off, and in data without gaps.
    """
    old = "sampler.take(events.p, start, last)"
    return edit(old, f"events.p.nan_to_num_(nan=0.5)\n        {old}")


@trades_replay.fault(expects=("horizons_keep_their_own_runs", "matches_oracle"), number=38)
def every_horizon_reads_the_first(edit: Edit) -> Any:
    """One stream was given to all horizons under their own labels: training \"works\"."""
    old = "here[:, None] * N + column[None, :], mask=inside"
    return edit(old, "here[:, None] * N + 0 * column[None, :], mask=inside", module=KERNEL)


@trades_replay.fault(expects=("disagreement_ends_trades_at_its_thirty_second_event",), number=40)
def exits_judged_before_the_trajectory(edit: Edit) -> Any:
    """The composite read the record as of the event before: every exit one event late."""
    return edit(FOLLOW + LEVEL, LEVEL + FOLLOW, module=KERNEL)


@trades_replay.fault(expects=("matches_oracle",), number=44)
def setting_of_zero_taken_for_absent(edit: Edit) -> Any:
    """What was given as 0 became the default: a floor of 0 one of 0.4, a band of 0 one of 1.

    Zero is rarely configured; and a band of 1 turns away no whole number of lots.
    """
    old = "values[name] = value.expand(simulations).contiguous()"
    absent = "value = torch.where(value == 0, torch.full_like(value, default), value)"
    return edit(old, f"{absent}\n            {old}", module=STATE)


@trades_replay.fault(expects=("matches_oracle",))
def young_trades_followed_at_once(edit: Edit) -> Any:
    """A trade was followed at the event that opened it: averages and counts one event ahead."""
    old = "is_open & (young == 0),\n            smoothed.mean"
    return edit(old, old.replace("is_open & (young == 0)", "is_open"), module=KERNEL)


@trades_replay.fault(expects=("matches_oracle",))
def target_reopens_at_the_exit(edit: Edit) -> Any:
    """The event that closed a trade ordered the next one."""
    old = "delta = tl.where(fires, 0, delta_to(target, book.position, slots, band))"
    return edit(old, "delta = delta_to(target, book.position, slots, band)", module=KERNEL)


@trades_replay.fault(expects=("matches_oracle",))
def costs_left_out_of_the_equity(edit: Edit) -> Any:
    """Drawdown was measured gross: shallow where it is costs that eat a strategy."""
    old = " - fee * book.filled.to(tl.float32)"
    return edit(old, "", module=KERNEL)


@trades_replay.fault(expects=("matches_oracle",))
def costs_charged_for_one_side(edit: Edit) -> Any:
    """A trade paid for its entry and not for its exit."""
    old = "- cost * lots.to(tl.float32)"
    return edit(old, "- cost * (lots // 2).to(tl.float32)", module=LIFE)


@trades_replay.fault(expects=("matches_oracle",))
def reversal_charged_to_the_old_trade(edit: Edit) -> Any:
    """A fill through zero paid for both its parts on the trade that it closed."""
    old = "lots = (book.filled - tl.abs(book.position)) - trade.filled"
    return edit(old, "lots = book.filled - trade.filled", module=LIFE)


@trades_replay.fault(expects=("matches_oracle",))
def every_simulation_on_the_first_tape(edit: Edit) -> Any:
    """The tape was never asked for; with one tape it need not be."""
    old = "tl.load(tape + simulation, mask=live, other=0).to(tl.int64) * E"
    return edit(
        old, "tl.load(tape + simulation, mask=live, other=0).to(tl.int64) * 0", module=KERNEL
    )


@trades_replay.fault(expects=("runs_can_be_cut_anywhere",))
def trades_beside_the_record_not_carried(edit: Edit) -> Any:
    """What is kept beside the record was lost between launches: profit since the run began."""
    old = "tl.store(opened + simulation, trade.realised, mask=live)"
    return edit(old, "tl.store(opened + simulation, trade.realised * 0, mask=live)", module=LIFE)


@trades_replay.fault(expects=("histograms_count_everything_once",))
def exits_counted_under_orders_as_well(edit: Edit) -> Any:
    """An exit bumped its own cause and the one of orders: causes exceeded trades."""
    old = "bump(counts + (_CAUSES + cause) * S + simulation, closes)"
    more = "bump(counts + _CAUSES * S + simulation, closes & (cause > 0))"
    return edit(old, f"{old}\n    {more}", module=KERNEL)
