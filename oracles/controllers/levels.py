"""The levels of dead buckets, in float32 as they are written: all at once, and one by one.

Rows of the counters: dead and live steps in a row, level, steps, whether the mean fell under half
its floor, the window in force (0 before the first step), observations passed over.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from trivet.oracles._pinned import pinned

Single = np.float32
R, KEEP, TINY, GAIN = Single(0.05), Single(0.95), Single(1e-30), Single(0.4)


@pinned
def dead_buckets(h_mag: Any, average: Any, floor: Any, counters: Any, window: int) -> Any:
    """Levels fired (T, N), then averages, floors and counters afterwards."""
    return _all_at_once(h_mag, average, floor, counters, window)


@pinned
def watch_buckets(h: Any, table: Any, average: Any, floor: Any, counters: Any, window: int) -> Any:
    """Means (N,) of |h|, whose sums are exact, levels fired (N,), and what is kept."""
    sizes = [np.abs(h)[:, row[row >= 0]] for row in table]
    h_mag = np.array([Single(x.sum()) / Single(max(x.size, 1)) for x in sizes], Single)
    fired, *kept = _all_at_once(h_mag[None], average, floor, counters, window)
    return h_mag, fired[0], *kept


def _all_at_once(h_mag: Any, average: Any, floor: Any, counters: Any, window: int) -> Any:
    average, floor, counters = average.copy(), floor.copy(), np.array(counters)
    fired = np.zeros(h_mag.shape, np.int64)
    dead_run, live_run, level, steps, fell, span, rejected = counters
    span[span == 0] = window
    for t, x in enumerate(h_mag):
        taken = np.abs(x) <= Single(2.0**60)
        rejected += ~taken
        steps += taken
        floor = np.where(taken & (average[4] == 0), x, floor)
        average = np.where(taken, _smoothed(x, average), average)
        dead = average[0] < floor / Single(np.e)
        fell |= taken & (average[0] < floor / Single(2))
        dead_run[:] = np.where(taken, (dead_run + 1) * dead, dead_run)
        live_run[:] = np.where(taken, (live_run + 1) * ~dead, live_run)
        span[taken & (steps == window) & (fell == 0)] = 2 * window
        fires = dead_run >= span
        level[fires] = np.minimum(level[fires] + 1, 3)
        fired[t, fires] = level[fires]
        dead_run[fires] = 0
        level[live_run >= span] = 0
    return fired, average, floor, counters


def _smoothed(x: Any, average: Any) -> Any:
    """The averages after x; the first observation is the mean."""
    mean, diff_var, sample_var, last, seen = average
    diff = KEEP * diff_var + R * ((x - last) * (x - last))
    sample = KEEP * sample_var + R * ((x - mean) * (x - mean))
    alpha = np.maximum(GAIN, sample / (sample + diff + TINY))
    later = np.stack([mean + alpha * (x - mean), diff, sample, x, seen])
    zero = np.zeros_like(x)
    return np.where(seen == 0, np.stack([x, zero, zero, x, zero + Single(1)]), later)


@dataclass
class _Bucket:
    """One bucket's life."""

    mean: Single
    diff_var: Single
    sample_var: Single
    last: Single
    seen: bool
    floor: Single
    dead_run: int
    live_run: int
    level: int
    steps: int
    fell: bool
    window: int
    rejected: int

    def step(self, x: Single, first_window: int) -> int:
        """Observe; returns the level that fires, or 0."""
        if not np.isfinite(x) or abs(float(x)) > 2.0**60:
            self.rejected += 1
            return self._fire()
        self.steps += 1
        self._average(x)
        if self.mean < Single(0.5) * self.floor:
            self.fell = True
        if self.mean < self.floor / Single(np.e):
            self.dead_run, self.live_run = self.dead_run + 1, 0
        else:
            self.dead_run, self.live_run = 0, self.live_run + 1
        if self.steps == first_window and not self.fell:
            self.window = 2 * first_window
        return self._fire()

    def _fire(self) -> int:
        """Rise a level after a window of dead steps, return to none after one of live ones."""
        told = 0
        if self.dead_run >= self.window:
            told = self.level = self.level + 1 if self.level < 3 else 3
            self.dead_run = 0
        if self.live_run >= self.window:
            self.level = 0
        return told

    def _average(self, x: Single) -> None:
        if not self.seen:
            self.mean = self.last = self.floor = x
            self.diff_var = self.sample_var = Single(0)
            self.seen = True
            return
        change, off = x - self.last, x - self.mean
        self.diff_var = KEEP * self.diff_var + R * (change * change)
        self.sample_var = KEEP * self.sample_var + R * (off * off)
        share = self.sample_var / (self.sample_var + self.diff_var + TINY)
        self.mean = self.mean + (share if share > GAIN else GAIN) * off
        self.last = x

    def column(self) -> tuple[list[Any], Single, list[int]]:
        """Average, floor and counters."""
        numbers = [self.mean, self.diff_var, self.sample_var, self.last, Single(self.seen)]
        counts = [self.dead_run, self.live_run, self.level, self.steps, int(self.fell)]
        return numbers, self.floor, [*counts, self.window, self.rejected]


@pinned
def dead_buckets_one_by_one(
    h_mag: Any, average: Any, floor: Any, counters: Any, window: int
) -> Any:
    """The same, one bucket after another, as a story of steps."""
    return _one_by_one(h_mag, average, floor, counters, window)


@pinned
def watch_buckets_one_by_one(
    h: Any, table: Any, average: Any, floor: Any, counters: Any, window: int
) -> Any:
    """The same, its means from one state after another."""
    means = []
    for row in table.tolist():
        own = [abs(float(state[c])) for state in h for c in row if c >= 0]
        means.append(Single(sum(own)) / Single(len(own)) if own else Single(0))
    found = _one_by_one(np.array([means], Single), average, floor, counters, window)
    return np.array(means, Single), found[0][0], *found[1:]


def _one_by_one(h_mag: Any, average: Any, floor: Any, counters: Any, window: int) -> Any:
    fired = np.zeros(h_mag.shape, np.int64)
    average, floor, counters = average.copy(), floor.copy(), np.array(counters)
    for k in range(h_mag.shape[1]):
        mean, diff_var, sample_var, last, seen = average[:, k]
        dead, live, level, steps, fell, span, missed = map(int, counters[:, k])
        bucket = _Bucket(
            mean,
            diff_var,
            sample_var,
            last,
            seen != 0,
            floor[k],
            dead,
            live,
            level,
            steps,
            bool(fell),
            span or window,
            missed,
        )
        fired[:, k] = [bucket.step(x, window) for x in h_mag[:, k]]
        average[:, k], floor[k], counters[:, k] = bucket.column()
    return fired, average, floor, counters
