"""Sources of events: seeded ones with known runs, files, and how malformed ones are named."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from trivet.impl._backtest.files import read_csv, read_parquet
from trivet.impl._backtest.synthetic import HORIZONS, REGIMES, synthetic
from trivet.impl._backtest.tape import Tape
from trivet.impl._tables import EventsError

WHOLE = "must be a whole number from -2147483648 to 2147483647"
PART = "must be a number from 0 to 1, or NaN"


def table_of(tape: Tape) -> pa.Table:
    book = {"ts_ns": tape.ts, "bid_px_x100": tape.bid, "ask_px_x100": tape.ask}
    book |= {"bid_size": tape.bid_size, "ask_size": tape.ask_size}
    return pa.table(book | {f"p_{label}": tape.p[:, h] for h, label in enumerate(tape.labels)})


@pytest.fixture(scope="module")
def tape() -> Tape:
    return synthetic("trending", 40, 3, (30, 100))


@pytest.fixture
def table(tape: Tape) -> pa.Table:
    return table_of(tape)


@pytest.mark.parametrize("regime", REGIMES)
def test_the_same_seed_gives_the_same_events(regime: str) -> None:
    one, same, other = (synthetic(regime, 50, seed) for seed in (4, 4, 5))
    for mine, again, different in zip(one.arrays(), same.arrays(), other.arrays(), strict=True):
        assert mine.tobytes() == again.tobytes()
        assert mine.tobytes() != different.tobytes()


@pytest.mark.parametrize("regime", ["trending", "reverting"])
def test_leans_are_held_for_a_tenth_of_the_horizon(regime: str) -> None:
    p = synthetic(regime, 3000, 1).p
    for h, horizon in enumerate(HORIZONS):
        above = np.sign(p[:, h] - 0.5)
        turns = np.flatnonzero(np.diff(above)) + 1
        exact = np.arange(3000) % (horizon // 10) == (
            0 if regime == "trending" else horizon // 10 // 2
        )
        assert np.isin(np.flatnonzero(exact)[1:], turns).mean() > 0.99


def test_prices_follow_a_trend_and_return_to_a_mean() -> None:
    for regime, sign in (("trending", 1), ("reverting", 0)):
        tape = synthetic(regime, 4000, 2)
        moves = np.diff((tape.bid + tape.ask) / 2)
        lean = np.sign(tape.p[1:, 3] - 0.5)
        ahead = np.corrcoef(lean, moves)[0, 1]
        assert (ahead > 0.2) == bool(sign)
    level = (tape.bid + tape.ask)[1:] - (tape.bid + tape.ask).mean()
    assert np.corrcoef(np.sign(tape.p[1:, 4] - 0.5), level)[0, 1] < -0.3


def test_synthetic_books_have_what_real_ones_have() -> None:
    tape = synthetic("noise", 5000, 1)
    assert (np.diff(tape.ts) == 0).any()
    assert (np.diff(tape.ts) > 10**10).any()
    assert (tape.bid > tape.ask).any()
    assert (tape.bid_size == 0).any()


def test_files_give_back_the_events(tape: Tape, table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "e.parquet")
    pa.csv.write_csv(table.append_column("last_px_x100", table["bid_px_x100"]), tmp_path / "e.csv")
    for read in (read_csv(tmp_path / "e.csv"), read_parquet(tmp_path / "e.parquet", (30, 100))):
        assert read.labels == ("h30", "h100")
        for mine, wanted in zip(read.arrays(), tape.arrays(), strict=True):
            assert mine.tobytes() == wanted.tobytes()


def test_a_missing_probability_is_nan(table: pa.Table, tmp_path: Path) -> None:
    values = [None, *table["p_h30"].to_pylist()[1:]]
    table = table.set_column(5, "p_h30", pa.array(values, pa.float64()))
    pq.write_table(table, tmp_path / "e.parquet")
    pa.csv.write_csv(table, tmp_path / "e.csv")
    for read in (read_csv(tmp_path / "e.csv"), read_parquet(tmp_path / "e.parquet")):
        assert np.isnan(read.p[0, 0])
        assert not np.isnan(read.p).sum(axis=0)[1]


def _cell(place: int, value: str) -> Callable[[str], str]:
    def edit(line: str) -> str:
        cells = line.split(",")
        cells[place] = value
        return ",".join(cells)

    return edit


@pytest.mark.parametrize(
    ("line", "edit", "text"),
    [
        (6, _cell(0, "5"), r"line 6 \(event 4\): ts_ns runs backwards, got 5 after \d+$"),
        (6, _cell(1, "x"), rf"line 6 \(event 4\): bid_px_x100 {WHOLE}, got 'x'"),
        (6, _cell(1, ""), rf"line 6 \(event 4\): bid_px_x100 {WHOLE}, got ''"),
        (6, _cell(2, "1.5"), rf"line 6 \(event 4\): ask_px_x100 {WHOLE}, got '1.5'"),
        (6, _cell(2, "99999999999"), rf"ask_px_x100 {WHOLE}, got 99999999999"),
        (6, _cell(3, "-3"), r"line 6 \(event 4\): bid_size must be a whole number from 0 to"),
        (6, _cell(5, "1.5"), rf"line 6 \(event 4\): p_h30 {PART}, got 1.5"),
        (6, _cell(5, "abc"), rf"line 6 \(event 4\): p_h30 {PART}, got 'abc'"),
        (6, lambda line: line + ",1", r"line 6: must have 7 fields, got 8"),
        (6, lambda line: "", r"line 6 \(event 4\): ts_ns must be a whole number .* got ''"),
        (1, _cell(3, "bidsize"), r"has no column 'bid_size'; the nearest is 'bidsize', it has ts"),
        (1, _cell(4, "bid_size"), r"has column 'bid_size' twice"),
    ],
)
def test_a_malformed_csv_names_line_and_field(
    line: int, edit: Callable[[str], str], text: str, table: pa.Table, tmp_path: Path
) -> None:
    path = tmp_path / "e.csv"
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(quoting_style="none"))
    lines = path.read_text().splitlines()
    lines[line - 1] = edit(lines[line - 1])
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(EventsError, match=text) as caught:
        read_csv(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("place", "name", "values", "text"),
    [
        (0, "ts_ns", [1] * 7 + [0], r"event 7: ts_ns runs backwards, got 0 after 1"),
        (1, "bid_px_x100", [1.0] * 7 + [np.nan], rf"event 7: bid_px_x100 {WHOLE}, got nan"),
        (1, "bid_px_x100", [1] * 7 + [None], rf"event 7: bid_px_x100 {WHOLE}, got nothing"),
        (5, "p_h30", [0.5] * 7 + [-0.5], rf"event 7: p_h30 {PART}, got -0.5"),
        (5, "p_h30", ["a"] * 8, rf"event 0: p_h30 {PART}, got 'a'"),
        (3, "size", [1] * 8, r"has no column 'bid_size'; the nearest is 'size'"),
    ],
)
def test_a_malformed_parquet_names_event_and_field(
    place: int, name: str, values: list[object], text: str, table: pa.Table, tmp_path: Path
) -> None:
    table = table.slice(0, 8).set_column(place, name, pa.array(values))
    pq.write_table(table, tmp_path / "e.parquet")
    with pytest.raises(EventsError, match=text):
        read_parquet(tmp_path / "e.parquet")


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_a_truncated_parquet_is_named(kept: float, table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pq.write_table(table, path)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(EventsError, match=r"cannot be read as Parquet, is it whole\? "):
        read_parquet(path)


@pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
def test_files_without_events_are_named(name: str, table: pa.Table, tmp_path: Path) -> None:
    read = read_csv if name == "e.csv" else read_parquet
    with pytest.raises(EventsError, match=f"{name}: cannot be read as .* there is no such file"):
        read(tmp_path / name)
    if name == "e.csv":
        pa.csv.write_csv(table.slice(0, 0), tmp_path / name)
    else:
        pq.write_table(table.slice(0, 0), tmp_path / name)
    with pytest.raises(EventsError, match=f"{name}: has no events"):
        read(tmp_path / name)
