"""What a simulation wants to hold, written from the formulas of the decision.

``smooth`` and ``weighted`` come three times: over the math namespace, with scalars in mpmath, and
inside ``follow`` with float32 scalars in the pinned order. Shapes: S simulations, N horizons, E
events; an average's state has the five rows mean, diff_var, sample_var, last and seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

from trivet.oracles._pinned import pinned

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
Matrix = Sequence[Sequence[float]]
Single = np.float32
ZERO, ONE = Single(0), Single(1)


def smooth(m: Any, x: Any, average: Any, floor: Any) -> Any:
    """The averages (5, S) after x (S,): the first observation is the mean, later ones move it."""
    mean, diff_var, sample_var, last, seen = (average[row] for row in range(5))
    first = seen == 0
    diff = 0.95 * diff_var + 0.05 * m.square(x - last)
    sample = 0.95 * sample_var + 0.05 * m.square(x - mean)
    gain = m.maximum(floor, sample / (sample + diff + 1e-30))
    moved = mean + gain * (x - mean)
    return m.stack(
        [
            m.where(first, x, moved),
            m.where(first, 0.0, diff),
            m.where(first, 0.0, sample),
            x,
            m.where(first, 1.0, seen),
        ]
    )


def smooth_scalar(
    index: tuple[int, ...], x: Sequence[float], average: Matrix, floor: Sequence[float]
) -> Any:
    """One number of one average's state."""
    row, place = index
    new = mpmath.mpf(float(x[place]))
    mean, change_var, spread_var, last, seen = (
        mpmath.mpf(float(average[r][place])) for r in range(5)
    )
    if row == 3:
        return new
    if seen == 0:
        return {0: new, 4: mpmath.mpf(1)}.get(row, mpmath.mpf(0))
    with mpmath.workprec(_BITS):
        rate = mpmath.mpf(1) / 20
        changes = (1 - rate) * change_var + rate * (new - last) ** 2
        spreads = (1 - rate) * spread_var + rate * (new - mean) ** 2
        share = spreads / (spreads + changes + mpmath.mpf("1e-30"))
        alpha = max(mpmath.mpf(float(floor[place])), share)
        return (mean + alpha * (new - mean), changes, spreads, new, seen)[row]


def weighted(m: Any, q: Any, net_edge: Any, var: Any, cost: Any) -> tuple[Any, Any]:
    """weight (S, N) and signed (S,): the direction is summed, not only the magnitude."""
    eps = 0.01 * cost[:, None]
    weight = m.maximum(net_edge, eps) / (var + m.square(cost)[:, None])
    direction = m.where(q > 0, 1.0, m.where(q < 0, -1.0, 0.0))
    total = m.sum(m.abs(weight), axis=1)
    signed = m.sum(2 * m.abs(q) * weight * direction, axis=1) / total
    return weight, m.minimum(m.maximum(signed, -1.0), 1.0)


def weighted_scalar(
    index: tuple[int, ...], output: str, q: Matrix, net_edge: Matrix, var: Matrix, cost: Any
) -> Any:
    """One weight, or one simulation's signal."""
    with mpmath.workprec(_BITS):
        fee = mpmath.mpf(float(cost[index[0]]))
        own = [
            max(mpmath.mpf(float(edge)), fee / 100) / (mpmath.mpf(float(spread)) + fee**2)
            for edge, spread in zip(net_edge[index[0]], var[index[0]], strict=True)
        ]
        if output == "weight":
            return own[index[1]]
        pull = mpmath.fsum(
            2 * mpmath.mpf(float(x)) * w for x, w in zip(q[index[0]], own, strict=True)
        )
        return pull / mpmath.fsum(own)


# ------------------------------------------------------------------------------ float32, pinned


@dataclass
class Average:
    """One adaptive average in float32, every expression rounded as it is written."""

    floor: Single
    mean: Single = ZERO
    diff_var: Single = ZERO
    sample_var: Single = ZERO
    last: Single = ZERO
    seen: bool = False

    def observe(self, x: Single) -> Single:
        """Take one more observation and return the mean."""
        if not self.seen:
            self.mean, self.seen = x, True
            self.diff_var = self.sample_var = ZERO
        else:
            r = Single(0.05)
            change, off = x - self.last, x - self.mean
            self.diff_var = (ONE - r) * self.diff_var + r * (change * change)
            self.sample_var = (ONE - r) * self.sample_var + r * (off * off)
            share = self.sample_var / (self.sample_var + self.diff_var + Single(1e-30))
            self.mean = self.mean + max(self.floor, share) * off
        self.last = x
        return self.mean


def sign(x: Single) -> Single:
    """1, 0 or -1."""
    return ONE if x > 0 else -ONE if x < 0 else ZERO


def weights_of(net_edge: Sequence[Single], var: Sequence[Single], cost: Single) -> list[Single]:
    """The weight of each horizon."""
    eps = Single(0.01) * cost
    square = cost * cost
    return [max(edge, eps) / (v + square) for edge, v in zip(net_edge, var, strict=True)]


def signed_terms(q: Sequence[Single], weight: Sequence[Single]) -> list[Single]:
    """(magnitude weight) direction of each horizon."""
    return [((Single(2) * abs(x)) * w) * sign(x) for x, w in zip(q, weight, strict=True)]


def total(terms: Sequence[Single]) -> Single:
    """The float32 sum in ascending order."""
    found = ZERO
    for term in terms:
        found = found + term
    return found


def signal_of(q: Sequence[Single], weight: Sequence[Single]) -> Single:
    """The signal: the sum of signed terms over the sum of weights, clamped to [-1, 1]."""
    pull = total(signed_terms(q, weight)) / total([abs(w) for w in weight])
    return min(max(pull, -ONE), ONE)


def target_of(signed: Single, conviction: Single, threshold: Single, max_lots: int) -> int:
    """The target in lots; 0 when the conviction lies under the threshold."""
    if conviction < threshold:
        return 0
    lots = round(float(sign(signed) * conviction * Single(max_lots)))
    return min(max(lots, -max_lots), max_lots)


@dataclass
class Decider:
    """The smoothed horizons and conviction of one simulation."""

    horizon_floor: Single
    conviction_floor: Single
    horizons: int
    q: list[Average] = field(init=False)
    conviction: Average = field(init=False)

    def __post_init__(self) -> None:
        self.q = [Average(self.horizon_floor) for _ in range(self.horizons)]
        self.conviction = Average(self.conviction_floor)

    def smooth(self, p: Sequence[Single]) -> list[Single]:
        """Observe the probabilities of one event; NaN counts as 0.5."""
        half = Single(0.5)
        centred = [ZERO if np.isnan(x) else x - half for x in p]
        return [average.observe(x) for average, x in zip(self.q, centred, strict=True)]


@pinned
def follow(
    p: Any,
    net_edge: Any,
    var: Any,
    cost: Any,
    threshold: Any,
    max_lots: Any,
    horizon_floor: Any,
    conviction_floor: Any,
    horizon_average: Any,
    conviction_average: Any,
) -> tuple[Any, ...]:
    """q (E, S, N), signed, conviction, target (E, S), missing (S,), and both averages after."""
    (events, horizons), simulations = p.shape, len(cost)
    q = np.zeros((events, simulations, horizons), Single)
    signed, conviction = np.zeros((2, events, simulations), Single)
    target = np.zeros((events, simulations), np.int64)
    for s in range(simulations):
        decider = Decider(horizon_floor[s], conviction_floor[s], horizons)
        decider.q = [_average(horizon_floor[s], horizon_average[:, s, h]) for h in range(horizons)]
        decider.conviction = _average(conviction_floor[s], conviction_average[:, s])
        weight = weights_of(net_edge[s], var[s], cost[s])
        for e in range(events):
            q[e, s] = means = decider.smooth(p[e])
            signed[e, s] = signal = signal_of(means, weight)
            conviction[e, s] = now = decider.conviction.observe(abs(signal))
            target[e, s] = target_of(signal, now, threshold[s], int(max_lots[s]))
        for h, average in enumerate(decider.q):
            horizon_average[:, s, h] = _state(average)
        conviction_average[:, s] = _state(decider.conviction)
    missing = np.full(simulations, int(np.isnan(p).sum()))
    return q, signed, conviction, target, missing, horizon_average, conviction_average


def _average(floor: Single, state: Any) -> Average:
    mean, diff_var, sample_var, last, seen = state
    return Average(floor, mean, diff_var, sample_var, last, seen != 0)


def _state(average: Average) -> list[float]:
    numbers = (average.mean, average.diff_var, average.sample_var, average.last)
    return [*map(float, numbers), float(average.seen)]
