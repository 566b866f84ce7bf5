"""Reading and writing open trade records, and the two kernels that do nothing else."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.trades.layout import (
    AT_ENTRY_WORD,
    CONVICTION_WORD,
    DEGRADATION_WORD,
    DISAGREEMENT_WORD,
    DOMINANT_WORD,
    HORIZONS_WORD,
    KEPT_HORIZONS,
    PEAK_WORD,
    PNL_WORD,
    PRICE_WORD,
    REALIZED_WORD,
    SIZE_WORD,
    STRIDE,
    TS_WORD,
    WORDS,
)

# What `pack` takes and `unpack` returns, in order.
FIELD_DTYPES = {
    "entry_ts": torch.int64,
    "price": torch.int32,
    "size": torch.int32,
    "realized": torch.float32,
    "at_entry": torch.float32,
    "conviction": torch.float32,
    "magnitudes": torch.float32,
    "pnl": torch.float32,
    "peak": torch.float32,
    "degradation": torch.int32,
    "disagreement": torch.int32,
    "dominant": torch.int32,
}
_KEPT = tl.constexpr(KEPT_HORIZONS)


class Record(NamedTuple):
    """The open trade records of a block of simulations, all zero where none is open.

    entry_ts int64; price, size, degradation, disagreement, dominant int32; magnitudes a float32
    tile (BLOCK, COLUMNS) of which the first four are kept; the others float32.
    """

    entry_ts: tl.tensor
    price: tl.tensor
    size: tl.tensor
    realized: tl.tensor
    at_entry: tl.tensor
    conviction: tl.tensor
    magnitudes: tl.tensor
    pnl: tl.tensor
    peak: tl.tensor
    degradation: tl.tensor
    disagreement: tl.tensor
    dominant: tl.tensor


@triton.jit
def _float_at(first: tl.tensor, word: tl.constexpr, live: tl.tensor) -> tl.tensor:
    return tl.load(first + word, mask=live, other=0).to(tl.float32, bitcast=True)


@triton.jit
def load_record(
    words: tl.tensor, simulation: tl.tensor, column: tl.tensor, live: tl.tensor
) -> Record:
    """Read the records (S, 16) int32 of these simulations; zeros where not live."""
    first = words + simulation * WORDS
    low = tl.load(first + TS_WORD, mask=live, other=0).to(tl.int64)
    high = tl.load(first + TS_WORD + 1, mask=live, other=0).to(tl.int64)
    kept = live[:, None] & (column < _KEPT)[None, :]
    each = first[:, None] + HORIZONS_WORD + column[None, :]
    return Record(
        (high << 32) | (low & 0xFFFFFFFF),
        tl.load(first + PRICE_WORD, mask=live, other=0),
        tl.load(first + SIZE_WORD, mask=live, other=0),
        _float_at(first, REALIZED_WORD, live),
        _float_at(first, AT_ENTRY_WORD, live),
        _float_at(first, CONVICTION_WORD, live),
        tl.load(each, mask=kept, other=0).to(tl.float32, bitcast=True),
        _float_at(first, PNL_WORD, live),
        _float_at(first, PEAK_WORD, live),
        tl.load(first + DEGRADATION_WORD, mask=live, other=0),
        tl.load(first + DISAGREEMENT_WORD, mask=live, other=0),
        tl.load(first + DOMINANT_WORD, mask=live, other=0) & 0xFF,
    )


@triton.jit
def _store_float(first: tl.tensor, word: tl.constexpr, value: tl.tensor, live: tl.tensor) -> None:
    tl.store(first + word, value.to(tl.int32, bitcast=True), mask=live)


@triton.jit
def store_record(
    words: tl.tensor, simulation: tl.tensor, column: tl.tensor, record: Record, live: tl.tensor
) -> None:
    """Write every byte of the records (S, 16) int32 of these simulations, where live."""
    first = words + simulation * WORDS
    low = ((record.entry_ts << 32) >> 32).to(tl.int32)
    tl.store(first + TS_WORD, low, mask=live)
    tl.store(first + TS_WORD + 1, (record.entry_ts >> 32).to(tl.int32), mask=live)
    tl.store(first + PRICE_WORD, record.price, mask=live)
    tl.store(first + SIZE_WORD, record.size, mask=live)
    _store_float(first, REALIZED_WORD, record.realized, live)
    _store_float(first, AT_ENTRY_WORD, record.at_entry, live)
    _store_float(first, CONVICTION_WORD, record.conviction, live)
    kept = live[:, None] & (column < _KEPT)[None, :]
    each = first[:, None] + HORIZONS_WORD + column[None, :]
    tl.store(each, record.magnitudes.to(tl.int32, bitcast=True), mask=kept)
    _store_float(first, PNL_WORD, record.pnl, live)
    _store_float(first, PEAK_WORD, record.peak, live)
    tl.store(first + DEGRADATION_WORD, record.degradation, mask=live)
    tl.store(first + DISAGREEMENT_WORD, record.disagreement, mask=live)
    tl.store(first + DOMINANT_WORD, record.dominant, mask=live)


@triton.jit
def cleared(record: Record, closes: tl.tensor) -> Record:
    """Return the records with all fields zero where a trade closes."""
    return Record(
        tl.where(closes, 0, record.entry_ts),
        tl.where(closes, 0, record.price),
        tl.where(closes, 0, record.size),
        tl.where(closes, 0.0, record.realized),
        tl.where(closes, 0.0, record.at_entry),
        tl.where(closes, 0.0, record.conviction),
        tl.where(closes[:, None], 0.0, record.magnitudes),
        tl.where(closes, 0.0, record.pnl),
        tl.where(closes, 0.0, record.peak),
        tl.where(closes, 0, record.degradation),
        tl.where(closes, 0, record.disagreement),
        tl.where(closes, 0, record.dominant),
    )


@triton.jit
def _pack_kernel(
    entry_ts: tl.tensor,
    price: tl.tensor,
    size: tl.tensor,
    realized: tl.tensor,
    at_entry: tl.tensor,
    conviction: tl.tensor,
    magnitudes: tl.tensor,
    pnl: tl.tensor,
    peak: tl.tensor,
    degradation: tl.tensor,
    disagreement: tl.tensor,
    dominant: tl.tensor,
    words: tl.tensor,
    S: int,
    UNPACK: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Write the records from the fields, or with UNPACK the fields from the records."""
    one = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = one < S
    column = tl.arange(0, _KEPT)
    many = one[:, None] * _KEPT + column[None, :]
    all_live = live[:, None] & (column < _KEPT)[None, :]
    if UNPACK:
        record = load_record(words, one, column, live)
        tl.store(entry_ts + one, record.entry_ts, mask=live)
        tl.store(price + one, record.price, mask=live)
        tl.store(size + one, record.size, mask=live)
        tl.store(realized + one, record.realized, mask=live)
        tl.store(at_entry + one, record.at_entry, mask=live)
        tl.store(conviction + one, record.conviction, mask=live)
        tl.store(magnitudes + many, record.magnitudes, mask=all_live)
        tl.store(pnl + one, record.pnl, mask=live)
        tl.store(peak + one, record.peak, mask=live)
        tl.store(degradation + one, record.degradation, mask=live)
        tl.store(disagreement + one, record.disagreement, mask=live)
        tl.store(dominant + one, record.dominant, mask=live)
    else:
        packed = Record(
            tl.load(entry_ts + one, mask=live, other=0),
            tl.load(price + one, mask=live, other=0),
            tl.load(size + one, mask=live, other=0),
            tl.load(realized + one, mask=live, other=0.0),
            tl.load(at_entry + one, mask=live, other=0.0),
            tl.load(conviction + one, mask=live, other=0.0),
            tl.load(magnitudes + many, mask=all_live, other=0.0),
            tl.load(pnl + one, mask=live, other=0.0),
            tl.load(peak + one, mask=live, other=0.0),
            tl.load(degradation + one, mask=live, other=0),
            tl.load(disagreement + one, mask=live, other=0),
            tl.load(dominant + one, mask=live, other=0),
        )
        store_record(words, one, column, packed, live)


def pack(
    entry_ts: torch.Tensor,
    price: torch.Tensor,
    size: torch.Tensor,
    realized: torch.Tensor,
    at_entry: torch.Tensor,
    conviction: torch.Tensor,
    magnitudes: torch.Tensor,
    pnl: torch.Tensor,
    peak: torch.Tensor,
    degradation: torch.Tensor,
    disagreement: torch.Tensor,
    dominant: torch.Tensor,
    *,
    block: int = 128,
) -> torch.Tensor:
    """Return the records (S, 16) int32, 64 bytes each, of S open trades from their fields (S,).

    entry_ts int64; price, size, degradation, disagreement, dominant int32, the last 0 to 255;
    the others float32, magnitudes (S, 4). Every byte is written. One launch.
    """
    before = (entry_ts, price, size, realized, at_entry, conviction, magnitudes)
    fields = (*before, pnl, peak, degradation, disagreement, dominant)
    arguments = _checks.Arguments(H=KEPT_HORIZONS)
    for (name, dtype), value in zip(FIELD_DTYPES.items(), fields, strict=True):
        arguments.tensor(name, value, "S H" if name == "magnitudes" else "S", dtype)
    _checks.blocks(block=block)
    _checks.within("dominant", dominant, 0, 255)
    simulations = entry_ts.shape[0]
    words = torch.empty((simulations, STRIDE // 4), dtype=torch.int32, device=entry_ts.device)
    _launch(fields, words, block, unpack=False)
    return words


def unpack(record: torch.Tensor, *, block: int = 128) -> tuple[torch.Tensor, ...]:
    """Return the fields of the records (S, 16) int32: what `pack` takes, in its order.

    One launch.
    """
    arguments = _checks.Arguments(R=STRIDE // 4)
    arguments.tensor("record", record, "S R", torch.int32)
    _checks.blocks(block=block)
    shapes = {"magnitudes": (record.shape[0], KEPT_HORIZONS)}
    fields = tuple(
        torch.empty(shapes.get(name, record.shape[:1]), dtype=dtype, device=record.device)
        for name, dtype in FIELD_DTYPES.items()
    )
    _launch(fields, record, block, unpack=True)
    return fields


def _launch(
    fields: tuple[torch.Tensor, ...], words: torch.Tensor, block: int, *, unpack: bool
) -> None:
    simulations = words.shape[0]
    if simulations:
        grid = (triton.cdiv(simulations, block),)
        _pack_kernel[grid](*fields, words, simulations, unpack, block, num_warps=1)
