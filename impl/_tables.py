"""Columns of CSV and Parquet files, each malformed one an error naming line or event and field."""

import csv
import difflib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq


class EventsError(ValueError):
    """Events that cannot be used; the text names the file, the field, and the event or line."""


def read_csv(path: Path) -> "Columns":
    """The columns of a CSV file with a header; raises EventsError."""
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
    return Columns(path, table, lines=True)


def read_parquet(path: Path) -> "Columns":
    """The columns of a Parquet file; raises EventsError."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        text = f"cannot be read as Parquet, is it whole? {_reason(error)}"
        raise EventsError(f"{path}: {text}") from None
    return Columns(path, table, lines=False)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return getattr(error, "strerror", None) or str(error).strip().splitlines()[0]


class Columns:
    """The table of one file; an event is one row. `lines` says whether rows are lines of text."""

    def __init__(self, path: Path, table: pa.Table, lines: bool) -> None:
        self.path, self.table, self.lines = path, table, lines

    @property
    def names(self) -> list[str]:
        """The columns' names, in the file's order."""
        return list(self.table.column_names)

    def require(self, *names: str) -> None:
        """EventsError unless each is the name of one column, and there is an event at all."""
        for name in names:
            self._require(name)
        if not self.table.num_rows:
            raise EventsError(f"{self.path}: has no events")

    def _require(self, name: str) -> None:
        if self.names.count(name) == 1:
            return
        if name in self.names:
            raise EventsError(f"{self.path}: has column {name!r} twice")
        near = difflib.get_close_matches(name, self.names, 1, 0.0) or ["none"]
        raise EventsError(
            f"{self.path}: has no column {name!r}; the nearest is {near[0]!r}, it has "
            f"{', '.join(self.names)}"
        )

    def error(self, event: int, name: str, text: str) -> EventsError:
        """The error of one field of one event."""
        where = f"line {event + 2} (event {event})" if self.lines else f"event {event}"
        return EventsError(f"{self.path}, {where}: {name} {text}")

    def times(self, name: str, latest: int) -> np.ndarray:
        """A column (E,) int64 that never runs backwards, from 0 to `latest`."""
        times = self.whole(name, 0, latest)
        back = np.flatnonzero(np.diff(times) < 0)
        if len(back):
            event = int(back[0]) + 1
            before, now = times[event - 1 : event + 1]
            raise self.error(event, name, f"runs backwards, got {now} after {before}")
        return times

    def whole(self, name: str, least: int, most: int) -> np.ndarray:
        """A column (E,) int64 of whole numbers from least to most."""
        wanted = f"must be a whole number from {least} to {most}"
        values = self._cast(name, self.table.column(name), pa.int64(), wanted)
        self._inside(name, values, (values >= least) & (values <= most), wanted)
        return values

    def probability(self, name: str) -> np.ndarray:
        """A column (E,) float32 from 0 to 1; what is missing is NaN."""
        column = self.table.column(name)
        if self.lines:
            column = pc.if_else(pc.equal(column, ""), "nan", column)
        wanted = "must be a number from 0 to 1, or NaN"
        values = self._cast(name, column, pa.float64(), wanted, missing=np.nan)
        self._inside(name, values, ~((values < 0) | (values > 1)), wanted)
        return values.astype(np.float32)

    def finite(self, name: str) -> np.ndarray:
        """A column (E,) of finite float32 numbers."""
        wanted = "must be a finite float32 number"
        values = self._cast(name, self.table.column(name), pa.float64(), wanted)
        with np.errstate(over="ignore"):
            kept = values.astype(np.float32)
        self._inside(name, values, np.isfinite(kept), wanted)
        return kept

    def _inside(self, name: str, values: np.ndarray, good: np.ndarray, wanted: str) -> None:
        bad = np.flatnonzero(~good)
        if len(bad):
            raise self.error(int(bad[0]), name, f"{wanted}, got {values[bad[0]]}")

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
            raise self.error(event, name, f"{wanted}, got {column[event].as_py()!r}") from None
        if missing is not None:
            numbers = numbers.fill_null(missing)
        if numbers.null_count:
            event = pc.index(pc.is_null(numbers), True).as_py()
            raise self.error(event, name, f"{wanted}, got nothing")
        return np.array(numbers.to_numpy())


def _casts(value: pa.Scalar, target: pa.DataType) -> bool:
    try:
        value.cast(target)
    except pa.ArrowException:
        return False
    return True
