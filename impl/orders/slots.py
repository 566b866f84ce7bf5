"""Resting orders: seeded at the opposite touch, live after a latency, filled first come first."""

from typing import NamedTuple

import triton
import triton.language as tl

BUY = tl.constexpr(0)
SELL = tl.constexpr(1)
NONE = tl.constexpr(2)
FLATTEN = tl.constexpr(3)
_NEVER = tl.constexpr(1 << 62)


class Slots(NamedTuple):
    """The order slots of a block of simulations, tiles (BLOCK, SLOTS) of int64.

    lots is what is not filled yet, 0 in a slot that is not active.
    """

    lots: tl.tensor
    side: tl.tensor
    limit: tl.tensor
    arrival: tl.tensor
    sequence: tl.tensor


class Quote(NamedTuple):
    """One event for a block of simulations, int64; sizes are what is left of those displayed."""

    ts: tl.tensor
    bid: tl.tensor
    ask: tl.tensor
    bid_size: tl.tensor
    ask_size: tl.tensor


class Fill(NamedTuple):
    """At most one fill for each simulation: signed lots, 0 for none, and the limit's price."""

    lots: tl.tensor
    price: tl.tensor


@triton.jit
def take_turn(slots: Slots, quote: Quote) -> tuple[Slots, Quote, Fill]:
    """Fill the one slot whose turn it is: live, crossed, and first by sequence number.

    Returns slots, quote with the displayed size used up, and the fill. As many turns as there are
    slots fill all that an event can fill: each one ends a slot or the size of its side.
    """
    buys = slots.side == BUY
    crossed = tl.where(buys, quote.ask[:, None] <= slots.limit, quote.bid[:, None] >= slots.limit)
    room = tl.where(buys, quote.ask_size[:, None], quote.bid_size[:, None])
    arrived = slots.arrival <= quote.ts[:, None]
    ready = (slots.lots > 0) & arrived & crossed & (room > 0)
    first = tl.min(tl.where(ready, slots.sequence, _NEVER), axis=1)
    chosen = ready & (slots.sequence == first[:, None])
    lots = tl.where(chosen, tl.minimum(slots.lots, room), 0)
    bought = tl.sum(tl.where(buys, lots, 0), axis=1)
    sold = tl.sum(tl.where(buys, 0, lots), axis=1)
    price = tl.sum(tl.where(chosen, slots.limit, 0), axis=1)
    rest = Slots(slots.lots - lots, slots.side, slots.limit, slots.arrival, slots.sequence)
    left = Quote(quote.ts, quote.bid, quote.ask, quote.bid_size - sold, quote.ask_size - bought)
    return rest, left, Fill(bought - sold, price)


@triton.jit
def in_flight(slots: Slots) -> tl.tensor:
    """Return the signed lots that active slots have not filled yet, live or not, (BLOCK,)."""
    return tl.sum(tl.where(slots.side == BUY, slots.lots, -slots.lots), axis=1)


@triton.jit
def delta_to(target: tl.tensor, position: tl.tensor, slots: Slots, floor: tl.tensor) -> tl.tensor:
    """Return the signed lots to order, 0 inside the no-trade band.

    What is in flight counts as held already.
    """
    delta = target - (position + in_flight(slots))
    return tl.where(tl.abs(delta).to(tl.float32) < floor, 0, delta)


@triton.jit
def seed(
    slots: Slots,
    delta: tl.tensor,
    quote: Quote,
    latency: tl.tensor,
    sequence: tl.tensor,
    column: tl.tensor,
    Q: int,
) -> tuple[Slots, tl.tensor]:
    """Put an order of delta lots (0: none) into the first free of Q slots.

    It is a limit at the opposite touch. Returns slots and whether an order was placed (BLOCK,).
    """
    free = (slots.lots == 0) & (column < Q)[None, :]
    first = tl.min(tl.where(free, column[None, :], Q), axis=1)
    placed = (delta != 0) & (first < Q)
    here = placed[:, None] & (column[None, :] == first[:, None])
    buys = delta > 0
    side = tl.where(buys, BUY, SELL).to(tl.int64)
    limit = tl.where(buys, quote.ask, quote.bid)
    return Slots(
        tl.where(here, tl.abs(delta)[:, None], slots.lots),
        tl.where(here, side[:, None], slots.side),
        tl.where(here, limit[:, None], slots.limit),
        tl.where(here, (quote.ts + latency)[:, None], slots.arrival),
        tl.where(here, sequence[:, None], slots.sequence),
    ), placed


@triton.jit
def flatten(
    slots: Slots, position: tl.tensor, quote: Quote, fires: tl.tensor
) -> tuple[Slots, Fill]:
    """Cancel all slots and close the whole position at the touch, whatever size is displayed."""
    kept = tl.where(fires[:, None], 0, slots.lots)
    price = tl.where(position > 0, quote.bid, quote.ask)
    rest = Slots(kept, slots.side, slots.limit, slots.arrival, slots.sequence)
    return rest, Fill(tl.where(fires, -position, 0), price)


@triton.jit
def load_slots(pointer: tl.tensor, place: tl.tensor, stride: int, inside: tl.tensor) -> Slots:
    """Read slots whose fields lie `stride` elements apart; inactive where not inside."""
    return Slots(
        tl.load(pointer + place, mask=inside, other=0),
        tl.load(pointer + stride + place, mask=inside, other=0),
        tl.load(pointer + 2 * stride + place, mask=inside, other=0),
        tl.load(pointer + 3 * stride + place, mask=inside, other=0),
        tl.load(pointer + 4 * stride + place, mask=inside, other=0),
    )


@triton.jit
def store_slots(
    pointer: tl.tensor, place: tl.tensor, stride: int, slots: Slots, inside: tl.tensor
) -> None:
    """Write slots whose fields lie `stride` elements apart, where inside; inactive ones as 0."""
    active = slots.lots > 0
    tl.store(pointer + place, slots.lots, mask=inside)
    tl.store(pointer + stride + place, tl.where(active, slots.side, 0), mask=inside)
    tl.store(pointer + 2 * stride + place, tl.where(active, slots.limit, 0), mask=inside)
    tl.store(pointer + 3 * stride + place, tl.where(active, slots.arrival, 0), mask=inside)
    tl.store(pointer + 4 * stride + place, tl.where(active, slots.sequence, 0), mask=inside)


@triton.jit
def load_quote(
    ts: tl.tensor,
    bid: tl.tensor,
    ask: tl.tensor,
    bid_size: tl.tensor,
    ask_size: tl.tensor,
    place: tl.tensor,
    live: tl.tensor,
) -> Quote:
    """Read the events at `place` (BLOCK,); zeros where not live."""
    return Quote(
        tl.load(ts + place, mask=live, other=0),
        tl.load(bid + place, mask=live, other=0).to(tl.int64),
        tl.load(ask + place, mask=live, other=0).to(tl.int64),
        tl.load(bid_size + place, mask=live, other=0).to(tl.int64),
        tl.load(ask_size + place, mask=live, other=0).to(tl.int64),
    )
