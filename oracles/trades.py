"""The open trade record, from its table, and what closing a trade credits.

Records are 64 bytes each, given as 16 little-endian words of 4 bytes.
"""

import struct
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from trivet.oracles._pinned import pinned

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
# The table, one row after another: u64; i32 i32; f32 f32 f32; 4 f32; f32 f32; u32 u32; u8; 3 zero.
_RECORD = struct.Struct("<Qiifff4fffIIB3x")
_BYTES = 64


def words_of(*fields: Any) -> list[int]:
    """The 16 words of one record from its fields in the table's order."""
    return list(struct.unpack("<16i", _RECORD.pack(*fields)))


def fields_of(words: Sequence[int]) -> tuple[Any, ...]:
    """The fields of one record, floats in float32."""
    found = _RECORD.unpack(struct.pack("<16i", *map(int, words)))
    return tuple(np.float32(x) if isinstance(x, float) else x for x in found)


@pinned
def pack(
    entry_ts: Any,
    price: Any,
    size: Any,
    realized: Any,
    at_entry: Any,
    conviction: Any,
    magnitudes: Any,
    pnl: Any,
    peak: Any,
    degradation: Any,
    disagreement: Any,
    dominant: Any,
) -> Any:
    """The records (S, 16)."""
    before = (entry_ts, price, size, realized, at_entry, conviction)
    after = (pnl, peak, degradation, disagreement, dominant)
    rows = [
        words_of(
            *(_plain(field[s]) for field in before),
            *map(float, magnitudes[s]),
            *(_plain(field[s]) for field in after),
        )
        for s in range(len(entry_ts))
    ]
    return np.array(rows, np.int64).reshape(-1, _BYTES // 4)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, np.floating) else int(value)


@pinned
def unpack(record: Any) -> tuple[Any, ...]:
    """The fields of the records, as ``pack`` takes them."""
    rows = [fields_of(words) for words in record]
    columns = list(zip(*rows, strict=True)) or [()] * 15
    kinds = [np.int64] * 3 + [np.float32] * 3
    first = [np.array(c, kind) for c, kind in zip(columns[:6], kinds, strict=True)]
    magnitudes = np.array(columns[6:10], np.float32).T.reshape(-1, 4)
    last = [np.array(c, np.float32) for c in columns[10:12]]
    return *first, magnitudes, *last, *(np.array(c, np.int64) for c in columns[12:])


def credit(
    m: Any,
    record: Any,
    profit: Any,
    lots: Any,
    closes: Any,
    closed: Any,
    mean: Any,
    square: Any,
) -> tuple[Any, ...]:
    """record, closed, mean and square after the closes; byte 60 names the horizon credited."""
    dominant = record.view(np.int64)[:, 15] & 0xFF
    ends = closes != 0
    counts = ends[None, :] & (np.arange(mean.shape[0])[:, None] == dominant[None, :])
    number = closed + counts
    gap = (profit / lots)[None, :] - mean
    moved = mean + gap / np.maximum(number, 1)
    return (
        np.where(ends[:, None], 0, record),
        number,
        m.where(counts, moved, mean),
        m.where(counts, square + gap * ((profit / lots)[None, :] - moved), square),
    )


def credit_scalar(
    index: tuple[int, ...],
    output: str,
    record: Sequence[Sequence[int]],
    profit: Sequence[float],
    lots: Sequence[int],
    closes: Sequence[int],
    closed: Sequence[Sequence[int]],
    mean: Sequence[Sequence[float]],
    square: Sequence[Sequence[float]],
) -> Any:
    """One word of a record, or one moment of one horizon."""
    s = index[-1] if output != "record" else index[0]
    if output == "record":
        return 0 if closes[s] else int(record[s][index[1]])
    horizon = index[0]
    own = bool(closes[s]) and int(record[s][15]) % 256 == horizon
    count = int(closed[horizon][s]) + own
    if output == "closed":
        return count
    before = mpmath.mpf(float(mean[horizon][s]))
    spread = mpmath.mpf(float(square[horizon][s]))
    if not own:
        return before if output == "mean" else spread
    with mpmath.workprec(_BITS):
        x = mpmath.mpf(float(profit[s])) / int(lots[s])
        after = before + (x - before) / count
        return after if output == "mean" else spread + (x - before) * (x - after)
