"""The events of a backtest from CSV and Parquet files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trivet.impl import _tables
from trivet.impl._backtest.tape import Tape
from trivet.impl._tables import Columns, EventsError

# Columns of whole numbers, the tape's array that each becomes, its smallest and largest value.
COLUMNS = {
    "bid_px_x100": ("bid", -(2**31), 2**31 - 1),
    "ask_px_x100": ("ask", -(2**31), 2**31 - 1),
    "bid_size": ("bid_size", 0, 2**31 - 1),
    "ask_size": ("ask_size", 0, 2**31 - 1),
}
# A time leaves room for the latency that is added to it.
TIME, LATEST = "ts_ns", 2**62
_P = "p_"


def read_csv(path: Path, horizons: Sequence[int] | None = None) -> Tape:
    """The events of a CSV file with a header; raises EventsError naming line and field.

    Columns are ts_ns, those of COLUMNS and `p_h30` and the like for each horizon (all that there
    are, where none are given); an empty p counts as missing. Other columns are left alone.
    """
    return _tape(_tables.read_csv(path), horizons)


def read_parquet(path: Path, horizons: Sequence[int] | None = None) -> Tape:
    """The events of a Parquet file, columns as in `read_csv`; raises EventsError."""
    return _tape(_tables.read_parquet(path), horizons)


def _tape(columns: Columns, horizons: Sequence[int] | None) -> Tape:
    found = [name for name in columns.names if name.startswith(f"{_P}h")]
    wanted = found if horizons is None else [f"{_P}h{each}" for each in horizons]
    if not wanted:
        raise EventsError(f"{columns.path}: has no column like p_h30, the probability of a horizon")
    columns.require(TIME, *COLUMNS, *wanted)
    times = columns.times(TIME, LATEST)
    arrays = {
        place: columns.whole(name, least, most).astype(np.int32)
        for name, (place, least, most) in COLUMNS.items()
    }
    p = np.stack([columns.probability(name) for name in wanted], axis=1)
    return Tape(tuple(name.removeprefix(_P) for name in wanted), ts=times, p=p, **arrays)
