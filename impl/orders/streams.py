"""A stream of targets worked into orders, fills and books, many events a launch."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.orders.book import load_book, settle, store_book
from trivet.impl.orders.slots import (
    BUY,
    FLATTEN,
    NONE,
    SELL,
    delta_to,
    flatten,
    load_quote,
    load_slots,
    seed,
    store_slots,
    take_turn,
)

# Rows of the state of the books and of the slots: fields of Book and Slots, and two counters.
BOOK_FIELDS = ("position", "cash", "basis", "realised", "filled", "sequence", "refused")
SLOT_FIELDS = ("lots", "side", "limit", "arrival", "sequence")
_COUNTERS = tl.constexpr(5)
QUOTE_DTYPES = {
    "ts": torch.int64,
    "bid": torch.int32,
    "ask": torch.int32,
    "bid_size": torch.int32,
    "ask_size": torch.int32,
}


@triton.jit(do_not_specialize=["E", "Q"])
def _work_kernel(
    ts: tl.tensor,
    bid: tl.tensor,
    ask: tl.tensor,
    bid_size: tl.tensor,
    ask_size: tl.tensor,
    target: tl.tensor,
    exits: tl.tensor,
    delta_floor: tl.tensor,
    latency: tl.tensor,
    book_state: tl.tensor,
    slot_state: tl.tensor,
    position: tl.tensor,
    side: tl.tensor,
    lots: tl.tensor,
    active: tl.tensor,
    S: int,
    E: int,
    Q: int,
    BLOCK: tl.constexpr,
    SLOTS: tl.constexpr,
) -> None:
    simulation = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, SLOTS)
    live = simulation < S
    inside = live[:, None] & (column < Q)[None, :]
    place = column[None, :] * S + simulation[:, None]
    floor = tl.load(delta_floor + simulation, mask=live, other=0.0)
    delay = tl.load(latency + simulation, mask=live, other=0)
    book = load_book(book_state, simulation, S, live)
    slots = load_slots(slot_state, place, Q * S, inside)
    counters = book_state + _COUNTERS * S + simulation
    sequence = tl.load(counters, mask=live, other=0)
    refused = tl.load(counters + S, mask=live, other=0)
    here = tl.zeros([BLOCK], tl.int64)
    for event in range(E):
        quote = load_quote(ts, bid, ask, bid_size, ask_size, here + event, live)
        for _ in range(Q):
            slots, quote, fill = take_turn(slots, quote)
            book = settle(book, fill.lots, fill.price)
        row = tl.cast(event, tl.int64) * S + simulation
        fires = tl.load(exits + row, mask=live, other=0) != 0
        slots, fill = flatten(slots, book.position, quote, fires)
        book = settle(book, fill.lots, fill.price)
        wanted = tl.load(target + row, mask=live, other=0).to(tl.int64)
        delta = tl.where(fires, 0, delta_to(wanted, book.position, slots, floor))
        slots, placed = seed(slots, delta, quote, delay, sequence, column, Q)
        sequence += placed.to(tl.int64)
        refused += ((delta != 0) & (placed == 0)).to(tl.int64)
        sent = tl.where(placed, tl.where(delta > 0, BUY, SELL), NONE)
        tl.store(position + row, book.position.to(tl.int32), mask=live)
        tl.store(side + row, tl.where(fires, FLATTEN, sent), mask=live)
        tl.store(lots + row, tl.where(placed, tl.abs(delta), 0).to(tl.int32), mask=live)
        tl.store(active + row, tl.sum((slots.lots > 0).to(tl.int32), axis=1), mask=live)
    store_book(book_state, simulation, S, book, live)
    store_slots(slot_state, place, Q * S, slots, inside)
    tl.store(counters, sequence, mask=live)
    tl.store(counters + S, refused, mask=live)


def work(
    ts: torch.Tensor,
    bid: torch.Tensor,
    ask: torch.Tensor,
    bid_size: torch.Tensor,
    ask_size: torch.Tensor,
    target: torch.Tensor,
    exits: torch.Tensor,
    delta_floor: torch.Tensor,
    latency: torch.Tensor,
    book: torch.Tensor,
    slots: torch.Tensor,
    *,
    block: int = 32,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Work targets over E events: position, side, lots and active slots after each, (E, S) int32.

    ts (E,) int64 ns; bid, ask in hundredths, bid_size, ask_size in lots (E,) int32; target (E, S)
    int32; exits (E, S) int32, 1 where everything is flattened instead; delta_floor (S,) float32;
    latency (S,) int64 ns. book (7, S) and slots (5, Q, S) int64 are the state: read first, and
    written with what it is after the last event. side is 0 buy, 1 sell, 2 none, 3 flatten
    (backtest.md, 2 and 3). One launch. Raises ValueError, naming the event where time runs back.
    """
    quotes = {"ts": ts, "bid": bid, "ask": ask, "bid_size": bid_size, "ask_size": ask_size}
    _check_work(quotes, book, slots, {"target": target, "exits": exits}, delta_floor, latency)
    _checks.blocks(block=block)
    (_, places, simulations), events = slots.shape, ts.shape[0]
    outputs = [torch.empty_like(target) for _ in range(4)]
    if simulations:
        given = (*quotes.values(), target, exits, delta_floor, latency, book, slots, *outputs)
        sizes = (simulations, events, places, block, triton.next_power_of_2(places))
        _work_kernel[(triton.cdiv(simulations, block),)](*given, *sizes, num_warps=1)
    position, side, lots, active = outputs
    return position, side, lots, active


def _check_work(
    quotes: dict[str, torch.Tensor],
    book: torch.Tensor,
    slots: torch.Tensor,
    wishes: dict[str, torch.Tensor],
    delta_floor: torch.Tensor,
    latency: torch.Tensor,
) -> None:
    """TypeError or ValueError naming the argument of `work` that is wrong."""
    arguments = _checks.Arguments(B=len(BOOK_FIELDS), F=len(SLOT_FIELDS))
    for name, value in quotes.items():
        arguments.tensor(name, value, "E", QUOTE_DTYPES[name])
    arguments.tensor("book", book, "B S", torch.int64)
    arguments.tensor("slots", slots, "F Q S", torch.int64)
    for name, value in wishes.items():
        arguments.tensor(name, value, "E S", torch.int32)
    arguments.tensor("delta_floor", delta_floor, "S", torch.float32)
    arguments.tensor("latency", latency, "S", torch.int64)
    check_quotes(quotes["ts"], quotes["bid_size"], quotes["ask_size"])
    _checks.every("delta_floor", delta_floor, delta_floor >= 0, "not negative")
    check_not_negative("latency", latency)
    _checks.count("Q", slots.shape[1], 1)


def check_quotes(ts: torch.Tensor, bid_size: torch.Tensor, ask_size: torch.Tensor) -> None:
    """ValueError naming the first event at which time runs backwards or a size is negative."""
    back = (ts[..., 1:] < ts[..., :-1]).nonzero()
    if len(back):
        *tape, event = (int(i) for i in back[0])
        before, now = ts[(*tape, event)].item(), ts[(*tape, event + 1)].item()
        where = f" of tape {tape[0]}" if tape else ""
        raise ValueError(
            f"ts must not run backwards, got {now} at event {event + 1}{where} after {before}"
        )
    for name, size in (("bid_size", bid_size), ("ask_size", ask_size)):
        check_not_negative(name, size)


def check_not_negative(name: str, value: torch.Tensor) -> None:
    """ValueError naming the first element under 0."""
    _checks.every(name, value, value >= 0, "not negative")
