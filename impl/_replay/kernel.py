"""A whole run in one launch: many simulations side by side over many events.

Each program has a block of simulations and goes through the events one after another. What a
simulation carries is in registers; counters that are seldom touched stay in memory, where each
has a single writer.
"""

from typing import NamedTuple

import triton
import triton.language as tl

from trivet.impl.decision.averages import load_average, observe, store_average
from trivet.impl.decision.signals import target_of, weigh, weights
from trivet.impl.decision.streams import centred
from trivet.impl.diagnosis.counters import (
    HOLD_BINS,
    RUN_BINS,
    UNIT_BINS,
    advance,
    bump,
    count_close,
    load_runs,
    store_runs,
    unit_bin,
)
from trivet.impl.exits.rules import STAYS, levels, reason_of, unrealised_of
from trivet.impl.orders.book import Book, load_book, settle, store_book
from trivet.impl.orders.slots import (
    Quote,
    Slots,
    delta_to,
    flatten,
    load_quote,
    load_slots,
    seed,
    store_slots,
    take_turn,
)
from trivet.impl.policy.machine import overruled
from trivet.impl.trades.credit import (
    Edges,
    credited,
    load_edges,
    observe_value,
    store_edges,
    variance,
)
from trivet.impl.trades.life import (
    Memory,
    Trade,
    ended,
    followed,
    load_trade,
    net_profit,
    passes,
    pnl_adjusted,
    store_trade,
    turned,
)

_RUN_BINS = tl.constexpr(RUN_BINS)
_HOLD_AT = tl.constexpr(UNIT_BINS)
_OUTCOME_AT = tl.constexpr(UNIT_BINS + HOLD_BINS)
# Rows of the books' state and of State.counts.
_SEQUENCE = tl.constexpr(5)
_EVENTS = tl.constexpr(0)
_MISSING = tl.constexpr(1)
_UNDEFINED = tl.constexpr(2)
_DOMINANT = tl.constexpr(3)
_WINS = tl.constexpr(5)
_CAUSES = tl.constexpr(6)


class Ledger(NamedTuple):
    """What closed trades left: by horizon, and in all (BLOCK,)."""

    edges: Edges
    returns: Edges


@triton.jit
def _close(
    ledger: Ledger,
    trade: Trade,
    book: Book,
    closes: tl.tensor,
    cause: tl.tensor,
    ts: tl.tensor,
    cost: tl.tensor,
    counts: tl.tensor,
    bins: tl.tensor,
    outcome_profit: tl.tensor,
    simulation: tl.tensor,
    column: tl.tensor,
    S: tl.tensor,
) -> Ledger:
    """Credit and count the trades that the last fill closed; cause is 0 for orders."""
    profit, lots = net_profit(trade, book, cost)
    edges = credited(ledger.edges, trade.record.dominant, profit, lots, closes, column)
    returns = observe_value(ledger.returns, profit, closes)
    held = ts - trade.record.entry_ts
    hold_bins = bins + _HOLD_AT * S
    outcome_bins = bins + _OUTCOME_AT * S
    at_entry = trade.record.at_entry
    count_close(
        closes, held, at_entry, profit, hold_bins, outcome_bins, outcome_profit, simulation, S
    )
    bump(counts + _WINS * S + simulation, closes & (profit > 0.0))
    bump(counts + (_CAUSES + cause) * S + simulation, closes)
    return Ledger(edges, returns)


@triton.jit
def _work_orders(
    slots: Slots,
    quote: Quote,
    book: Book,
    trade: Trade,
    ledger: Ledger,
    memory: Memory,
    cost: tl.tensor,
    counts: tl.tensor,
    bins: tl.tensor,
    outcome_profit: tl.tensor,
    simulation: tl.tensor,
    column: tl.tensor,
    S: tl.tensor,
    Q: tl.tensor,
) -> tuple[Slots, Quote, Book, Trade, Ledger, tl.tensor]:
    """Fill live slots, each in turn updating position, books and record.

    Also returns the quote with its sizes used up, and which trades opened at this event.
    """
    orders = tl.zeros_like(book.position)
    young = orders != 0
    for _ in range(Q):
        slots, quote, fill = take_turn(slots, quote)
        before = book.position
        book = settle(book, fill.lots, fill.price)
        closes, opens = passes(before, book.position)
        ledger = _close(
            ledger,
            trade,
            book,
            closes,
            orders,
            quote.ts,
            cost,
            counts,
            bins,
            outcome_profit,
            simulation,
            column,
            S,
        )
        trade = turned(trade, closes, opens, quote.ts, fill.price, book, memory)
        young = (young & (closes == 0)) | opens
    return slots, quote, book, trade, ledger, young


@triton.jit(do_not_specialize=["S", "E", "N", "Q", "start", "stop", "length"])
def replay_kernel(
    ts: tl.tensor,
    bid: tl.tensor,
    ask: tl.tensor,
    bid_size: tl.tensor,
    ask_size: tl.tensor,
    p: tl.tensor,
    tape: tl.tensor,
    program: tl.tensor,
    threshold: tl.tensor,
    cost: tl.tensor,
    delta_floor: tl.tensor,
    stop_multiple: tl.tensor,
    horizon_floor: tl.tensor,
    conviction_floor: tl.tensor,
    trade_floor: tl.tensor,
    max_lots: tl.tensor,
    latency: tl.tensor,
    max_hold: tl.tensor,
    book_state: tl.tensor,
    slot_state: tl.tensor,
    record: tl.tensor,
    aside: tl.tensor,
    opened: tl.tensor,
    horizon_average: tl.tensor,
    conviction_average: tl.tensor,
    edge_closed: tl.tensor,
    edge_moments: tl.tensor,
    counts: tl.tensor,
    results: tl.tensor,
    runs: tl.tensor,
    run_bins: tl.tensor,
    bins: tl.tensor,
    outcome_profit: tl.tensor,
    programs: tl.tensor,
    S: int,
    E: int,
    N: int,
    Q: int,
    start: int,
    stop: int,
    length: int,
    PROGRAMS: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr,
) -> None:
    simulation = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, COLUMNS)
    slot = tl.arange(0, SLOTS)
    S = tl.cast(S, tl.int64)
    live = simulation < S
    inside = live[:, None] & (column < N)[None, :]
    place = column[None, :] * S + simulation[:, None]
    slot_inside = live[:, None] & (slot < Q)[None, :]
    slot_place = slot[None, :] * S + simulation[:, None]

    first_event = tl.load(tape + simulation, mask=live, other=0).to(tl.int64) * E
    chosen = tl.load(program + simulation, mask=live, other=-1)
    least = tl.load(threshold + simulation, mask=live, other=0.0)
    fee = tl.load(cost + simulation, mask=live, other=1.0)
    band = tl.load(delta_floor + simulation, mask=live, other=0.0)
    multiple = tl.load(stop_multiple + simulation, mask=live, other=1.0)
    horizon_gain = tl.load(horizon_floor + simulation, mask=live, other=0.0)[:, None]
    conviction_gain = tl.load(conviction_floor + simulation, mask=live, other=0.0)
    trade_gain = tl.load(trade_floor + simulation, mask=live, other=0.0)
    most = tl.load(max_lots + simulation, mask=live, other=1)
    delay = tl.load(latency + simulation, mask=live, other=0)
    longest = tl.load(max_hold + simulation, mask=live, other=1)

    book = load_book(book_state, simulation, S, live)
    slots = load_slots(slot_state, slot_place, Q * S, slot_inside)
    trade = load_trade(record, aside, opened, simulation, column, S, N, live)
    horizons = load_average(horizon_average, place, N * S, inside)
    smoothed = load_average(conviction_average, simulation, S, live)
    edges = load_edges(edge_closed, edge_moments, edge_moments + N * S, place, inside)
    returns = load_edges(counts + 4 * S, results, results + S, simulation, live)
    ledger = Ledger(edges, returns)
    raw_runs = load_runs(runs, place, N * S, inside)
    smooth_runs = load_runs(runs + 4 * N * S, place, N * S, inside)
    sequence = tl.load(book_state + _SEQUENCE * S + simulation, mask=live, other=0)
    refused = tl.load(book_state + (_SEQUENCE + 1) * S + simulation, mask=live, other=0)
    missing = tl.load(counts + _MISSING * S + simulation, mask=live, other=0)
    undefined = tl.load(counts + _UNDEFINED * S + simulation, mask=live, other=0)
    dominant = tl.load(counts + _DOMINANT * S + simulation, mask=live, other=0).to(tl.int32)
    peak = tl.load(results + 2 * S + simulation, mask=live, other=0.0)
    deepest = tl.load(results + 3 * S + simulation, mask=live, other=0.0)

    for event in range(start, stop):
        here = first_event + event
        quote = load_quote(ts, bid, ask, bid_size, ask_size, here, live)
        raw = tl.load(p + here[:, None] * N + column[None, :], mask=inside, other=0.5)

        memory = Memory(smoothed.mean, 2.0 * tl.abs(horizons.mean), dominant)
        slots, quote, book, trade, ledger, young = _work_orders(
            slots,
            quote,
            book,
            trade,
            ledger,
            memory,
            fee,
            counts,
            bins,
            outcome_profit,
            simulation,
            column,
            S,
            Q,
        )

        move, absent = centred(raw, inside)
        missing += absent
        horizons = observe(horizons, move, horizon_gain)
        spread = variance(ledger.edges)
        weight = weights(ledger.edges.mean, spread, fee)
        signal = weigh(horizons.mean, weight, spread, column, N)
        if PROGRAMS:
            signal, bad = overruled(
                signal, horizons.mean, weight, programs, chosen, length, column, N
            )
            undefined += bad.to(tl.int64)
        dominant = signal.dominant
        smoothed = observe(smoothed, tl.abs(signal.signed), conviction_gain)

        is_open = book.position != 0
        unrealised = unrealised_of(book.position, book.basis, quote.bid, quote.ask)
        size = tl.abs(book.position)
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
        held = quote.ts - trade.record.entry_ts
        reason = reason_of(level, held, longest, is_open & (young == 0))
        fires = reason != STAYS
        slots, fill = flatten(slots, book.position, quote, fires)
        book = settle(book, fill.lots, fill.price)
        ledger = _close(
            ledger,
            trade,
            book,
            fires,
            reason.to(tl.int64),
            quote.ts,
            fee,
            counts,
            bins,
            outcome_profit,
            simulation,
            column,
            S,
        )
        trade = ended(trade, fires)

        target = target_of(signal.signed, smoothed.mean, least, most)
        delta = tl.where(fires, 0, delta_to(target, book.position, slots, band))
        slots, placed = seed(slots, delta, quote, delay, sequence, slot, Q)
        sequence += placed.to(tl.int64)
        refused += ((delta != 0) & (placed == 0)).to(tl.int64)

        raw_runs = advance(raw_runs, move, run_bins, place, N * S, inside)
        smooth_runs = advance(
            smooth_runs, horizons.mean, run_bins + _RUN_BINS * N * S, place, N * S, inside
        )
        bump(bins + unit_bin(smoothed.mean) * S + simulation, live)
        marked = 2 * book.cash + book.position * (quote.bid + quote.ask)
        equity = 0.5 * marked.to(tl.float32) - fee * book.filled.to(tl.float32)
        peak = tl.maximum(peak, equity)
        deepest = tl.maximum(deepest, peak - equity)

    store_book(book_state, simulation, S, book, live)
    store_slots(slot_state, slot_place, Q * S, slots, slot_inside)
    store_trade(record, aside, opened, simulation, column, S, N, trade, live)
    store_average(horizon_average, place, N * S, horizons, inside)
    store_average(conviction_average, simulation, S, smoothed, live)
    store_edges(edge_closed, edge_moments, edge_moments + N * S, place, ledger.edges, inside)
    store_edges(counts + 4 * S, results, results + S, simulation, ledger.returns, live)
    store_runs(runs, place, N * S, raw_runs, inside)
    store_runs(runs + 4 * N * S, place, N * S, smooth_runs, inside)
    tl.store(book_state + _SEQUENCE * S + simulation, sequence, mask=live)
    tl.store(book_state + (_SEQUENCE + 1) * S + simulation, refused, mask=live)
    seen = tl.load(counts + _EVENTS * S + simulation, mask=live, other=0)
    tl.store(counts + _EVENTS * S + simulation, seen + (stop - start), mask=live)
    tl.store(counts + _MISSING * S + simulation, missing, mask=live)
    tl.store(counts + _UNDEFINED * S + simulation, undefined, mask=live)
    tl.store(counts + _DOMINANT * S + simulation, dominant.to(tl.int64), mask=live)
    tl.store(results + 2 * S + simulation, peak, mask=live)
    tl.store(results + 3 * S + simulation, deepest, mask=live)
