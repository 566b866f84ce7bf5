"""A training run in one safetensors file: there whole or not at all, and checked when it is read.

A tensor's name is its key; those of the routing record begin with `record.`, those of a controller
with `controller.` and its name. The metadata hold the rest as JSON, and a digest of everything.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from trivet.impl._whole import written
from trivet.impl.routing import RoutingRecord

FORMAT = "trivet.perception.1"
MOMENTS = ("exp_avg", "exp_avg_sq")
TAU, SKIP = "tau", "w_skip"
_RECORD, _CONTROLLER = "record.", "controller."
_METADATA = "trivet"
_ENTRIES = ("bucket_of", "size", "offset", "table", "lo", "hi")
Tensors = Mapping[str, torch.Tensor]
Counter = int | float | str | bool


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; one line that names the file and what is wrong."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything that going on needs.

    tensors: parameters by name, and their moments as `NAME.exp_avg` and `NAME.exp_avg_sq`.
    record: None before the transition. controllers: the state of each, random state included.
    counters: single values, like the step.
    """

    tensors: Tensors
    record: RoutingRecord | None = None
    controllers: Mapping[str, Tensors] = field(default_factory=dict)
    counters: Mapping[str, Counter] = field(default_factory=dict)


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; killed at any moment, the file is the old one or the new one.

    Raises ValueError for a name that another part of the file would take, OSError.
    """
    held = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in _flat(checkpoint)}
    metadata = {
        "format": FORMAT,
        "record": str(checkpoint.record.version if checkpoint.record else 0),
        "controllers": json.dumps(list(checkpoint.controllers)),
        "counters": json.dumps(dict(checkpoint.counters)),
    }
    metadata["digest"] = _digest(held, metadata)
    # One entry: several come out in an order of the moment, and equal runs in other bytes.
    entry = {_METADATA: json.dumps(metadata, sort_keys=True)}
    written(path, lambda file: file.write(to_bytes(held, entry)))


def _flat(checkpoint: Checkpoint) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor under its key in the file."""
    for name, tensor in checkpoint.tensors.items():
        if name.startswith((_RECORD, _CONTROLLER)):
            raise ValueError(f"a tensor's name must not begin with {_RECORD!r}, got {name!r}")
        yield name, tensor
    if checkpoint.record is not None:
        for name, tensor in checkpoint.record.tensors().items():
            yield _RECORD + name, tensor
    for controller, state in checkpoint.controllers.items():
        if "." in controller:
            raise ValueError(f"a controller's name must hold no dot, got {controller!r}")
        for name, tensor in state.items():
            yield f"{_CONTROLLER}{controller}.{name}", tensor


def _digest(tensors: Tensors, metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256(repr(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def load(path: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Read a checkpoint and check all of it; raises CheckpointError naming the first fault."""
    checkpoint, whole = read(path)
    for fault in (*faults_of(checkpoint), *([] if whole else [ALTERED])):
        raise CheckpointError(f"{path}: {fault}")
    record = checkpoint.record
    if record is not None:
        moved = _onto(record.tensors(), device)
        record = RoutingRecord(**moved, version=record.version)
        record.validate()
    return Checkpoint(
        _onto(checkpoint.tensors, device),
        record,
        {name: _onto(state, device) for name, state in checkpoint.controllers.items()},
        checkpoint.counters,
    )


ALTERED = "its bytes are not those that were written; take an older checkpoint"


def _onto(tensors: Tensors, device: torch.device | str) -> dict[str, torch.Tensor]:
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def read(path: Path) -> tuple[Checkpoint, bool]:
    """What a file holds, on the CPU and unchecked, and whether its digest is that of its bytes.

    Raises CheckpointError where it is no checkpoint, or not all of one.
    """
    try:
        with safe_open(path, framework="pt") as file:
            entry = (file.metadata() or {}).get(_METADATA, "{}")
            names = list(file.keys())
            held = {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is no such file") from None
    except (OSError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"{path}: cannot be read, is it whole? {reason}") from None
    metadata = _entries(entry)
    if metadata.get("format") != FORMAT:
        found = metadata.get("format", "none")
        raise CheckpointError(f"{path}: must be a checkpoint of format {FORMAT}, got {found}")
    digest = metadata.pop("digest", "")
    try:
        return _parsed(held, metadata), digest == _digest(held, metadata)
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path}: has metadata that cannot be read: {error}") from None


def _entries(text: str) -> dict[str, str]:
    """The metadata of a checkpoint; empty where they are no such thing."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _parsed(held: dict[str, torch.Tensor], metadata: Mapping[str, str]) -> Checkpoint:
    version = int(metadata["record"])
    controllers: dict[str, dict[str, torch.Tensor]] = {
        name: {} for name in json.loads(metadata["controllers"])
    }
    tensors: dict[str, torch.Tensor] = {}
    entries: dict[str, torch.Tensor] = {}
    for name, tensor in held.items():
        if name.startswith(_RECORD):
            entries[name.removeprefix(_RECORD)] = tensor
        elif name.startswith(_CONTROLLER):
            controller, _, entry = name.removeprefix(_CONTROLLER).partition(".")
            controllers[controller][entry] = tensor
        else:
            tensors[name] = tensor
    if version and set(entries) != set(_ENTRIES):
        raise ValueError(f"the record must have {', '.join(_ENTRIES)}, got {', '.join(entries)}")
    counters: dict[str, Any] = json.loads(metadata["counters"])
    record = RoutingRecord(**entries, version=version) if version else None
    return Checkpoint(tensors, record, controllers, counters)


def faults_of(checkpoint: Checkpoint) -> list[str]:
    """Every invariant that a checkpoint breaks, one line each; none where it is sound."""
    tau = checkpoint.tensors.get(TAU)
    if tau is None or tau.dim() != 1:
        return [f"{TAU} must have shape (H,), got {_shape(tau)}"]
    found = [*_moment_faults(checkpoint.tensors)]
    bad = (~((tau > 0) & (tau < torch.inf))).nonzero().flatten()
    if len(bad):
        channel = int(bad[0])
        found.append(f"{TAU} must be finite and positive, got {tau[channel]} at channel {channel}")
    if checkpoint.record is None:
        return found
    try:
        checkpoint.record.validate(channels=len(tau))
    except (TypeError, ValueError) as error:
        return [*found, f"the routing record is broken: {error}"]
    return [*found, *_skip_faults(checkpoint.tensors, checkpoint.record)]


def _moment_faults(tensors: Tensors) -> Iterator[str]:
    for name, tensor in tensors.items():
        owner, _, kind = name.rpartition(".")
        if kind not in MOMENTS:
            continue
        parameter = tensors.get(owner)
        if parameter is None or parameter.shape != tensor.shape or parameter.dtype != tensor.dtype:
            yield f"{name} must be like {owner}, {_shape(parameter)}, got {_shape(tensor)}"
        elif kind == "exp_avg_sq" and bool((tensor < 0).any()):
            yield f"{name} must not be negative, got {float(tensor.min())}"


def _skip_faults(tensors: Tensors, record: RoutingRecord) -> Iterator[str]:
    wanted = (len(record.size), len(record.bucket_of))
    for name in (SKIP, *(f"{SKIP}.{kind}" for kind in MOMENTS)):
        buffer = tensors.get(name)
        if buffer is None or tuple(buffer.shape) != wanted or buffer.dtype != torch.float32:
            yield f"{name} must be float32 with shape {wanted}, got {_shape(buffer)}"
            continue
        places = off_bucket(buffer, record.bucket_of).nonzero().tolist()
        if places:
            bucket, channel = places[0]
            yield (
                f"{name} must be +0.0 off bucket, got {float(buffer[bucket, channel])} in row "
                f"{bucket} at channel {channel} of bucket {int(record.bucket_of[channel])}, "
                f"one of {len(places)}"
            )


def off_bucket(buffer: torch.Tensor, bucket_of: torch.Tensor) -> torch.Tensor:
    """Where (N, H) float32 has other bits than +0.0 outside its own bucket, as booleans."""
    other = bucket_of[None, :] != torch.arange(len(buffer), device=buffer.device)[:, None]
    return other & (buffer.view(torch.int32) != 0)


def _shape(tensor: torch.Tensor | None) -> str:
    return "none" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
