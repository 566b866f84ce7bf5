"""An open trade from its first fill to its last: opened, followed event by event, closed."""

from typing import NamedTuple

import triton
import triton.language as tl

from trivet.impl.decision.averages import Average, observe
from trivet.impl.decision.signals import Signal
from trivet.impl.orders.book import Book
from trivet.impl.trades.layout import KEPT_HORIZONS
from trivet.impl.trades.record import Record, cleared, load_record, store_record

_KEPT = tl.constexpr(KEPT_HORIZONS)


class Trade(NamedTuple):
    """The open trades of a block of simulations, all zero where none is open.

    The means of magnitude (BLOCK, COLUMNS) and pnl (BLOCK,) are fields of the record; realised and
    filled, int64, are the books' totals at the open.
    """

    record: Record
    magnitude: Average
    pnl: Average
    realised: tl.tensor
    filled: tl.tensor


class Memory(NamedTuple):
    """What a simulation knows of its signal as of the event before.

    conviction (BLOCK,) float32, magnitudes (BLOCK, COLUMNS) float32, dominant (BLOCK,) int32.
    """

    conviction: tl.tensor
    magnitudes: tl.tensor
    dominant: tl.tensor


@triton.jit
def passes(before: tl.tensor, after: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Return whether a fill closes a trade and whether it opens one; through zero it does both."""
    crosses = ((before > 0) & (after < 0)) | ((before < 0) & (after > 0))
    return crosses | ((before != 0) & (after == 0)), crosses | ((before == 0) & (after != 0))


@triton.jit
def net_profit(trade: Trade, book: Book, cost: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Return net profit, float32, and closed lots, int64, of trades that the last fill closed.

    The profit is taken from the integers; what the fill opens on the other side is left out.
    """
    lots = (book.filled - tl.abs(book.position)) - trade.filled
    profit = (book.realised - trade.realised).to(tl.float32) - cost * lots.to(tl.float32)
    return profit, lots // 2


@triton.jit
def ended(trade: Trade, closes: tl.tensor) -> Trade:
    """Return the trades with everything zero where one closes."""
    many = closes[:, None]
    return Trade(
        cleared(trade.record, closes),
        Average(
            tl.where(many, 0.0, trade.magnitude.mean),
            tl.where(many, 0.0, trade.magnitude.diff_var),
            tl.where(many, 0.0, trade.magnitude.sample_var),
            tl.where(many, 0.0, trade.magnitude.last),
            tl.where(many, 0.0, trade.magnitude.seen),
        ),
        Average(
            tl.where(closes, 0.0, trade.pnl.mean),
            tl.where(closes, 0.0, trade.pnl.diff_var),
            tl.where(closes, 0.0, trade.pnl.sample_var),
            tl.where(closes, 0.0, trade.pnl.last),
            tl.where(closes, 0.0, trade.pnl.seen),
        ),
        tl.where(closes, 0, trade.realised),
        tl.where(closes, 0, trade.filled),
    )


@triton.jit
def turned(
    trade: Trade,
    closes: tl.tensor,
    opens: tl.tensor,
    ts: tl.tensor,
    price: tl.tensor,
    book: Book,
    memory: Memory,
) -> Trade:
    """Return the trades after a fill: zero where one closes, every field written where one opens.

    A fill that adds or reduces changes none. The magnitudes at the open are the first observation
    of their averages, pnl has none.
    """
    fresh = ended(trade, closes | opens)
    record = fresh.record
    many = opens[:, None]
    magnitudes = tl.where(many, memory.magnitudes, fresh.magnitude.mean)
    return Trade(
        Record(
            tl.where(opens, ts, record.entry_ts),
            tl.where(opens, price.to(tl.int32), record.price),
            tl.where(opens, book.position.to(tl.int32), record.size),
            tl.where(opens, book.realised.to(tl.float32), record.realized),
            tl.where(opens, memory.conviction, record.at_entry),
            tl.where(opens, memory.conviction, record.conviction),
            magnitudes,
            record.pnl,
            record.peak,
            record.degradation,
            record.disagreement,
            tl.where(opens, memory.dominant, record.dominant),
        ),
        Average(
            magnitudes,
            fresh.magnitude.diff_var,
            fresh.magnitude.sample_var,
            tl.where(many, memory.magnitudes, fresh.magnitude.last),
            tl.where(many, 1.0, fresh.magnitude.seen),
        ),
        fresh.pnl,
        tl.where(opens, book.realised, fresh.realised),
        tl.where(opens, book.filled - tl.abs(book.position), fresh.filled),
    )


@triton.jit
def pnl_adjusted(
    conviction: tl.tensor, unrealised: tl.tensor, cost: tl.tensor, size: tl.tensor
) -> tl.tensor:
    """Return conviction times the open profit in units of its cost, clamped to [-1, 1]."""
    share = tl.div_rn(unrealised, cost * tl.maximum(size, 1).to(tl.float32))
    return conviction * tl.minimum(tl.maximum(share, -1.0), 1.0)


@triton.jit
def _chosen(follows: tl.tensor, after: Average, before: Average) -> Average:
    """Return the averages after where a trade is followed, before elsewhere."""
    return Average(
        tl.where(follows, after.mean, before.mean),
        tl.where(follows, after.diff_var, before.diff_var),
        tl.where(follows, after.sample_var, before.sample_var),
        tl.where(follows, after.last, before.last),
        tl.where(follows, after.seen, before.seen),
    )


@triton.jit
def followed(
    trade: Trade,
    follows: tl.tensor,
    conviction: tl.tensor,
    magnitudes: tl.tensor,
    signal: Signal,
    unrealised: tl.tensor,
    adjusted: tl.tensor,
    floor: tl.tensor,
) -> Trade:
    """Return the trades after one more event, where they were open before it.

    All of the signal is this event's; adjusted is its conviction as `pnl_adjusted` has it.
    """
    record = trade.record
    magnitude = observe(trade.magnitude, magnitudes, floor[:, None])
    pnl = observe(trade.pnl, adjusted, floor)
    faded = conviction < 0.5 * record.at_entry
    apart = ((signal.first > 0.0) & (signal.last < 0.0)) | (
        (signal.first < 0.0) & (signal.last > 0.0)
    )
    degradation = tl.where(faded, record.degradation + 1, 0)
    disagreement = tl.where(apart, record.disagreement + 1, 0)
    return Trade(
        Record(
            record.entry_ts,
            record.price,
            record.size,
            record.realized,
            record.at_entry,
            tl.where(follows, conviction, record.conviction),
            record.magnitudes,
            record.pnl,
            tl.where(follows, tl.maximum(record.peak, unrealised), record.peak),
            tl.where(follows, degradation, record.degradation),
            tl.where(follows, disagreement, record.disagreement),
            record.dominant,
        ),
        _chosen(follows[:, None], magnitude, trade.magnitude),
        _chosen(follows, pnl, trade.pnl),
        trade.realised,
        trade.filled,
    )


@triton.jit
def load_trade(
    words: tl.tensor,
    aside: tl.tensor,
    opened: tl.tensor,
    simulation: tl.tensor,
    column: tl.tensor,
    S: tl.tensor,
    N: tl.tensor,
    live: tl.tensor,
) -> Trade:
    """Read trades: records (S, 16) int32, aside (20, S) float32, opened (2, S) int64.

    aside has diff_var, sample_var, last and seen of four magnitudes, then of pnl.
    """
    record = load_record(words, simulation, column, live)
    kept = live[:, None] & ((column < _KEPT) & (column < N))[None, :]
    place = column[None, :] * S + simulation[:, None]
    step = _KEPT * S
    rest = aside + 4 * step + simulation
    return Trade(
        record,
        Average(
            record.magnitudes,
            tl.load(aside + place, mask=kept, other=0.0),
            tl.load(aside + step + place, mask=kept, other=0.0),
            tl.load(aside + 2 * step + place, mask=kept, other=0.0),
            tl.load(aside + 3 * step + place, mask=kept, other=0.0),
        ),
        Average(
            record.pnl,
            tl.load(rest, mask=live, other=0.0),
            tl.load(rest + S, mask=live, other=0.0),
            tl.load(rest + 2 * S, mask=live, other=0.0),
            tl.load(rest + 3 * S, mask=live, other=0.0),
        ),
        tl.load(opened + simulation, mask=live, other=0),
        tl.load(opened + S + simulation, mask=live, other=0),
    )


@triton.jit
def store_trade(
    words: tl.tensor,
    aside: tl.tensor,
    opened: tl.tensor,
    simulation: tl.tensor,
    column: tl.tensor,
    S: tl.tensor,
    N: tl.tensor,
    trade: Trade,
    live: tl.tensor,
) -> None:
    """Write trades as `load_trade` reads them, every byte of the records."""
    record = trade.record
    whole = Record(
        record.entry_ts,
        record.price,
        record.size,
        record.realized,
        record.at_entry,
        record.conviction,
        trade.magnitude.mean,
        trade.pnl.mean,
        record.peak,
        record.degradation,
        record.disagreement,
        record.dominant,
    )
    store_record(words, simulation, column, whole, live)
    kept = live[:, None] & ((column < _KEPT) & (column < N))[None, :]
    place = column[None, :] * S + simulation[:, None]
    step = _KEPT * S
    tl.store(aside + place, trade.magnitude.diff_var, mask=kept)
    tl.store(aside + step + place, trade.magnitude.sample_var, mask=kept)
    tl.store(aside + 2 * step + place, trade.magnitude.last, mask=kept)
    tl.store(aside + 3 * step + place, trade.magnitude.seen, mask=kept)
    rest = aside + 4 * step + simulation
    tl.store(rest, trade.pnl.diff_var, mask=live)
    tl.store(rest + S, trade.pnl.sample_var, mask=live)
    tl.store(rest + 2 * S, trade.pnl.last, mask=live)
    tl.store(rest + 3 * S, trade.pnl.seen, mask=live)
    tl.store(opened + simulation, trade.realised, mask=live)
    tl.store(opened + S + simulation, trade.filled, mask=live)
