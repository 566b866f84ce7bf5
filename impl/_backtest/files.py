"""Events from CSV and Parquet files, each malformed one an error naming line or event and field."""

import csv
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from trivet.impl._backtest.tape import EventsError, Tape

# Columns of a file, the tape's array that each becomes, its smallest and largest value. A time
# leaves room for the latency that is added to it.
COLUMNS = {
    "ts_ns": ("ts", np.int64, 0, 2**62),
    "bid_px_x100": ("bid", np.int32, -(2**31), 2**31 - 1),
    "ask_px_x100": ("ask", np.int32, -(2**31), 2**31 - 1),
    "bid_size": ("bid_size", np.int32, 0, 2**31 - 1),
    "ask_size": ("ask_size", np.int32, 0, 2**31 - 1),
}
_P = "p_"


def read_csv(path: Path, horizons: Sequence[int] | None = None) -> Tape:
    """The events of a CSV file with a header; raises EventsError naming line and field.

    Columns are those of COLUMNS and `p_h30` and the like for each horizon (all that there are,
    where none are given); an empty p counts as missing. Other columns are left alone.
    """
    broken: list[Any] = []

    def refuse(row: Any) -> str:
        broken.append(row)
        return "error"

    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            names = next(csv.reader(file), [])
        table = pa.csv.read_csv(
            path,
            # One thread, since only then an error has the number of its row.
            read_options=pa.csv.ReadOptions(use_threads=False),
            parse_options=pa.csv.ParseOptions(ignore_empty_lines=False, invalid_row_handler=refuse),
            convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        where, text = "", f"cannot be read as CSV: {_reason(error)}"
        if broken:
            got, wanted = broken[0].actual_columns, broken[0].expected_columns
            where, text = f", line {broken[0].number}", f"must have {wanted} fields, got {got}"
        raise EventsError(f"{path}{where}: {text}") from None
    return _Reader(path, table, lines=True).tape(horizons)


def read_parquet(path: Path, horizons: Sequence[int] | None = None) -> Tape:
    """The events of a Parquet file, columns as in `read_csv`; raises EventsError."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        text = f"cannot be read as Parquet, is it whole? {_reason(error)}"
        raise EventsError(f"{path}: {text}") from None
    return _Reader(path, table, lines=False).tape(horizons)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return getattr(error, "strerror", None) or str(error).strip().splitlines()[0]


class _Reader:
    """Turns the columns of one table into a tape."""

    def __init__(self, path: Path, table: pa.Table, lines: bool) -> None:
        self.path, self.table, self.lines = path, table, lines

    def tape(self, horizons: Sequence[int] | None) -> Tape:
        found = [name for name in self.table.column_names if name.startswith(f"{_P}h")]
        wanted = found if horizons is None else [f"{_P}h{each}" for each in horizons]
        if not wanted:
            raise EventsError(
                f"{self.path}: has no column like p_h30, the probability of a horizon"
            )
        for name in (*COLUMNS, *wanted):
            self._require(name)
        if not self.table.num_rows:
            raise EventsError(f"{self.path}: has no events")
        arrays = {
            place: self._whole(name, least, most).astype(dtype)
            for name, (place, dtype, least, most) in COLUMNS.items()
        }
        back = np.flatnonzero(np.diff(arrays["ts"]) < 0)
        if len(back):
            event = int(back[0]) + 1
            before, now = arrays["ts"][event - 1 : event + 1]
            raise self._error(event, "ts_ns", f"runs backwards, got {now} after {before}")
        p = np.stack([self._probability(name) for name in wanted], axis=1)
        return Tape(tuple(name.removeprefix(_P) for name in wanted), p=p, **arrays)

    def _require(self, name: str) -> None:
        names = self.table.column_names
        if names.count(name) == 1:
            return
        if name in names:
            raise EventsError(f"{self.path}: has column {name!r} twice")
        near = difflib.get_close_matches(name, names, 1, 0.0) or ["none"]
        raise EventsError(
            f"{self.path}: has no column {name!r}; the nearest is {near[0]!r}, it has "
            f"{', '.join(names)}"
        )

    def _error(self, event: int, name: str, text: str) -> EventsError:
        where = f"line {event + 2} (event {event})" if self.lines else f"event {event}"
        return EventsError(f"{self.path}, {where}: {name} {text}")

    def _whole(self, name: str, least: int, most: int) -> np.ndarray:
        """A column of whole numbers."""
        column = self.table.column(name)
        wanted = f"must be a whole number from {least} to {most}"
        values = self._cast(name, column, pa.int64(), wanted)
        bad = np.flatnonzero((values < least) | (values > most))
        if len(bad):
            raise self._error(int(bad[0]), name, f"{wanted}, got {values[bad[0]]}")
        return values

    def _probability(self, name: str) -> np.ndarray:
        """A column of probabilities; what is missing is NaN."""
        column = self.table.column(name)
        if self.lines:
            column = pc.if_else(pc.equal(column, ""), "nan", column)
        wanted = "must be a number from 0 to 1, or NaN"
        values = self._cast(name, column, pa.float64(), wanted, missing=np.nan)
        bad = np.flatnonzero((values < 0) | (values > 1))
        if len(bad):
            raise self._error(int(bad[0]), name, f"{wanted}, got {values[bad[0]]}")
        return values.astype(np.float32)

    def _cast(
        self,
        name: str,
        column: pa.ChunkedArray,
        target: pa.DataType,
        wanted: str,
        missing: float | None = None,
    ) -> np.ndarray:
        """The column as numbers; the first value that is none is an error."""
        try:
            numbers = column.cast(target)
        except pa.ArrowException:
            event = next(n for n, value in enumerate(column) if not _casts(value, target))
            raise self._error(event, name, f"{wanted}, got {column[event].as_py()!r}") from None
        if missing is not None:
            numbers = numbers.fill_null(missing)
        if numbers.null_count:
            event = pc.index(pc.is_null(numbers), True).as_py()
            raise self._error(event, name, f"{wanted}, got nothing")
        return np.asarray(numbers.to_numpy())


def _casts(value: pa.Scalar, target: pa.DataType) -> bool:
    try:
        value.cast(target)
    except pa.ArrowException:
        return False
    return True
