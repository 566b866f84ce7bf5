"""What interleaved times say: the same, slower, or that nobody can tell.

The statistic is the median log-ratio over the quarter of the pairs in which the machine was least
disturbed (smallest product of both times); its interval comes from resampling those pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

State = Literal["SAME", "SLOW", "AMBIGUOUS"]

# A slow-down below this is not worth a failed build, whatever the runner resolves.
LEAST_LIMIT = 1.03
WINDOWS = 3
_FEWEST_PAIRS = 24
_CONFIDENCE = 0.99
_RESAMPLES = 2000
_QUIET_SHARE = 4
_WINDOW_QUANTILE = 0.2


@dataclass(frozen=True)
class Comparison:
    """How a candidate's times compare with those of its base.

    ``ratio`` is candidate over base, ``low`` and ``high`` its 99% interval, ``windows`` the same
    ratio from each third of the run alone (of 20% quantiles), ``limit`` what counts as slower.
    ``base`` and ``candidate`` are medians in seconds.
    """

    ratio: float
    low: float
    high: float
    windows: tuple[float, ...]
    limit: float
    base: float
    candidate: float
    pairs: int

    @property
    def state(self) -> State:
        """SLOW where interval, ratio and every window say so, SAME below the limit for sure."""
        halfway = 1 + (self.limit - 1) / 2
        if self.low > 1 and self.ratio > self.limit and min(self.windows) > halfway:
            return "SLOW"
        return "SAME" if self.high < self.limit else "AMBIGUOUS"


def compared(
    base: Sequence[float], candidate: Sequence[float], *, limit: float = LEAST_LIMIT, seed: int = 0
) -> Comparison:
    """Compare times in seconds, one pair after another in the order in which they were taken.

    Raises ValueError for fewer than 24 pairs, sides of different length, or times that are not
    positive: an event timer that returns 0 has not resolved the kernel.
    """
    a, b = np.asarray(base, np.float64), np.asarray(candidate, np.float64)
    if len(a) != len(b):
        raise ValueError(f"{len(a)} times of the base and {len(b)} of the candidate: give pairs")
    if len(a) < _FEWEST_PAIRS:
        raise ValueError(f"{len(a)} pairs of times: at least {_FEWEST_PAIRS} say something")
    if not (np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0)).all():
        raise ValueError("a time is not positive and finite: the timer does not resolve the kernel")
    quiet = np.argsort(a * b, kind="stable")[: max(8, len(a) // _QUIET_SHARE)]
    ratios = np.log(b[quiet] / a[quiet])
    low, high = _interval(ratios, seed)
    return Comparison(
        ratio=float(np.exp(np.median(ratios))),
        low=low,
        high=high,
        windows=tuple(_window_ratios(a, b)),
        limit=limit,
        base=float(np.median(a)),
        candidate=float(np.median(b)),
        pairs=len(a),
    )


def limit_of(spread: float) -> float:
    """The limit of a runner on which equal kernels differ by up to ``spread`` (0.01 is 1%)."""
    return max(LEAST_LIMIT, 1 + 2 * spread)


def spread_of(comparisons: Sequence[Comparison]) -> float:
    """How far from 1 the ratios of equal kernels were, at most. Raises ValueError without any."""
    if not comparisons:
        raise ValueError("no comparison of equal kernels: the runner's spread is not known")
    return max(abs(comparison.ratio - 1) for comparison in comparisons)


def _interval(ratios: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """99% bootstrap interval of the median."""
    drawn = np.random.default_rng(seed).integers(0, len(ratios), (_RESAMPLES, len(ratios)))
    medians = np.median(ratios[drawn], axis=1)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.exp(np.quantile(medians, [tail, 1 - tail]))
    return float(low), float(high)


def _window_ratios(a: NDArray[np.float64], b: NDArray[np.float64]) -> list[float]:
    thirds = zip(np.array_split(a, WINDOWS), np.array_split(b, WINDOWS), strict=True)
    fast = _WINDOW_QUANTILE
    return [float(np.quantile(mine, fast) / np.quantile(other, fast)) for other, mine in thirds]
