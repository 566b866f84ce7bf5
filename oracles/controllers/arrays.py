"""The controllers' formulas in array form: the math namespace ``m`` first."""

from typing import Any

import numpy as np

from trivet.oracles._pinned import stored

R, TINY, LEAST_GAIN, LARGEST = 0.05, 1e-30, 0.4, 2.0**60


def wiener_ema(m: Any, x: Any, floor: Any, average: Any, rejected: Any) -> tuple[Any, Any]:
    """The averages and counts after x (A,); what is not finite or beyond 2^60 is passed over."""
    after, counted = _observed(m, x, average, floor)
    return after, np.asarray(rejected) + ~counted


def _observed(m: Any, x: Any, average: Any, floor: Any) -> tuple[Any, Any]:
    """The averages after x, and which of them observed anything."""
    counted = np.abs(stored(x)) <= LARGEST
    value = m.where(counted, x, 0.0)
    mean, diff_var, sample_var, last, seen = (average[row] for row in range(5))
    first = seen == 0
    diff = (1 - R) * diff_var + R * m.square(value - last)
    sample = (1 - R) * sample_var + R * m.square(value - mean)
    alpha = m.maximum(floor, sample / (sample + diff + TINY))
    rows = [
        m.where(first, value, mean + alpha * (value - mean)),
        m.where(first, 0.0, diff),
        m.where(first, 0.0, sample),
        value,
        m.where(first, 1.0, seen),
    ]
    after = m.stack([m.where(counted, row, average[i]) for i, row in enumerate(rows)])
    return after, counted


def tau_change(m: Any, tau: Any, previous: Any) -> Any:
    """Mean of |log tau - log previous|, by the logarithm of 1 + the relative change; (1,)."""
    small, large = m.minimum(tau, previous), m.maximum(tau, previous)
    return m.mean(m.log1p((large - small) / small))[None]


def label_deviation(m: Any, labels: Any) -> Any:
    """Root of the mean square about the mean of each horizon's present labels; NaN without any."""
    present = ~np.isnan(stored(labels))
    count = present.sum(axis=(0, 1))
    number = np.maximum(count, 1).astype(float)
    known = m.where(present, labels, 0.0)
    mean = m.sum(known, axis=(0, 1)) / number
    off = m.where(present, labels - mean, 0.0)
    spread = m.sqrt(m.sum(m.square(off), axis=(0, 1)) / number)
    # A single label is its own mean.
    return m.where(count > 0, m.where(count > 1, spread, 0.0), np.nan)


def rate_scale(
    m: Any, mean_square: Any, deviation: Any, jitter: Any, target: Any, floor: Any, rejected: Any
) -> tuple[Any, ...]:
    """Rates of the next step (N,), then averages, floor and counts after the window."""
    if mean_square is not None:
        jitter, counted = _observed(m, m.sqrt(mean_square), jitter, LEAST_GAIN)
        rejected = np.asarray(rejected) + ~counted
    unseen = target[4] == 0
    target, counted = _observed(m, deviation, target, LEAST_GAIN)
    first = m.where(counted, deviation, 0.0)
    floor = m.where(unseen & counted, m.maximum(first, 1e-3) / 16, floor)
    known = (jitter[4] != 0) & (target[4] != 0)
    excess = m.maximum(jitter[0] - target[0], 0.0) / m.maximum(
        m.where(known, target[0], 1.0), floor
    )
    return m.where(known, 1 / (1 + excess), 1.0), jitter, target, floor, rejected


def heads_lr_scale(m: Any, params: Any, snap: Any, rate: Any) -> Any:
    """snap + (params - snap) rate, and params itself where the rate is 1."""
    share = m.broadcast_to(rate[:, None], params.shape)
    return m.where(share == 1.0, params, snap + (params - snap) * share)


def smoothness_lambda(m: Any, jitter: Any, horizons: Any, floor: Any, base: Any) -> tuple[Any, Any]:
    """Weights (N,) and floor (N,) afterwards."""
    events = np.asarray(horizons, float)
    goal = jitter[0][:1] * m.sqrt(events[0] / events)
    seen = jitter[4] != 0
    known = np.broadcast_to(np.asarray(seen)[:1], events.shape)
    floor = m.where(known & (floor == 0), m.maximum(goal, 1e-3) / 16, floor)
    both = known & seen
    divisor = m.maximum(goal, m.where(both, floor, 1.0))
    excess = m.where(both, m.maximum(jitter[0] - goal, 0.0) / divisor, 0.0)
    shortest = np.arange(len(events)) == 0
    return m.where(shortest, 0.0, base * excess), floor


def h_mag_per_bucket(m: Any, h: Any, table: Any) -> Any:
    """Mean of |h| over the batch and each bucket's channels, 0 where there are none; (N,)."""
    size, rows = np.abs(h), np.asarray(table)
    means = [m.sum(size[:, row[row >= 0]]) / _at_least_one(h, row) for row in rows]
    return m.stack(means) if means else m.zeros((0,))


def _at_least_one(h: Any, row: Any) -> float:
    return float(max(h.shape[0] * int((row >= 0).sum()), 1))


def channel_activity(m: Any, h: Any) -> Any:
    """Mean of |h| over the batch, 0 where it is empty; (H,)."""
    return m.sum(m.abs(h), axis=0) / float(max(h.shape[0], 1))


def reset_channels(
    m: Any, params: Any, exp_avg: Any, exp_avg_sq: Any, before: Any, after: Any
) -> tuple[Any, ...]:
    """Params and moments, 0 in the columns of channels whose bucket is another."""
    moved = np.broadcast_to(np.asarray(before) != np.asarray(after), params.shape)
    return tuple(m.where(moved, 0.0, each) for each in (params, exp_avg, exp_avg_sq))
