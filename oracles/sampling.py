"""Moments and histograms of sampled probabilities, one tick at a time."""

from typing import Any

import numpy as np

from trivet.oracles._pinned import pinned

Single = np.float32


@pinned
def accumulate(
    p: Any, counts: Any, moments: Any, bins: Any, stride: int, start: int, stop: int
) -> tuple[Any, Any, Any]:
    """counts (T, N), moments (4, T, N) and bins (10, T, N) after the ticks of the range."""
    counts, moments, bins = counts.copy(), moments.copy(), bins.copy()
    tapes, _, horizons = p.shape
    for event in range(start, stop):
        if event % stride:
            continue
        for t in range(tapes):
            for h in range(horizons):
                x = p[t, event, h]
                x = Single(0.5) if np.isnan(x) else x
                _observe(x, t, h, counts, moments)
                bins[min(9, int(x * Single(10))), t, h] += 1
    return counts, moments, bins


def _observe(x: Single, t: int, h: int, counts: Any, moments: Any) -> None:
    centre, square, least, most = moments[:, t, h]
    first = counts[t, h] == 0
    counts[t, h] += 1
    gap = x - centre
    moved = centre + gap / Single(counts[t, h])
    square = square + gap * (x - moved)
    moments[:, t, h] = moved, square, x if first else min(least, x), x if first else max(most, x)


def mean(m: Any, x: Any) -> Any:
    """The mean of the rows of x (K, ...)."""
    return m.mean(x, axis=0)


def variance(m: Any, x: Any) -> Any:
    """The population variance of the rows of x (K, ...)."""
    return m.var(x, axis=0)
