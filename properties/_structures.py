"""Kinds of values for integer arguments: indices, segment offsets, permutations, bucket tables."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from trivet.properties._stream import Shape, Stream
from trivet.properties._values import Request

Ints = NDArray[np.int64]
IntKind = Callable[[Request, int, int], Ints]


def _along(shape: Shape) -> Ints:
    return np.broadcast_to(np.arange(shape[-1] if shape else 1), shape or (1,)).reshape(shape)


def _even(request: Request, lo: int, hi: int) -> Ints:
    return lo + request.stream.below(hi - lo + 1, request.shape)


def _ends(request: Request, lo: int, hi: int) -> Ints:
    return np.where(request.stream.below(2, request.shape) == 0, lo, hi)


def _all_low(request: Request, lo: int, hi: int) -> Ints:
    return np.full(request.shape, lo)


def _all_high(request: Request, lo: int, hi: int) -> Ints:
    return np.full(request.shape, hi)


def _rising(request: Request, lo: int, hi: int) -> Ints:
    return np.asarray(lo + _along(request.shape) % (hi - lo + 1))


def _falling(request: Request, lo: int, hi: int) -> Ints:
    return np.asarray(hi - _along(request.shape) % (hi - lo + 1))


def _few(request: Request, lo: int, hi: int) -> Ints:
    levels = np.array([lo + request.stream.pick(hi - lo + 1, salt) for salt in range(3)])
    return levels[request.stream.below(3, request.shape, 1)]


def _front(request: Request, lo: int, hi: int) -> Ints:
    """The first rows (of a 1-D array, elements) all low: rows with nothing live in a mask."""
    values = _even(request, lo, hi)
    if values.ndim:
        values[: 1 + request.stream.pick(max(1, values.shape[0] // 2), 2)] = lo
    return values


def _near_zero(request: Request, lo: int, hi: int) -> Ints:
    low, high = max(lo, min(hi, -2)), min(hi, max(lo, 2))
    return _even(request, low, high)


INTEGER_KINDS: Mapping[str, IntKind] = {
    "even": _even,
    "rising": _rising,
    "ends": _ends,
    "few": _few,
    "front_low": _front,
    "all_high": _all_high,
    "falling": _falling,
    "near_zero": _near_zero,
    "all_low": _all_low,
}
# Readable kinds, simplest first: 0 throughout (or the end nearest to it), 1, and 1, 2, 3.
SIMPLE_INTEGERS = ("zeros", "ones", "counting")
SENTINELS = ("nowhere", "scattered", "leading", "trailing", "everywhere")


def whole_values(request: Request, kind: str, lo: int, hi: int) -> Ints:
    """Whole numbers from lo to hi of one of INTEGER_KINDS or SIMPLE_INTEGERS."""
    if kind in ("zeros", "ones"):
        return np.full(request.shape, min(max(lo, int(kind == "ones")), hi))
    if kind == "counting":
        least = min(max(lo, 1), hi)
        return np.asarray(least + _along(request.shape) % (hi - least + 1))
    return np.array(INTEGER_KINDS[kind](request, lo, hi), dtype=np.int64)


def distinct_values(request: Request, kind: str, lo: int, hi: int) -> Ints:
    """Distinct whole numbers from lo to hi: ``even`` (random), ``rising``, ``falling``, ``ends``.

    The caller has checked that the range is large enough.
    """
    count = int(np.prod(request.shape))
    room = hi - lo + 1
    order = np.arange(count, dtype=np.int64)
    if kind == "even":
        order = _distinct(request.stream, count, room)
    elif kind == "falling":
        order = room - 1 - order
    elif kind == "ends":
        order = np.where(order % 2 == 0, order // 2, room - 1 - order // 2)
    return (lo + order).reshape(request.shape)


def _distinct(stream: Stream, count: int, room: int) -> Ints:
    if room <= 1 << 20:
        return np.argsort(stream.bits((room,), 3), kind="stable")[:count].astype(np.int64)
    spread = room // max(1, count)
    return np.arange(count) * spread + stream.below(spread, (count,), 3)


def place_sentinels(values: Ints, where: str, sentinel: int, stream: Stream) -> Ints:
    """``values`` with a sentinel nowhere, scattered, in a leading or trailing run, or everywhere.

    Runs are along the last axis and cover from one element to nearly all of it.
    """
    if where == "nowhere" or not values.size:
        return values
    if where == "everywhere":
        return np.full(values.shape, sentinel)
    if where == "scattered" or not values.ndim:
        return np.where(stream.below(3, values.shape, 11) == 0, sentinel, values)
    size = values.shape[-1]
    run = min(size, 1 + int(stream.number(12) ** 0.5 * size))
    along = _along(values.shape)
    return np.where(along < run if where == "leading" else along >= size - run, sentinel, values)


COUNT_KINDS = ("ragged", "even", "one_giant", "skewed", "ones", "some_empty", "giant_last")


def count_values(rows: int, parts: int, total: int, request: Request, *, least: int = 0) -> Ints:
    """Whole numbers of at least ``least`` summing to ``total`` along the last axis.

    Shape (rows, parts). The caller has checked that parts * least <= total, and that parts is 0
    only where total is.
    """
    table = np.zeros((rows, parts), np.int64)
    for row in range(rows):
        stream = Stream(request.stream.seed, f"{request.stream.name}/{row}")
        shares = _shares(stream, parts, request.kind)
        table[row] = least + _apportioned(shares, total - parts * least)
    return table


def _shares(stream: Stream, parts: int, kind: str) -> NDArray[np.float64]:
    ragged = stream.uniform((parts,)) + 0.05
    if kind == "even":
        return np.ones(parts)
    if kind == "skewed":
        return np.exp2(-np.arange(parts) / 1.5)
    if kind == "some_empty":
        kept = stream.below(2, (parts,), 1) == 1
        return np.where(kept, ragged, 0.0) if kept.any() else ragged
    if kind in ("one_giant", "giant_last") and parts:
        giant = parts - 1 if kind == "giant_last" else stream.pick(parts)
        return np.where(np.arange(parts) == giant, 1.0, 0.0)
    if kind == "ones":  # length 1 but for one that takes the rest
        return np.where(np.arange(parts) == stream.pick(parts), np.inf, 1.0)
    return ragged


def _apportioned(shares: NDArray[np.float64], total: int) -> Ints:
    """Whole numbers proportional to ``shares`` that sum to ``total``."""
    if not shares.size or not total:
        return np.zeros(len(shares), np.int64)
    rest = np.isinf(shares)
    if rest.any():
        parts = np.where(rest, 0, 1).astype(np.int64)
        parts = parts if parts.sum() <= total else np.zeros_like(parts)
        parts[np.argmax(rest)] += total - parts.sum()
        return parts
    edges = np.floor(np.cumsum(shares) / shares.sum() * total + 0.5).astype(np.int64)
    edges[-1] = total
    counts: Ints = np.diff(np.minimum(edges, total), prepend=0)
    return counts


def offset_values(shape: Shape, total: int, request: Request, *, full: bool, empty: bool) -> Ints:
    """Ascending offsets along the last axis from 0 to ``total`` (earlier where not ``full``)."""
    rows = int(np.prod(shape[:-1]))
    parts = shape[-1] - 1
    if parts < 0:
        return np.zeros(shape, np.int64)
    least = 0 if empty else 1
    end = total
    if not full and request.stream.pick(3, 21):
        end = parts * least + request.stream.pick(total - parts * least + 1, 22)
    table = count_values(rows, parts, end if parts else 0, request, least=least)
    return np.concatenate([np.zeros((rows, 1), np.int64), table.cumsum(axis=1)], 1).reshape(shape)


PERMUTATION_KINDS = ("random", "reversed", "rotated", "neighbours", "identity")


def permutation_values(request: Request) -> Ints:
    """A permutation of 0 .. n-1 along the last axis, each row its own where it is random."""
    along = _along(request.shape).astype(np.int64)
    size = request.shape[-1]
    if request.kind == "random" and size:
        words = request.stream.bits(request.shape, 31)
        return np.argsort(words, axis=-1, kind="stable").astype(np.int64)
    if request.kind == "reversed":
        return size - 1 - along
    if request.kind == "rotated" and size:
        return (along + 1 + request.stream.pick(size, 32)) % size
    if request.kind == "neighbours":  # pairs swapped, an odd last one stays
        return np.where(along // 2 * 2 + 1 < size, along ^ 1, along)
    return along


PARTITION_KINDS = ("mixed", "skewed", "one_giant", "some_empty", "full", "contiguous", "even")


def partition_values(shape: Shape, members: int, request: Request, *, total: bool) -> Ints:
    """A table (N, M): row k lists the members of bucket k, ascending, -1 pads the rest.

    Every one of ``members`` items is in exactly one bucket; with ``total`` false some are in none.
    The caller has checked that N * M holds them.
    """
    buckets, capacity = shape
    stream = request.stream
    if total:
        kept = np.arange(members)
    else:
        kept = np.flatnonzero(stream.below(4, (members,), 41) > 0)[: buckets * capacity]
    sizes = _bucket_sizes(stream, buckets, capacity, len(kept), request.kind)
    order = kept
    if request.kind != "contiguous":
        order = kept[np.argsort(stream.bits((len(kept),), 42), kind="stable")]
    table = np.full(shape, -1, np.int64)
    start = 0
    for bucket, size in enumerate(sizes):
        table[bucket, :size] = np.sort(order[start : start + size])
        start += size
    return table


def _bucket_sizes(stream: Stream, buckets: int, capacity: int, members: int, kind: str) -> Ints:
    if not buckets * capacity:
        return np.zeros(buckets, np.int64)
    shares = _shares(stream, buckets, {"mixed": "ragged", "contiguous": "ragged"}.get(kind, kind))
    if kind == "full":  # one bucket after another filled to the brim
        shares = np.where(np.argsort(stream.bits((buckets,), 43)) * capacity < members, 1.0, 0.0)
    sizes = np.minimum(_apportioned(shares, members), capacity)
    if kind == "full":
        sizes[:] = np.where(shares > 0, capacity, 0)
        sizes[np.argmax(sizes)] -= max(0, sizes.sum() - members)
    for bucket in np.argsort(stream.bits((buckets,), 44)):
        missing = members - int(sizes.sum())
        sizes[bucket] += min(missing, capacity - sizes[bucket])
    return sizes.astype(np.int64)
