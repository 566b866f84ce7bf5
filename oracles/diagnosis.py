"""Counters, one number at a time: runs of a direction, histograms, outcomes of closed trades."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trivet.oracles._pinned import pinned

RUN_EDGES = (10, 100, 1000, 10000)
SECOND = 1_000_000_000
HOLD_EDGES = tuple(n * SECOND for n in (1, 10, 60, 600, 3600))
UNIT_BINS = 10


def unit_bin(x: np.float32) -> int:
    """The tenth of [0, 1] in which x lies, in float32; 1 belongs to the last."""
    return min(9, int(np.floor(x * np.float32(10))))


def hold_bin(held: int) -> int:
    """The bin of a hold time in ns; an edge belongs to the upper bin."""
    return bisect_right(HOLD_EDGES, held)


@dataclass
class Runs:
    """The runs of one direction; a direction of 0 continues the run."""

    direction: int = 0
    length: int = 0
    flips: int = 0
    total: int = 0
    bins: list[int] = field(default_factory=lambda: [0] * 5)

    def observe(self, x: float) -> None:
        """Count one more number by its sign."""
        direction = 1 if x > 0 else -1 if x < 0 else self.direction
        if direction == 0:
            return
        if direction == self.direction or self.direction == 0:
            self.direction = direction
            self.length += 1
            return
        self.flips += 1
        self.total += self.length
        self.bins[bisect_right(RUN_EDGES, self.length)] += 1
        self.direction, self.length = direction, 1

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """direction, length, flips and total."""
        return self.direction, self.length, self.flips, self.total


def runs_of(numbers: Any, bins: Any) -> Runs:
    """The runs whose state stands in two columns."""
    direction, length, flips, total = map(int, numbers)
    return Runs(direction, length, flips, total, [int(n) for n in bins])


@pinned
def count(
    raw: Any, smoothed: Any, conviction: Any, runs: Any, run_bins: Any, bins: Any
) -> tuple[Any, Any, Any]:
    """runs (2, 4, N, S), run_bins (2, 5, N, S) and bins (10, S) after the events."""
    runs, run_bins, bins = runs.copy(), run_bins.copy(), bins.copy()
    _, simulations, horizons = raw.shape
    for s in range(simulations):
        for h in range(horizons):
            for stream, values in enumerate((raw, smoothed)):
                own = runs_of(runs[stream, :, h, s], run_bins[stream, :, h, s])
                for x in values[:, s, h]:
                    own.observe(x)
                runs[stream, :, h, s] = own.numbers
                run_bins[stream, :, h, s] = own.bins
        for x in conviction[:, s]:
            bins[unit_bin(x), s] += 1
    return runs, run_bins, bins


@pinned
def settle(
    closes: Any, held: Any, at_entry: Any, profit: Any, bins: Any, outcome_profit: Any
) -> tuple[Any, Any]:
    """bins (26, S), hold time 6, trades 10 and wins 10, and outcome_profit (10, S)."""
    bins, outcome_profit = bins.copy(), outcome_profit.copy()
    for k, s in zip(*np.nonzero(closes), strict=True):
        bins[hold_bin(int(held[k, s])), s] += 1
        place = unit_bin(at_entry[k, s])
        bins[6 + place, s] += 1
        bins[6 + UNIT_BINS + place, s] += profit[k, s] > 0
        outcome_profit[place, s] += profit[k, s]
    return bins, outcome_profit
