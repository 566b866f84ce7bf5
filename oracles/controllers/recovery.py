"""Swapping and inheriting, where comparisons decide: exact fractions, or logarithms."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from trivet.oracles._pinned import pinned, stored

# log of two float32 ratios differs by 2^-48 or not at all: far less than this precision resolves.
_BITS = 300
_EQUAL = mpmath.mpf(2) ** -200
Row = Sequence[float]


def _neighbour(owner: Any, mean: Any, floor: Any, k: int) -> int:
    """The non-empty bucket beside k of larger mean / floor, the lower at a tie; -1 without."""
    beside = [b for b in (k - 1, k + 1) if 0 <= b < len(mean) and np.any(np.asarray(owner) == b)]
    healthiest = sorted(beside, key=lambda b: (-Fraction(float(mean[b])) / _of(floor[b]), b))
    return healthiest[0] if healthiest else -1


def _of(value: Any) -> Fraction:
    return Fraction(float(value))


@pinned
def channel_swap(
    tau: Any, activity: Any, bucket_of: Any, mean: Any, floor: Any, k: int
) -> tuple[Any, Any]:
    """bucket_of afterwards (H,) and the neighbour (1,), in exact fractions."""
    return exchanged(tau, activity, bucket_of, mean, floor, k)


def exchanged(
    tau: Any, activity: Any, bucket_of: Any, mean: Any, floor: Any, k: int
) -> tuple[Any, Any]:
    """`channel_swap` of float32 arrays."""
    owner = np.array(bucket_of)
    neighbour = _neighbour(owner, mean, floor, k)
    if neighbour < 0:
        return owner, np.array([-1])
    givers = sorted(np.flatnonzero(owner == k), key=lambda c: (float(activity[c]), c))
    free = list(np.flatnonzero(owner == neighbour))
    wanted = max(1, math.ceil(len(givers) * (1 - _of(mean[k]) / _of(floor[k]))))
    for giver in givers[: min(len(free), wanted)]:
        taker = min(free, key=lambda c: (_ratio(tau[c], tau[giver]), c))
        free.remove(taker)
        owner[giver], owner[taker] = neighbour, k
    return owner, np.array([neighbour])


def _ratio(one: Any, other: Any) -> Fraction:
    """The larger over the smaller: it grows with the distance of the logarithms."""
    return max(_of(one), _of(other)) / min(_of(one), _of(other))


def channel_swap_by_logarithms(
    index: tuple[int, ...],
    output: str,
    tau: Row,
    activity: Row,
    bucket_of: Sequence[int],
    mean: Row,
    floor: Row,
    k: int,
) -> int:
    """One channel's bucket afterwards, or the neighbour: distances of logarithms, one by one."""
    owner, neighbour = exchanged_by_logarithms(tau, activity, bucket_of, mean, floor, k)
    return neighbour if output == "neighbour" else owner[index[0]]


def exchanged_by_logarithms(
    tau: Row, activity: Row, bucket_of: Sequence[int], mean: Row, floor: Row, k: int
) -> tuple[list[int], int]:
    """Every channel's bucket afterwards, and the neighbour."""
    owner = [int(b) for b in bucket_of]
    sizes = [owner.count(b) for b in range(len(mean))]
    with mpmath.workprec(_BITS):
        health = [_health(b, sizes, mean, floor) for b in (k - 1, k + 1)]
        if max(health) < 0:
            return owner, -1
        neighbour = k - 1 if health[0] >= health[1] else k + 1
        share = 1 - mpmath.mpf(float(mean[k])) / float(floor[k])
        rest = min(sizes[neighbour], sizes[k], max(1, int(mpmath.ceil(sizes[k] * share))))
        taken: set[int] = set()
        for _ in range(rest):
            giver = _least_active(owner, taken, activity, k)
            taker = _nearest(owner, taken, tau, giver, neighbour)
            taken |= {giver, taker}
            owner[giver], owner[taker] = neighbour, k
    return owner, neighbour


def _health(bucket: int, sizes: list[int], mean: Row, floor: Row) -> Any:
    """mean / floor of a bucket, -1 where it does not exist or is empty."""
    if not 0 <= bucket < len(sizes) or not sizes[bucket]:
        return mpmath.mpf(-1)
    return mpmath.mpf(float(mean[bucket])) / float(floor[bucket])


def _least_active(owner: list[int], taken: set[int], activity: Row, k: int) -> int:
    """The first of bucket k's channels, of those not yet moved, than which none is less active."""
    best = -1
    for channel, bucket in enumerate(owner):
        is_less = best < 0 or activity[channel] < activity[best]
        if bucket == k and channel not in taken and is_less:
            best = channel
    return best


def _nearest(owner: list[int], taken: set[int], tau: Row, giver: int, neighbour: int) -> int:
    """The first of the neighbour's channels, of those not yet moved, than which none is nearer."""
    best, least = -1, mpmath.inf
    for channel, bucket in enumerate(owner):
        distance = abs(mpmath.log(float(tau[channel])) - mpmath.log(float(tau[giver])))
        if bucket == neighbour and channel not in taken and distance < least - _EQUAL:
            best, least = channel, distance
    return best


def inherit_tau(
    m: Any, tau: Any, bucket_of: Any, lo: Any, hi: Any, mean: Any, floor: Any, k: int
) -> tuple[Any, ...]:
    """tau, lo and hi afterwards, and the neighbour (1,)."""
    owner = np.asarray(bucket_of)
    neighbour = _neighbour(owner, stored(mean), stored(floor), k)
    if neighbour < 0:
        return tau, lo, hi, np.array([-1])
    seconds = stored(tau)
    heirs = np.flatnonzero(owner == k)
    heirs = heirs[np.argsort(seconds[heirs], kind="stable")]
    theirs = m.sort(tau[owner == neighbour])
    last, channels = theirs.shape[0] - 1, [tau[c] for c in range(len(owner))]
    for rank, channel in enumerate(heirs):
        place = Fraction(last, 2) if len(heirs) == 1 else Fraction(rank * last, len(heirs) - 1)
        under, share = int(place), float(place - int(place))
        low = theirs[under]
        channels[channel] = low + share * (theirs[min(under + 1, last)] - low)
    source = np.where(np.arange(len(lo)) == k, neighbour, np.arange(len(lo)))
    return m.stack(channels), lo[source], hi[source], np.array([neighbour])


def inherit_tau_scalar(
    index: tuple[int, ...],
    output: str,
    tau: Row,
    bucket_of: Sequence[int],
    lo: Row,
    hi: Row,
    mean: Row,
    floor: Row,
    k: int,
) -> Any:
    """One channel's tau, one end of a range, or the neighbour."""
    owner, i = [int(b) for b in bucket_of], index[0]
    sizes = [owner.count(b) for b in range(len(mean))]
    below, above = (_health(b, sizes, mean, floor) for b in (k - 1, k + 1))
    neighbour = -1 if max(below, above) < 0 else k - 1 if below >= above else k + 1
    if output == "neighbour":
        return neighbour
    if output in ("new_lo", "new_hi"):
        end = lo if output == "new_lo" else hi
        return mpmath.mpf(float(end[neighbour if i == k and neighbour >= 0 else i]))
    own = mpmath.mpf(float(tau[i]))
    if owner[i] != k or neighbour < 0:
        return own
    with mpmath.workprec(_BITS):
        mates = [(float(tau[c]), c) for c in range(len(owner)) if owner[c] == k]
        quantile = mpmath.mpf(1) / 2
        if len(mates) > 1:
            earlier = sum(mate < (float(tau[i]), i) for mate in mates)
            quantile = mpmath.mpf(earlier) / (len(mates) - 1)
        ladder = sorted(float(tau[c]) for c in range(len(owner)) if owner[c] == neighbour)
        return _interpolated(ladder, quantile)


def _interpolated(ladder: list[float], quantile: Any) -> Any:
    """The value at a quantile of ascending numbers, each a share of its two nearest."""
    place = quantile * (len(ladder) - 1)
    return mpmath.fsum(
        max(mpmath.mpf(0), 1 - abs(place - j)) * value for j, value in enumerate(ladder)
    )
