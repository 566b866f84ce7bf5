"""The open trade record: the one definition of its 64 bytes, for kernels, host and readers."""

import numpy as np
import torch
import triton.language as tl

# Bytes from one simulation's record to the next, fields by name: offset and NumPy format.
STRIDE = 64
FIELDS: dict[str, tuple[int, str]] = {
    "entry_ts_ns": (0, "<u8"),
    "entry_px_x100": (8, "<i4"),
    "entry_size": (12, "<i4"),
    "realized_at_open": (16, "<f4"),
    "conviction_at_entry": (20, "<f4"),
    "conviction_ema": (24, "<f4"),
    "conviction_per_horizon_ema": (28, "(4,)<f4"),
    "pnl_adjusted_conviction_ema": (44, "<f4"),
    "peak_unrealized_pnl": (48, "<f4"),
    "degradation_consecutive_events": (52, "<u4"),
    "disagreement_consecutive_events": (56, "<u4"),
    "horizon_idx_dominant_at_entry": (60, "u1"),
}
RECORD = np.dtype(
    {
        "names": list(FIELDS),
        "formats": [kind for _, kind in FIELDS.values()],
        "offsets": [offset for offset, _ in FIELDS.values()],
        "itemsize": STRIDE,
    }
)
# The horizons whose magnitudes the record has a place for.
KEPT_HORIZONS = 4


def _word(field: str) -> tl.constexpr:
    """Return the index of a field's first 4-byte word, for kernels, which read whole words."""
    return tl.constexpr(FIELDS[field][0] // 4)


WORDS = tl.constexpr(STRIDE // 4)
TS_WORD = _word("entry_ts_ns")
PRICE_WORD = _word("entry_px_x100")
SIZE_WORD = _word("entry_size")
REALIZED_WORD = _word("realized_at_open")
AT_ENTRY_WORD = _word("conviction_at_entry")
CONVICTION_WORD = _word("conviction_ema")
HORIZONS_WORD = _word("conviction_per_horizon_ema")
PNL_WORD = _word("pnl_adjusted_conviction_ema")
PEAK_WORD = _word("peak_unrealized_pnl")
DEGRADATION_WORD = _word("degradation_consecutive_events")
DISAGREEMENT_WORD = _word("disagreement_consecutive_events")
DOMINANT_WORD = _word("horizon_idx_dominant_at_entry")


def records_of(record: torch.Tensor) -> np.ndarray:
    """Return the records (S,) of the words (S, 16) int32, with the layout's field names."""
    return record.cpu().contiguous().numpy().view(RECORD)[:, 0]
