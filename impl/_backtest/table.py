"""The result of a run as one table, a row for each variant."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trivet.impl import _replay, diagnosis
from trivet.impl._whole import written

_BINS = {"conviction_hist": 10, "hold_hist": 6, "entry_trades": 10, "entry_wins": 10}


def table_of(
    names: Sequence[str],
    first: int,
    settings: _replay.Settings,
    state: _replay.State,
    labels: Sequence[str],
) -> pa.Table:
    """Rows of one block of variants, the first of them number `first`.

    Columns: variant and name; each setting; trades, wins, win_rate, realised and net_profit in
    hundredths, max_drawdown, sharpe (mean / population std of net profit per trade, 0 under two
    trades or std 0); counters; per horizon those of its runs, raw and smoothed (backtest.md, 7).
    """
    numbers = np.arange(first, first + len(names), dtype=np.int32)
    columns: dict[str, Any] = {"variant": numbers, "name": pa.array(names, pa.string())}
    for name in _replay.DEFAULTS:
        if name != "tape":
            columns[name] = getattr(settings, name).cpu().numpy()
    columns |= _results(columns["cost"], state)
    at = 0
    bins = state.bins.cpu().numpy()
    for name, count in _BINS.items():
        columns[name] = _lists(bins[at : at + count])
        at += count
    columns["entry_profit"] = _lists(state.outcome_profit.cpu().numpy())
    for h, label in enumerate(labels):
        columns |= _horizon(label, h, state)
    return pa.table(columns)


def _results(cost: np.ndarray, state: _replay.State) -> dict[str, np.ndarray]:
    counts = dict(zip(_replay.COUNTS, state.counts.cpu().numpy(), strict=True))
    position, _, _, realised, filled, _, refused = state.book.cpu().numpy()
    mean, square, _, deepest = state.results.double().cpu().numpy()
    trades, wins = counts["trades"], counts["wins"]
    many = np.maximum(trades, 1)
    deviation = np.sqrt(square / many)
    defined = (trades >= 2) & (deviation > 0)
    found = {
        "trades": trades,
        "wins": wins,
        "win_rate": wins / many,
        "realised": realised,
        "net_profit": realised - cost.astype(np.float64) * filled,
        "max_drawdown": deepest,
        "sharpe": np.where(defined, mean / np.where(defined, deviation, 1), 0.0),
        "position": position,
        "filled_lots": filled,
        "refused": refused,
        "waiting": (state.slots[0] > 0).sum(dim=0).cpu().numpy(),
    }
    names = ("events", "missing", "undefined", *_replay.COUNTS[6:])
    return found | {name: counts[name] for name in names}


def _horizon(label: str, h: int, state: _replay.State) -> dict[str, Any]:
    streams = diagnosis.read_out(state.runs, state.run_bins)
    found: dict[str, Any] = {
        f"{label}_trades": state.edge_closed[h].cpu().numpy(),
        f"{label}_net_edge": state.edge_moments[0, h].cpu().numpy(),
    }
    for kind, counts in zip(("raw", "smoothed"), streams, strict=True):
        found[f"{label}_{kind}_flips"] = counts.flips[h]
        found[f"{label}_{kind}_mean_run_len"] = counts.mean_length[h]
        found[f"{label}_{kind}_run_length_hist"] = _lists(counts.histogram[:, h])
    return found


def _lists(bins: np.ndarray) -> pa.Array:
    """Bins (B, S) as one list for each simulation."""
    flat = pa.array(np.ascontiguousarray(bins.T).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, bins.shape[0])


def write_table(table: pa.Table, path: Path) -> None:
    """Write Parquet: the whole file or, where that fails, nothing."""
    written(path, lambda file: pq.write_table(table, file))
