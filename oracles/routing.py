"""Bucket routing, written from its definitions: every kernel twice, sharing nothing.

The array form takes the math namespace ``m`` and gives whole outputs; the form whose name ends in
``_scalar`` takes the index of one output element and answers for it alone. Integer arrays are plain
NumPy in both. ``tau`` (H,) are time constants in seconds, ``bucket_of`` (H,) buckets by original
channel, ``table`` (N, M) the channels of each bucket with -1 in unused slots.
"""

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120


def tau_sort(m: Any, tau: Any) -> Any:
    """The stable ascending argsort: before a channel stand the smaller, and equal earlier ones."""
    channels = np.arange(tau.shape[0])
    smaller = tau[None, :] < tau[:, None]
    equal_and_earlier = (tau[None, :] == tau[:, None]) & (channels[None, :] < channels[:, None])
    place = m.sum(smaller | equal_and_earlier, axis=1)
    return np.argsort(place, kind="stable").astype(np.int32)


def tau_sort_scalar(index: tuple[int, ...], tau: Sequence[float]) -> int:
    """The channel at one position: the one that as many channels precede."""
    ranked = sorted((float(seconds), channel) for channel, seconds in enumerate(tau))
    return ranked[index[0]][1]


def bucket_assign(m: Any, order: Any, N: int) -> tuple[Any, Any, Any]:
    """Contiguous quantiles of the order; the first H mod N buckets hold one more."""
    channels = order.shape[0]
    size = np.full(N, channels // N) + (np.arange(N) < channels % N)
    offset = np.cumsum(size) - size
    bucket_of = np.zeros(channels, np.int64)
    bucket_of[order] = np.repeat(np.arange(N), size)
    return bucket_of, size, offset


def bucket_assign_scalar(index: tuple[int, ...], output: str, order: Sequence[int], N: int) -> int:
    """One entry of bucket_of, size or offset, by dealing out places one bucket after another."""
    ends, dealt = [], 0
    for bucket in range(N):
        dealt += len(order) // N
        dealt += 1 if bucket < len(order) % N else 0
        ends.append(dealt)
    if output == "bucket_of":
        place = next(p for p, channel in enumerate(order) if channel == index[0])
        return next(bucket for bucket, end in enumerate(ends) if place < end)
    start = ends[index[0] - 1] if index[0] else 0
    return start if output == "offset" else ends[index[0]] - start


def channels_in_bucket(m: Any, bucket_of: Any, N: int, M: int) -> Any:
    """Row k: the original channels of bucket k in ascending order, then -1."""
    table = np.full((N, M), -1)
    for bucket in range(N):
        members = np.flatnonzero(bucket_of == bucket)
        table[bucket, : len(members)] = members
    return table


def channels_in_bucket_scalar(index: tuple[int, ...], bucket_of: Sequence[int]) -> int:
    """The channel before which exactly as many of its bucket stand as the slot's number says."""
    bucket, slot = index
    before = 0
    for channel, owner in enumerate(bucket_of):
        if owner == bucket:
            if before == slot:
                return channel
            before += 1
    return -1


def bucket_iqr(m: Any, tau: Any, bucket_of: Any, N: int) -> tuple[Any, Any]:
    """Quartiles at (size-1)/4 and 3(size-1)/4 between order statistics; (0, +inf) when empty."""
    first, third = [], []
    for bucket in range(N):
        members = m.sort(tau[bucket_of == bucket])
        if members.shape[0] == 0:
            first.append(0.0)
            third.append(np.inf)
            continue
        last = members.shape[0] - 1
        first.append(_between(members, last))
        third.append(_between(members, 3 * last))
    return m.stack(first), m.stack(third)


def _between(members: Any, quarters: int) -> Any:
    """The value at position quarters/4 of ascending members; 0, 1/4, 1/2 and 3/4 are exact."""
    lower, fraction = quarters // 4, quarters % 4 / 4
    if fraction == 0.0:
        return members[lower]
    return members[lower] + fraction * (members[lower + 1] - members[lower])


def bucket_iqr_scalar(
    index: tuple[int, ...], output: str, tau: Sequence[float], bucket_of: Sequence[int]
) -> Any:
    """One quartile of one bucket, in exact arithmetic."""
    ascending = sorted(
        float(t) for t, owner in zip(tau, bucket_of, strict=True) if owner == index[0]
    )
    if not ascending:
        return mpmath.mpf(0) if output == "q1" else mpmath.inf
    with mpmath.workprec(_BITS):
        position = mpmath.mpf((len(ascending) - 1) * (1 if output == "q1" else 3)) / 4
        below = int(mpmath.floor(position))
        above = min(below + 1, len(ascending) - 1)
        share = position - below
        return (1 - share) * mpmath.mpf(ascending[below]) + share * mpmath.mpf(ascending[above])


def iqr_widen(m: Any, q1: Any, q3: Any) -> tuple[Any, Any]:
    """lo = q1/slack and hi = q3 slack with slack = sqrt(q3/q1); (0, +inf) stays."""
    empty = q1 == 0
    slack = m.sqrt(m.where(empty, 1.0, q3) / m.where(empty, 1.0, q1))
    return m.where(empty, q1, q1 / slack), m.where(empty, q3, q3 * slack)


def iqr_widen_scalar(
    index: tuple[int, ...], output: str, q1: Sequence[float], q3: Sequence[float]
) -> Any:
    """One end of one range."""
    low, high = float(q1[index[0]]), float(q3[index[0]])
    if low == 0:
        return mpmath.mpf(0) if output == "lo" else mpmath.inf
    with mpmath.workprec(_BITS):
        first, third = mpmath.mpf(low), mpmath.mpf(high)
        root = mpmath.sqrt(first * third)  # q1/slack = q1 sqrt(q1/q3), q3 slack = q3 sqrt(q3/q1)
        return first * first / root if output == "lo" else third * third / root


def iqr_double_widen(m: Any, lo: Any, hi: Any, k: int) -> tuple[Any, Any]:
    """Halve lo[k] and double hi[k]."""
    chosen = np.arange(lo.shape[0]) == k
    return m.where(chosen, lo / 2, lo), m.where(chosen, hi * 2, hi)


def iqr_double_widen_scalar(
    index: tuple[int, ...], output: str, lo: Sequence[float], hi: Sequence[float], k: int
) -> Any:
    """One end of one range."""
    end, factor = {"new_lo": (lo, "0.5"), "new_hi": (hi, "2")}[output]
    return mpmath.mpf(float(end[index[0]])) * mpmath.mpf(factor if index[0] == k else "1")


def tau_clamp(m: Any, tau: Any, bucket_of: Any, lo: Any, hi: Any) -> Any:
    """Clamp every channel into its own bucket's range; NaN stays NaN."""
    return m.minimum(m.maximum(tau, lo[bucket_of]), hi[bucket_of])


def tau_clamp_scalar(
    index: tuple[int, ...],
    tau: Sequence[float],
    bucket_of: Sequence[int],
    lo: Sequence[float],
    hi: Sequence[float],
) -> Any:
    """One channel's time constant."""
    own = int(bucket_of[index[0]])
    seconds, low, high = float(tau[index[0]]), float(lo[own]), float(hi[own])
    if seconds < low:
        return mpmath.mpf(low)
    if seconds > high:
        return mpmath.mpf(high)
    return mpmath.mpf(seconds)


def heads_compact(m: Any, w_skip: Any, table: Any) -> tuple[Any, Any]:
    """Bucket k's own weights in table order, packed at offset[k]; +0.0 after the last."""
    size = (table >= 0).sum(axis=1)
    offset = np.cumsum(size) - size
    bucket, slot = np.nonzero(table >= 0)
    packed = w_skip[bucket, table[bucket, slot]]
    rest = np.zeros(w_skip.shape[1] - len(bucket))
    return m.concatenate([packed, rest]), offset


def heads_compact_scalar(
    index: tuple[int, ...], output: str, w_skip: Any, table: Sequence[Sequence[int]]
) -> Any:
    """One packed weight, or where a bucket starts."""
    if output == "offset":
        return sum(1 for row in table[: index[0]] for channel in row if channel >= 0)
    left = index[0]
    for bucket, row in enumerate(table):
        for channel in row:
            if channel >= 0 and left == 0:
                return mpmath.mpf(float(w_skip[bucket][channel]))
            left -= channel >= 0
    return mpmath.mpf(0)


def mask_init(m: Any, bucket_of: Any, N: int) -> Any:
    """1 where a channel belongs to the bucket, else 0; float32 (N, H)."""
    return (np.arange(N)[:, None] == bucket_of[None, :]).astype(np.int64)


def mask_init_scalar(index: tuple[int, ...], bucket_of: Sequence[int]) -> int:
    """One entry of the mask."""
    bucket, channel = index
    return 1 if bucket_of[channel] == bucket else 0


def zero_off_bucket(m: Any, buffer: Any, bucket_of: Any) -> Any:
    """The buffer where the channel belongs to the row's bucket, else +0.0."""
    own = np.arange(buffer.shape[0])[:, None] == bucket_of[None, :]
    return m.where(own, buffer, 0.0)


def zero_off_bucket_scalar(index: tuple[int, ...], buffer: Any, bucket_of: Sequence[int]) -> Any:
    """One entry of the buffer afterwards."""
    bucket, channel = index
    kept = int(bucket_of[channel]) == bucket
    return mpmath.mpf(float(buffer[bucket][channel])) if kept else mpmath.mpf(0)


def grad_mask_apply(m: Any, grad: Any, mask: Any) -> Any:
    """The gradient where the mask is 1, else +0.0: a select, not a product."""
    return m.where(mask == 1, grad, 0.0)


def grad_mask_apply_scalar(index: tuple[int, ...], grad: Any, mask: Any) -> Any:
    """One entry of the masked gradient."""
    bucket, channel = index
    chosen = float(mask[bucket][channel]) != 0.0
    return mpmath.mpf(float(grad[bucket][channel])) if chosen else mpmath.mpf(0)
