"""What `python -m trivet.impl inspect CHECKPOINT` prints, and the status with which it leaves."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from trivet.impl._perception.checkpoint import (
    ALTERED,
    MOMENTS,
    SKIP,
    TAU,
    Checkpoint,
    CheckpointError,
    faults_of,
    off_bucket,
    read,
)
from trivet.impl.routing import RoutingRecord

SOUND, BROKEN, UNREADABLE = 0, 1, 2
_BUFFERS = (SKIP, *(f"{SKIP}.{kind}" for kind in MOMENTS))


@dataclass(frozen=True)
class Report:
    """Lines to print, and the exit status: 0 sound, 1 an invariant is broken, 2 not readable."""

    lines: list[str]
    status: int


def inspect(path: Path) -> Report:
    """Report on a checkpoint: per bucket tau range, off-bucket entries, dead channels; faults.

    Off-bucket entries are counted in params, exp_avg and exp_avg_sq: those that are not +0.0. A
    channel is dead whose own skip weight and moments are all 0: it never reached its head.
    """
    try:
        checkpoint, whole = read(path)
    except CheckpointError as error:
        return Report([f"inspect: {error}"], UNREADABLE)
    counters = ", ".join(f"{name} {value}" for name, value in checkpoint.counters.items())
    controllers = ", ".join(checkpoint.controllers) or "none"
    lines = [f"{path}: {counters or 'no counters'}; controllers: {controllers}"]
    lines += _described(checkpoint)
    faults = [*faults_of(checkpoint), *([] if whole else [ALTERED])]
    lines += [f"inspect: {path}: {fault}" for fault in faults]
    return Report(lines, BROKEN if faults else SOUND)


def _described(checkpoint: Checkpoint) -> Iterator[str]:
    tau, record = checkpoint.tensors.get(TAU), checkpoint.record
    if tau is None or tau.dim() != 1 or not len(tau):
        return
    if record is None:
        yield f"no routing record: phase 1, {len(tau)} channels, tau {_range(tau)}"
        return
    buckets, channels = len(record.size), len(record.bucket_of)
    yield f"routing record: version {record.version}, {channels} channels in {buckets} buckets"
    fits = len({record.size.shape, record.lo.shape, record.hi.shape}) == 1
    if fits and record.bucket_of.shape == tau.shape:
        for bucket in range(buckets):
            yield _bucket(bucket, tau, record, checkpoint)


def _bucket(bucket: int, tau: torch.Tensor, record: RoutingRecord, checkpoint: Checkpoint) -> str:
    own = record.bucket_of == bucket
    shape = (len(record.size), len(tau))
    buffers = {
        name: checkpoint.tensors[name]
        for name in _BUFFERS
        if name in checkpoint.tensors and tuple(checkpoint.tensors[name].shape) == shape
    }
    off = [
        f"{int(off_bucket(buffer, record.bucket_of)[bucket].sum())} in {name}"
        for name, buffer in buffers.items()
    ]
    still = own.clone()
    for buffer in buffers.values():
        still &= buffer[bucket] == 0
    dead = ", ".join(map(str, still.nonzero().flatten().tolist())) or "none"
    held = f"tau {_range(tau[own])}" if bool(own.any()) else "empty"
    limits = f"{float(record.lo[bucket]):.4g} to {float(record.hi[bucket]):.4g}"
    return (
        f"bucket {bucket}: {int(own.sum())} channels, {held} (allowed {limits}); "
        f"off bucket {', '.join(off)}; dead channels: {dead}"
    )


def _range(tau: torch.Tensor) -> str:
    return f"{float(tau.min()):.4g} to {float(tau.max()):.4g} s"
