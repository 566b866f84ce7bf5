"""The counters' read-out at the end of a run, and its lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from trivet.impl.diagnosis.counters import HOLD_BINS, UNIT_BINS

RUN_LABELS = ("1-9", "10-99", "100-999", "1k-9999", "10k+")
HOLD_LABELS = ("<1s", "1-10s", "10-60s", "1-10m", "10-60m", ">=1h")
UNIT_LABELS = tuple(f"[{n / 10:.1f}-{(n + 1) / 10:.1f}]" for n in range(UNIT_BINS))
_RUN_EDGES = (10, 100, 1000, 10000)


@dataclass(frozen=True)
class RunCounts:
    """Runs of one stream, the open one closed: flips, runs, events in runs and mean length, all
    (N, S), and the histogram of lengths (5, N, S)."""

    flips: np.ndarray
    runs: np.ndarray
    events: np.ndarray
    mean_length: np.ndarray
    histogram: np.ndarray


def read_out(runs: torch.Tensor, run_bins: torch.Tensor) -> tuple[RunCounts, RunCounts]:
    """Return the raw and the smoothed runs of runs (2, 4, N, S) and run_bins (2, 5, N, S).

    The run still open is closed here, not in the state. Mean length is 0 without runs.
    """
    raw, smoothed = (
        _closed(own, bins)
        for own, bins in zip(runs.cpu().numpy(), run_bins.cpu().numpy(), strict=True)
    )
    return raw, smoothed


def _closed(own: np.ndarray, bins: np.ndarray) -> RunCounts:
    direction, length, flips, total = own
    is_open = direction != 0
    histogram = bins.copy()
    place = np.digitize(length, _RUN_EDGES)
    np.add.at(histogram, (place, *np.indices(place.shape)), is_open)
    count, events = flips + is_open, total + length
    mean = np.where(count > 0, events / np.maximum(count, 1), 0.0)
    return RunCounts(flips, count, events, mean, histogram)


def lines(
    runs: torch.Tensor,
    run_bins: torch.Tensor,
    bins: torch.Tensor,
    outcome_profit: torch.Tensor,
    labels: Sequence[str],
    simulation: int = 0,
) -> Iterator[str]:
    """Yield the lines of one simulation; labels name the horizons, like "h30".

    runs, run_bins, bins (36, S) and outcome_profit (10, S) are those of a run's state.
    """
    raw, smoothed = read_out(runs, run_bins)
    for h, label in enumerate(labels):
        one = f"flips={raw.flips[h, simulation]} "
        mean = raw.mean_length[h, simulation]
        yield f"crt_diag {label}: {one}mean_run_len={mean:.2f} events"
        counts = raw.histogram[:, h, simulation]
        yield f"crt_diag {label} run_length_hist: {_pairs(RUN_LABELS, counts)}"
        yield (
            f"crt_diag {label} smoothed: flips={smoothed.flips[h, simulation]} "
            f"mean_run_len={smoothed.mean_length[h, simulation]:.2f} events "
            f"(vs raw {raw.flips[h, simulation]} / {mean:.2f})"
        )
    own = bins[:, simulation].cpu().numpy()
    conviction, rest = np.split(own, [UNIT_BINS])
    hold, trades, wins = np.split(rest, [HOLD_BINS, HOLD_BINS + UNIT_BINS])
    yield f"crt_diag conv_ema_hist: {_pairs(UNIT_LABELS, conviction)}"
    yield f"crt_diag hold_time_hist: {_pairs(HOLD_LABELS, hold)}"
    profit = outcome_profit[:, simulation].double().cpu().numpy()
    for label, number, won, money in zip(UNIT_LABELS, trades, wins, profit, strict=True):
        rate, mean = (100 * won / number, money / number) if number else (0.0, 0.0)
        yield (
            f"crt_diag outcome_by_entry_conv{label}: "
            f"n={number} win_rate={rate:.1f}% mean_pnl_pu={mean:.4f}"
        )


def _pairs(labels: Sequence[str], counts: np.ndarray) -> str:
    return " ".join(f"{label}:{number}" for label, number in zip(labels, counts, strict=True))
