"""Past bugs of orders, fills and books."""

from collections.abc import Callable
from typing import Any

from trivet.properties.orders import orders_work

Edit = Callable[..., Any]
BOOK = "trivet.impl.orders.book"
SLOTS = "trivet.impl.orders.slots"
STREAMS = "trivet.impl.orders.streams"


@orders_work.fault(expects=("same_signal_twice_seeds_once",), number=12)
def target_compared_with_the_position_alone(edit: Edit) -> Any:
    """Lots in flight did not count: until the first fill the same order was seeded at each event.

    At latency 0 in a book of plenty the fill comes before the next look.
    """
    old = "delta = target - (position + in_flight(slots))"
    return edit(old, "delta = target - position", module=SLOTS)


@orders_work.fault(expects=("nothing_fills_before_it_arrives",), number=34)
def orders_filled_before_they_arrive(edit: Edit) -> Any:
    """The latency was kept in the slot and never asked for: a small, steady gain."""
    old = "ready = (slots.lots > 0) & arrived & crossed & (room > 0)"
    return edit(old, "ready = (slots.lots > 0) & crossed & (room > 0)", module=SLOTS)


@orders_work.fault(expects=("matches_oracle",), number=34)
def fills_priced_at_the_touch(edit: Edit) -> Any:
    """A buy was booked at the ask of the event that filled it, not at its limit.

    The same unless the market moved through the limit while the order travelled.
    """
    old = "price = tl.sum(tl.where(chosen, slots.limit, 0), axis=1)"
    new = "price = tl.where(bought > 0, quote.ask, quote.bid)"
    return edit(old, new, module=SLOTS)


@orders_work.fault(expects=("orders_have_lots",), number=45)
def order_of_no_lots_seeded(edit: Edit) -> Any:
    """With the band off, a target already held was ordered again: 0 lots.

    Nothing fills; an active slot of 0 lots is taken for free by the next one, so that only what
    was sent tells. With a band of one lot no such order passes.
    """
    old = "placed = (delta != 0) & (first < Q)"
    return edit(old, "placed = first < Q", module=SLOTS)


@orders_work.fault(expects=("matches_oracle",), number=51)
def slots_served_by_index(edit: Edit) -> Any:
    """The first slot went first, not the first order: the same until a slot is used again.

    And until the displayed size is too small for both.
    """
    old = "first = tl.min(tl.where(ready, slots.sequence, _NEVER), axis=1)"
    new = """\
index = tl.arange(0, slots.lots.shape[1])[None, :].to(tl.int64)
    lowest = tl.min(tl.where(ready, index, _NEVER), axis=1)
    first = tl.sum(tl.where(index == lowest[:, None], slots.sequence, 0), axis=1)"""
    return edit(old, new, module=SLOTS)


# ------------------------------------------------------------------------------ smaller slips


@orders_work.fault(expects=("books_stay_exact_at_the_largest_prices",))
def basis_times_lots_in_64_bits(edit: Edit) -> Any:
    """The share of the basis was a product, then a quotient: past 2^63 it changed its sign."""
    old = "return quotient * part + (rest * part) // whole"
    return edit(old, "return amount * part // whole", module=BOOK)


@orders_work.fault(expects=("books_stay_exact_at_the_largest_prices",))
def share_of_the_basis_rounded_down(edit: Edit) -> Any:
    """A short's basis is negative: rounding down is not rounding toward zero."""
    old = "return quotient * part + (rest * part) // whole"
    new = """\
exact = quotient * part + (rest * part) // whole
    return exact - ((rest * part - (rest * part) // whole * whole) < 0).to(tl.int64)"""
    return edit(old, new, module=BOOK)


@orders_work.fault(expects=("books_balance", "matches_oracle"))
def crossing_zero_keeps_the_old_basis(edit: Edit) -> Any:
    """A fill through zero was booked as one that adds: profit stayed in the basis for ever."""
    old = "return tl.where(opposite, tl.minimum(tl.abs(position), tl.abs(lots)), 0)"
    new = "return tl.where(opposite & (tl.abs(lots) < tl.abs(position)), tl.abs(lots), 0)"
    return edit(old, new, module=BOOK)


@orders_work.fault(expects=("matches_oracle",))
def displayed_size_offered_to_every_slot(edit: Edit) -> Any:
    """Each slot saw the whole displayed size: two orders bought what was there once."""
    old = "quote.bid_size - sold, quote.ask_size - bought"
    return edit(old, "quote.bid_size, quote.ask_size", module=SLOTS)


@orders_work.fault(expects=("flattened_books_are_empty",))
def exit_limited_by_the_displayed_size(edit: Edit) -> Any:
    """An exit took what was displayed and left the rest; deep test books show it all."""
    old = "return rest, Fill(tl.where(fires, -position, 0), price)"
    new = """\
    room = tl.where(position > 0, quote.bid_size, quote.ask_size)
    part = tl.minimum(tl.abs(position), room)
    return rest, Fill(tl.where(fires, tl.where(position > 0, -part, part), 0), price)"""
    return edit("    " + old, new, module=SLOTS)


@orders_work.fault(expects=("latencies_of_zero_and_one_agree",))
def order_live_only_after_its_arrival(edit: Edit) -> Any:
    """An order that arrives with an event missed it: one event late at a latency of 1 ns."""
    old = "arrived = slots.arrival <= quote.ts[:, None]"
    return edit(old, "arrived = slots.arrival < quote.ts[:, None]", module=SLOTS)


@orders_work.fault(expects=("orders_never_fill_at_their_own_event",))
def orders_seeded_before_the_fills(edit: Edit) -> Any:
    """Fills came after the decision: at latency 0 an order met the event that it came from."""
    old = "slots, placed = seed(slots, delta, quote, delay, sequence, column, Q)\n"
    late = "        slots, quote, fill = take_turn(slots, quote)\n"
    late += "        book = settle(book, fill.lots, fill.price)\n"
    return edit(old, old + late, module=STREAMS)


@orders_work.fault(expects=("matches_oracle",))
def refused_orders_use_up_sequence_numbers(edit: Edit) -> Any:
    """A refusal took a number as well; the order of service is the same, the numbers are not."""
    return edit("sequence += placed.to(tl.int64)", "sequence += (delta != 0).to(tl.int64)")
