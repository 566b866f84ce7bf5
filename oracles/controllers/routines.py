"""What a swap leaves behind, from the buckets of before and after: exact, whatever the order."""

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from trivet.oracles._pinned import pinned
from trivet.oracles.controllers.recovery import exchanged, exchanged_by_logarithms

Row = Sequence[float]
Matrix = Sequence[Row]


@pinned
def swap_bucket(
    h: Any,
    tau: Any,
    bucket_of: Any,
    params: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    mean: Any,
    floor: Any,
    k: int,
    M: int,
) -> tuple[Any, ...]:
    """bucket_of, table, mask, w_compact and the neighbour; then params and both moments."""
    owner, neighbour = exchanged(tau, np.abs(h).sum(axis=0), bucket_of, mean, floor, k)
    moved = owner != bucket_of
    buffers = [np.where(moved, np.float32(0), each) for each in (params, exp_avg, exp_avg_sq)]
    mask = np.arange(len(params))[:, None] == owner
    table = np.full((len(params), M), -1)
    for bucket, row in enumerate(mask):
        table[bucket, : row.sum()] = np.flatnonzero(row)
    packed = buffers[0][mask]
    w_compact = np.concatenate([packed, np.zeros(len(owner) - len(packed), np.float32)])
    return owner, table, mask.astype(np.float32), w_compact, neighbour, *buffers


def swap_bucket_scalar(
    index: tuple[int, ...],
    output: str,
    h: Matrix,
    tau: Row,
    bucket_of: Sequence[int],
    params: Matrix,
    exp_avg: Matrix,
    exp_avg_sq: Matrix,
    mean: Row,
    floor: Row,
    k: int,
) -> Any:
    """One element of what is left."""
    activity = [sum(abs(float(row[c])) for row in h) for c in range(len(tau))]
    owner, neighbour = exchanged_by_logarithms(tau, activity, bucket_of, mean, floor, k)
    if output == "neighbour":
        return neighbour
    if output == "swapped":
        return owner[index[0]]
    if output == "table":
        members = [c for c, bucket in enumerate(owner) if bucket == index[0]]
        return members[index[1]] if index[1] < len(members) else -1
    if output == "mask":
        return mpmath.mpf(int(owner[index[1]] == index[0]))
    if output == "w_compact":
        return _packed(index[0], params, bucket_of, owner)
    buffer = {"params": params, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}[output]
    moved = owner[index[1]] != int(bucket_of[index[1]])
    return mpmath.mpf(0 if moved else float(buffer[index[0]][index[1]]))


def _packed(place: int, params: Matrix, before: Sequence[int], owner: list[int]) -> Any:
    """The weight at one place: channels sorted by bucket, those in none at the end as 0."""
    filled = sorted((bucket, c) for c, bucket in enumerate(owner) if bucket >= 0)
    if place >= len(filled):
        return mpmath.mpf(0)
    bucket, channel = filled[place]
    return mpmath.mpf(float(params[bucket][channel]) if before[channel] == bucket else 0)
