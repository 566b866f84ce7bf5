"""When an open trade is given up, from the formulas: in the namespace, in mpmath, in float32."""

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from trivet.oracles._pinned import pinned

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
STAYS, COMPOSITE, STOP, HOLD = range(4)
Single = np.float32
ZERO, ONE = Single(0), Single(1)


def levels(
    m: Any,
    position: Any,
    basis: Any,
    bid: Any,
    ask: Any,
    at_entry: Any,
    conviction: Any,
    pnl: Any,
    disagreement: Any,
    mean_var: Any,
    cost: Any,
    stop_multiple: Any,
) -> tuple[Any, Any, Any]:
    """unrealised, composite and stop level (S,)."""
    doubled = position.astype(np.int64) * (bid.astype(np.int64) + ask) - 2 * basis
    unseen = at_entry == 0
    ratio = conviction / m.where(unseen, 1.0, at_entry)
    degradation = m.where(unseen, 0.0, (1 - ratio) / 2)
    disputed = disagreement / 32.0
    decay = m.maximum(-pnl, 0.0)
    spread = m.sqrt(mean_var + m.square(cost))
    composite = m.maximum(m.maximum(degradation, disputed), decay)
    return doubled / 2.0, composite, -(stop_multiple * spread * np.abs(position))


def levels_scalar(
    index: tuple[int, ...],
    output: str,
    position: Sequence[int],
    basis: Sequence[int],
    bid: Sequence[int],
    ask: Sequence[int],
    at_entry: Sequence[float],
    conviction: Sequence[float],
    pnl: Sequence[float],
    disagreement: Sequence[int],
    mean_var: Sequence[float],
    cost: Sequence[float],
    stop_multiple: Sequence[float],
) -> Any:
    """One level of one trade."""
    (s,) = index
    with mpmath.workprec(_BITS):
        if output == "unrealised":
            mid = mpmath.mpf(int(bid[s]) + int(ask[s])) / 2
            return int(position[s]) * mid - int(basis[s])
        if output == "composite":
            entry = mpmath.mpf(float(at_entry[s]))
            kept = mpmath.mpf(float(conviction[s])) / entry if entry else mpmath.mpf(1)
            worst = [(1 - kept) / 2, mpmath.mpf(int(disagreement[s])) / 32, mpmath.mpf(0)]
            return max(*worst, -mpmath.mpf(float(pnl[s])))
        if np.isinf(stop_multiple[s]):
            return -mpmath.inf if position[s] else mpmath.nan
        fee = mpmath.mpf(float(cost[s]))
        wide = mpmath.sqrt(mpmath.mpf(float(mean_var[s])) + fee * fee)
        return -mpmath.mpf(float(stop_multiple[s])) * wide * abs(int(position[s]))


# ------------------------------------------------------------------------------ float32, pinned


def unrealised_of(position: int, basis: int, bid: int, ask: int) -> Single:
    """The open profit at the mid; the doubled integer is rounded once."""
    return Single(0.5) * Single(np.int64(position * (bid + ask) - 2 * basis))


def composite_of(at_entry: Single, conviction: Single, pnl: Single, disagreement: int) -> Single:
    """The largest of degradation, disagreement and decay."""
    faded = ZERO if at_entry == 0 else (ONE - conviction / at_entry) / Single(2)
    return max(faded, Single(disagreement) / Single(32), max(-pnl, ZERO) / ONE)


def stop_of(multiple: Single, mean_var: Single, cost: Single, size: int) -> Single:
    """The stop level."""
    spread: Single = np.sqrt(mean_var + cost * cost)
    return -((multiple * spread) * Single(size))


def reason_of(unrealised: Single, composite: Single, stop: Single, held: int, max_hold: int) -> int:
    """The first rule that fires."""
    if composite >= 1:
        return COMPOSITE
    if unrealised <= stop:
        return STOP
    return HOLD if held >= max_hold else STAYS


@pinned
def judge(
    position: Any,
    basis: Any,
    bid: Any,
    ask: Any,
    held: Any,
    at_entry: Any,
    conviction: Any,
    pnl: Any,
    disagreement: Any,
    mean_var: Any,
    cost: Any,
    stop_multiple: Any,
    max_hold: Any,
) -> tuple[Any, ...]:
    """unrealised, composite, stop level and reason (S,)."""
    count = len(position)
    numbers = np.zeros((3, count), Single)
    reason = np.zeros(count, np.int64)
    for s in range(count):
        own = int(position[s])
        numbers[:, s] = row = (
            unrealised_of(own, int(basis[s]), int(bid[s]), int(ask[s])),
            composite_of(at_entry[s], conviction[s], pnl[s], int(disagreement[s])),
            stop_of(stop_multiple[s], mean_var[s], cost[s], abs(own)),
        )
        if own:
            reason[s] = reason_of(*row, int(held[s]), int(max_hold[s]))
    return *numbers, reason
