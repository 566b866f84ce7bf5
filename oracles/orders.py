"""From targets to positions, one event and one order at a time, in Python's own integers.

A simulation's state arrives as a column of ``book`` (position, cash, basis, realised, filled, next
sequence number, refusals) and of ``slots`` (unfilled lots, side, limit, arrival, sequence number).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trivet.oracles._pinned import pinned

BUY, SELL, NONE, FLATTEN = range(4)


@dataclass
class Order:
    """A limit order in a slot; lots is what is not filled yet."""

    lots: int
    side: int
    limit: int
    arrival: int
    sequence: int


@dataclass
class Quote:
    """One event of the book."""

    ts: int
    bid: int
    ask: int
    bid_size: int
    ask_size: int


@dataclass
class Book:
    """Position and money in hundredths; every number is exact."""

    position: int = 0
    cash: int = 0
    basis: int = 0
    realised: int = 0
    filled: int = 0

    def fill(self, lots: int, price: int) -> None:
        """Book signed lots; what crosses zero closes first, then opens."""
        if self.position * lots < 0:
            closing = max(-abs(self.position), min(abs(self.position), lots))
            self._close(closing, price)
            lots -= closing
        self.position += lots
        self.cash -= lots * price
        self.basis += lots * price
        self.filled += abs(lots)

    def _close(self, lots: int, price: int) -> None:
        share = abs(self.basis * lots) // abs(self.position)
        released = share if self.basis > 0 else -share
        self.realised += -lots * price - released
        self.basis -= released
        self.cash -= lots * price
        self.position += lots
        self.filled += abs(lots)


@dataclass
class Desk:
    """The order slots of one simulation."""

    slots: list[Order | None]
    next_sequence: int = 0
    refused: int = 0
    book: Book = field(default_factory=Book)

    def fills(self, quote: Quote) -> list[tuple[int, int]]:
        """The fills of one event, (signed lots, price), in order; slots give up what is filled.

        The caller books them: it may have more to note of each.
        """
        left = {BUY: quote.ask_size, SELL: quote.bid_size}
        found = []
        for order in sorted((o for o in self.slots if o), key=lambda o: o.sequence):
            crossed = quote.ask <= order.limit if order.side == BUY else quote.bid >= order.limit
            lots = min(order.lots, left[order.side])
            if order.arrival <= quote.ts and crossed and lots > 0:
                order.lots -= lots
                left[order.side] -= lots
                found.append((lots if order.side == BUY else -lots, order.limit))
        self.slots = [order if order and order.lots else None for order in self.slots]
        return found

    def cancel(self) -> None:
        """Empty every slot."""
        self.slots = [None] * len(self.slots)

    def closing(self, quote: Quote) -> tuple[int, int]:
        """The fill that closes the whole position at the touch."""
        price = quote.bid if self.book.position > 0 else quote.ask
        return -self.book.position, price

    def seed(self, target: int, floor: float, latency: int, quote: Quote) -> tuple[int, int]:
        """Order what is missing to the target; (side, lots) of what was placed."""
        waiting = sum(o.lots if o.side == BUY else -o.lots for o in self.slots if o)
        delta = target - (self.book.position + waiting)
        if delta == 0 or abs(delta) < floor:
            return NONE, 0
        if None not in self.slots:
            self.refused += 1
            return NONE, 0
        side, limit = (BUY, quote.ask) if delta > 0 else (SELL, quote.bid)
        order = Order(abs(delta), side, limit, quote.ts + latency, self.next_sequence)
        self.slots[self.slots.index(None)] = order
        self.next_sequence += 1
        return side, abs(delta)

    @property
    def active(self) -> int:
        """The number of active slots."""
        return sum(order is not None for order in self.slots)


@pinned
def work(
    ts: Any,
    bid: Any,
    ask: Any,
    bid_size: Any,
    ask_size: Any,
    target: Any,
    exits: Any,
    delta_floor: Any,
    latency: Any,
    book: Any,
    slots: Any,
) -> tuple[Any, ...]:
    """position, side, lots, active (E, S), then the state after the last event."""
    events, simulations = target.shape
    outputs = np.zeros((4, events, simulations), np.int64)
    book, slots = book.copy(), slots.copy()
    quotes = [Quote(*map(int, row)) for row in zip(ts, bid, ask, bid_size, ask_size, strict=True)]
    for s in range(simulations):
        desk = desk_of(book[:, s], slots[:, :, s])
        floor, delay = float(delta_floor[s]), int(latency[s])
        for e, quote in enumerate(quotes):
            for lots, price in desk.fills(quote):
                desk.book.fill(lots, price)
            if exits[e, s]:
                desk.book.fill(*desk.closing(quote))
                desk.cancel()
                sent = FLATTEN, 0
            else:
                sent = desk.seed(int(target[e, s]), floor, delay, quote)
            outputs[:, e, s] = desk.book.position, *sent, desk.active
        write_desk(desk, book[:, s], slots[:, :, s])
    return *outputs, book, slots


def desk_of(book: Any, slots: Any) -> Desk:
    """The desk whose state stands in one column of each array."""
    orders = [Order(*map(int, column)) if column[0] else None for column in slots.T]
    numbers = [int(n) for n in book]
    return Desk(orders, numbers[5], numbers[6], Book(*numbers[:5]))


def write_desk(desk: Desk, book: Any, slots: Any) -> None:
    """Write a desk's state back; an inactive slot is all zeros."""
    own = desk.book
    book[:5] = own.position, own.cash, own.basis, own.realised, own.filled
    book[5:7] = desk.next_sequence, desk.refused
    for place, order in enumerate(desk.slots):
        numbers = (0,) * 5
        if order is not None:
            numbers = (order.lots, order.side, order.limit, order.arrival, order.sequence)
        slots[:, place] = numbers
