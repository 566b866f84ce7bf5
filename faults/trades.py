"""Past bugs of the open trade record and of what it credits."""

from collections.abc import Callable
from typing import Any

from trivet.properties.trades import trades_credit, trades_unpack

Edit = Callable[..., Any]
CREDIT = "trivet.impl.trades.credit"
RECORD = "trivet.impl.trades.record"


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
