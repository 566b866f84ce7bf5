"""Events for training: labels against a plain loop, windows within files, malformed files named."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch

from trivet.impl._perception.source import (
    HORIZONS,
    STRENGTH,
    Events,
    Windows,
    read,
    synthetic,
)
from trivet.impl._tables import EventsError

SHORT = (1, 3, 7)
WHOLE = "must be a whole number from -2147483647 to 2147483647"


def table_of(events: Events) -> pa.Table:
    bid = events.mid // 2
    columns = {"ts_ns": events.ts, "bid_px_x100": bid, "ask_px_x100": events.mid - bid}
    return pa.table(columns | {f"x_{d}": events.x[:, d] for d in range(events.x.shape[1])})


def same_events(one: Events, other: Events) -> bool:
    pairs = ((one.ts, other.ts), (one.mid, other.mid), (one.x, other.x))
    return all(a.tobytes() == b.tobytes() and a.dtype == b.dtype for a, b in pairs)


@pytest.fixture(scope="module")
def events() -> Events:
    return synthetic(3, 60, SHORT)


# ------------------------------------------------------------------------ synthetic events


def test_the_same_seed_gives_the_same_events() -> None:
    assert same_events(synthetic(4, 50, SHORT), synthetic(4, 50, SHORT))
    assert not same_events(synthetic(4, 50, SHORT), synthetic(5, 50, SHORT))


def test_each_horizon_is_told_by_its_feature_to_the_degree_that_is_promised() -> None:
    events = synthetic(1, 40_000)
    labels = events.labels()
    for k in range(len(HORIZONS)):
        moved = np.isin(labels[:, k], (0, 1))
        right = (events.x[moved, k] > 0) == (labels[moved, k] == 1)
        # Five standard deviations of a mean of independent guesses.
        promised = 0.5 * math.erfc(-STRENGTH / math.sqrt(2))
        assert abs(right.mean() - promised) < 5 * math.sqrt(0.25 / moved.sum())
        for idle in range(len(HORIZONS), events.x.shape[1]):
            guess = (events.x[moved, idle] > 0) == (labels[moved, k] == 1)
            assert abs(guess.mean() - 0.5) < 5 * math.sqrt(0.25 / moved.sum())


def test_runs_of_labels_differ_tenfold_between_horizons() -> None:
    labels = synthetic(1, 40_000).labels()
    lengths = []
    for column in labels.T:
        known = column[~np.isnan(column)]
        lengths.append(len(known) / (1 + np.count_nonzero(np.diff(known))))
    assert lengths == sorted(lengths)
    assert lengths[-1] > 10 * lengths[0]


# ------------------------------------------------------------------------ labels and windows


def test_labels_are_those_of_a_plain_loop(events: Events) -> None:
    labels = events.labels(SHORT)
    for i in range(len(events)):
        for k, ahead in enumerate(SHORT):
            if i + ahead >= len(events):
                assert np.isnan(labels[i, k])
                continue
            now, then = int(events.mid[i]), int(events.mid[i + ahead])
            assert labels[i, k] == (1 if then > now else 0 if then < now else 0.5)
    assert {0, 0.5, 1} <= set(labels[~np.isnan(labels)].tolist())


def test_a_file_shorter_than_the_horizon_has_no_label(events: Events) -> None:
    assert np.isnan(events.part(0, 5).labels((5, 100))).all()
    assert not np.isnan(events.part(0, 6).labels((5,))[0, 0])


def places(events: list[Events], K: int) -> dict[bytes, tuple[int, int]]:
    """Every window's file and first event, by the bytes of its features."""
    return {
        each.x[start : start + K].tobytes(): (n, start)
        for n, each in enumerate(events)
        for start in range(len(each) - K + 1)
    }


def test_windows_never_cross_a_boundary_and_carry_their_own_labels(events: Events) -> None:
    files = [events.part(0, 20), events.part(20, 24), events.part(24, 29), events.part(29, 60)]
    windows, known = Windows(files, 5, 16, seed=2, horizons=SHORT), places(files, 5)
    seen = set()
    for step in range(60):
        batch = windows.batch(step)
        for x, dt, labels in zip(*batch, strict=True):
            n, start = known[x.numpy().tobytes()]
            seen.add((n, start))
            wanted = files[n].labels(SHORT)[start : start + 5]
            assert labels.numpy().tobytes() == wanted.tobytes()
            for i, gap in zip(range(start, start + 5), dt.tolist(), strict=True):
                nanoseconds = int(files[n].ts[i] - files[n].ts[i - 1]) if i else 0
                assert gap == np.float32(nanoseconds / 1e9)
    assert seen == set(known.values())


def test_a_batch_is_a_function_of_seed_and_step(events: Events) -> None:
    first = Windows([events], 5, 4, seed=1, horizons=SHORT)
    first.batch(0)
    again = Windows([events], 5, 4, seed=1, horizons=SHORT)
    other = Windows([events], 5, 4, seed=2, horizons=SHORT)
    for mine, same, next_step, elsewhere in zip(
        first.batch(7), again.batch(7), first.batch(8), other.batch(7), strict=True
    ):
        assert mine.dtype == torch.float32
        assert mine.numpy().tobytes() == same.numpy().tobytes()
        assert mine.numpy().tobytes() != next_step.numpy().tobytes()
        assert mine.numpy().tobytes() != elsewhere.numpy().tobytes()


def test_tiles_lie_side_by_side_in_order_of_time(events: Events) -> None:
    files = [events.part(0, 11), events.part(11, 60)]
    windows = Windows(files, 5, 2, horizons=SHORT)
    whole = windows.tiles(1000).x
    assert whole.numpy().tobytes() == np.concatenate([files[0].x[:10], files[1].x[:45]]).tobytes()
    assert [len(windows.tiles(count).x) for count in (1, 5, 10, 11, 12)] == [1, 5, 10, 11, 11]


def test_shuffled_labels_are_the_same_ones_elsewhere(events: Events) -> None:
    plain = Windows([events], len(events), 1, horizons=SHORT)
    shuffled = Windows([events], len(events), 1, horizons=SHORT, shuffle=True)
    one, two = plain.batch(0).labels[0], shuffled.batch(0).labels[0]
    assert not torch.equal(one.nan_to_num(9), two.nan_to_num(9))
    rows = [sorted(map(tuple, labels.nan_to_num(9).tolist())) for labels in (one, two)]
    assert rows[0] == rows[1]


def test_parts_share_the_events_out_and_know_no_later_price(events: Events) -> None:
    train, check, test = events.cut(0.5, 0.25)
    assert (len(train), len(check), len(test)) == (30, 15, 15)
    assert np.isnan(train.labels(SHORT)[-7:, 2]).all()
    with pytest.raises(ValueError, match=r"sum to less than 1, got \(0.9, 0.1\)"):
        events.cut(0.9, 0.1)


def test_windows_longer_than_every_file_are_named(events: Events) -> None:
    with pytest.raises(EventsError, match="windows of 61 events need a file as long, got at most"):
        Windows([events, events.part(0, 3)], 61, 1)


# ------------------------------------------------------------------------ files


@pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
def test_files_give_back_the_events(name: str, events: Events, tmp_path: Path) -> None:
    table = table_of(events).append_column("note", pa.array(["a"] * len(events)))
    (pa.csv.write_csv if name == "e.csv" else pq.write_table)(table, tmp_path / name)
    (found,) = read(tmp_path / name)
    assert same_events(found, events)


def test_a_folder_is_read_in_order_of_names(events: Events, tmp_path: Path) -> None:
    pq.write_table(table_of(events.part(20, 60)), tmp_path / "b.parquet")
    pa.csv.write_csv(table_of(events.part(0, 20)), tmp_path / "a.csv")
    (tmp_path / "readme.txt").write_text("no events")
    first, second = read(tmp_path)
    assert same_events(first, events.part(0, 20))
    assert same_events(second, events.part(20, 60))


def test_files_of_other_features_are_named(events: Events, tmp_path: Path) -> None:
    table = table_of(events)
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.rename_columns({"x_1": "x_one"}), tmp_path / "b.parquet")
    with pytest.raises(EventsError, match=r"b.parquet: must have the features of a.parquet, x_0, "):
        read(tmp_path)


def cell(place: int, value: str) -> Callable[[str], str]:
    def edit(line: str) -> str:
        cells = line.split(",")
        cells[place] = value
        return ",".join(cells)

    return edit


@pytest.mark.parametrize(
    ("line", "edit", "text"),
    [
        (6, cell(0, "5"), r"line 6 \(event 4\): ts_ns runs backwards, got 5 after \d+$"),
        (6, cell(1, "1.5"), rf"line 6 \(event 4\): bid_px_x100 {WHOLE}, got '1.5'$"),
        (6, cell(2, ""), rf"line 6 \(event 4\): ask_px_x100 {WHOLE}, got ''$"),
        (6, cell(3, "nan"), r"line 6 \(event 4\): x_0 must be a finite float32 number, got nan$"),
        (6, cell(4, "1e39"), r"line 6 \(event 4\): x_1 must be a finite float32 number, got 1e"),
        (6, cell(4, "one"), r"line 6 \(event 4\): x_1 must be a finite float32 number, got 'one'$"),
        (6, lambda line: line + ",1", r"line 6: must have 8 fields, got 9$"),
        (
            1,
            cell(2, "ask_px"),
            r"has no column 'ask_px_x100'; the nearest is 'bid_px_x100', it",
        ),
        (1, cell(4, "x_0"), r"has column 'x_0' twice$"),
        (1, lambda line: line.replace("x_", "y_"), r"has no feature, a column whose name begins"),
    ],
)
def test_a_malformed_file_is_one_line_naming_file_and_row(
    line: int, edit: Callable[[str], str], text: str, events: Events, tmp_path: Path
) -> None:
    path = tmp_path / "e.csv"
    pa.csv.write_csv(table_of(events), path, pa.csv.WriteOptions(quoting_style="none"))
    lines = path.read_text().splitlines()
    lines[line - 1] = edit(lines[line - 1])
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(EventsError, match=text) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("absent.csv", "cannot be read as CSV: there is no such file"),
        ("cut.parquet", r"cannot be read as Parquet, is it whole\?"),
        ("empty.csv", "has no events"),
        ("notes.txt", "must end in .csv or .parquet"),
        ("", "has no file that ends in .csv or .parquet"),
    ],
)
def test_files_that_hold_no_events_are_named(
    name: str, text: str, events: Events, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    if name == "cut.parquet":
        pq.write_table(table_of(events), folder / name)
        (folder / name).write_bytes((folder / name).read_bytes()[:-9])
    elif name == "empty.csv":
        pa.csv.write_csv(table_of(events.part(0, 0)), folder / name)
    elif name == "notes.txt":
        (folder / name).write_text("ts_ns")
    with pytest.raises(EventsError, match=text):
        read(folder / name)
