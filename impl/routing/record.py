"""The routing record: who serves which channel, published as one immutable, versioned value."""

import dataclasses
from typing import Self

import numpy as np
import torch

from trivet.impl import _checks

_FORMS = {
    "bucket_of": ("H", torch.int32),
    "size": ("N", torch.int32),
    "offset": ("N", torch.int32),
    "table": ("N M", torch.int32),
    "lo": ("N", torch.float32),
    "hi": ("N", torch.float32),
}


@dataclasses.dataclass(frozen=True, eq=False)
class RoutingRecord:
    """Routing metadata of H channels in N buckets of capacity M.

    bucket_of (H,), size (N,), offset (N,) and table (N, M) are int32, lo and hi (N,) float32,
    all contiguous and on one device. The tensors belong to the record: nobody writes them.
    Building one directly checks nothing; `publish` and `replace` hand out checked records, and
    every consumer calls `validate` before it runs.
    """

    bucket_of: torch.Tensor
    size: torch.Tensor
    offset: torch.Tensor
    table: torch.Tensor
    lo: torch.Tensor
    hi: torch.Tensor
    version: int = 1
    _passed: list[tuple[int, ...]] = dataclasses.field(default_factory=list, init=False, repr=False)

    @classmethod
    def publish(
        cls,
        bucket_of: torch.Tensor,
        size: torch.Tensor,
        offset: torch.Tensor,
        table: torch.Tensor,
        lo: torch.Tensor,
        hi: torch.Tensor,
    ) -> Self:
        """Return version 1, made of copies; raises as `validate`."""
        draft = cls(bucket_of, size, offset, table, lo, hi)
        draft.validate()
        return draft._copied()

    def replace(self, **changes: torch.Tensor) -> Self:
        """Return the next version with these entries changed; this one stays as it is.

        Raises TypeError for an entry that a record does not have, and as `validate`.
        """
        unknown = sorted(set(changes) - set(_FORMS))
        if unknown:
            raise TypeError(f"a routing record has no entry {unknown[0]}")
        draft = dataclasses.replace(self, **changes, version=self.version + 1)  # type: ignore[arg-type]
        draft.validate(channels=self.bucket_of.shape[0], device=self.bucket_of.device)
        return draft._copied()

    def _copied(self) -> Self:
        copies = {name: tensor.clone() for name, tensor in self.tensors().items()}
        return dataclasses.replace(self, **copies)  # type: ignore[arg-type]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the entries by name, without the version."""
        return {name: getattr(self, name) for name in _FORMS}

    def validate(self, channels: int | None = None, device: torch.device | None = None) -> None:
        """Raise unless the record is whole, consistent, and fits a consumer.

        `channels` and `device` are the consumer's. TypeError for a wrong type or dtype,
        ValueError for everything else; each names the entry. Values are read once for as long
        as nothing was written to the tensors.
        """
        arguments = _checks.Arguments()
        for name, (dims, dtype) in _FORMS.items():
            arguments.tensor(name, getattr(self, name), dims, dtype)
        _checks.count("version", self.version, 1)
        if channels is not None and self.bucket_of.shape[0] != channels:
            raise ValueError(
                f"bucket_of must have H = {channels} channels, got {self.bucket_of.shape[0]}"
            )
        if device is not None and self.bucket_of.device != device:
            raise ValueError(f"bucket_of must be on {device}, got {self.bucket_of.device}")
        writes = tuple(
            -1 if tensor.is_inference() else tensor._version for tensor in self.tensors().values()
        )
        if writes not in self._passed:
            self._validate_values()
            self._passed[:] = [writes]

    def _validate_values(self) -> None:
        entries = {name: tensor.cpu().numpy() for name, tensor in self.tensors().items()}
        _check_sizes(entries["size"], entries["offset"], entries["table"].shape[1])
        _check_partition(entries["table"], entries["bucket_of"], entries["size"])
        _check_ranges(entries["lo"], entries["hi"])


def _check_sizes(size: np.ndarray, offset: np.ndarray, capacity: int) -> None:
    if not size.any():
        raise ValueError("size must not be all zero: the record was never filled")
    if (size < 0).any():
        raise ValueError(f"size must not be negative, got {size.tolist()}")
    over = np.flatnonzero(size > capacity)
    if over.size:
        bucket = int(over[0])
        raise ValueError(
            f"size must be within the capacity M = {capacity}, "
            f"got {size[bucket]} channels in bucket {bucket}"
        )
    expected = np.cumsum(size) - size
    if not np.array_equal(offset, expected):
        raise ValueError(
            f"offset must be the exclusive prefix sum of size, {expected.tolist()}, "
            f"got {offset.tolist()}"
        )


def _check_partition(table: np.ndarray, bucket_of: np.ndarray, size: np.ndarray) -> None:
    channels = bucket_of.shape[0]
    if ((table < -1) | (table >= channels)).any():
        raise ValueError(f"table must hold -1 or channels under H = {channels}, got {_odd(table)}")
    times = np.bincount(table[table >= 0], minlength=channels)
    if (times != 1).any():
        channel = int(np.flatnonzero(times != 1)[0])
        raise ValueError(
            f"table must be a partition of the channels, "
            f"got channel {channel} {times[channel]} times"
        )
    for bucket, row in enumerate(table):
        expected = np.full(row.shape, -1, row.dtype)
        members = np.flatnonzero(bucket_of == bucket)
        if members.size != size[bucket]:
            raise ValueError(
                f"size must count bucket_of, got {size[bucket]} for bucket {bucket} "
                f"of {members.size} channels"
            )
        expected[: members.size] = members
        if not np.array_equal(row, expected):
            raise ValueError(
                f"table must list the channels of bucket {bucket} in ascending order, then -1, "
                f"{expected.tolist()}, got {row.tolist()}"
            )


def _odd(table: np.ndarray) -> int:
    return int(table.min() if table.min() < -1 else table.max())


def _check_ranges(lo: np.ndarray, hi: np.ndarray) -> None:
    bad = np.flatnonzero(~((lo >= 0) & (lo <= hi)))
    if bad.size:
        bucket = int(bad[0])
        raise ValueError(
            f"lo must be from 0 to hi, got [{lo[bucket]}, {hi[bucket]}] for bucket {bucket}"
        )


def slots_of(table: object, channels: int, device: torch.device) -> torch.Tensor:
    """Return the (N, M) table of a record, or a bare table, after checking it for a consumer.

    A record must be whole and fit `channels` and `device`; a bare table need only name no
    channel twice. Raises TypeError or ValueError naming the entry.
    """
    if isinstance(table, RoutingRecord):
        table.validate(channels=channels, device=device)
        return table.table
    arguments = _checks.Arguments()
    arguments.device = device
    slots = arguments.tensor("table", table, "N M", torch.int32)
    _checks.disjoint("table", slots, channels)
    return slots
