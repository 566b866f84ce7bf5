"""Witnesses: the smallest inputs that turn a gate red, kept as JSON and judged again by replay."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trivet.properties._arrays import exact, numpy_of
from trivet.simulator.cache import cache_folder, write_whole

VERSION = 1


@dataclass(frozen=True, slots=True)
class Witness:
    """A saved failure: ``args`` hold every argument's shape, strides, offset, dtype and values.

    ``source`` names the contract as ``find`` resolves it (``path.py:variable`` or a shipped name).
    """

    contract: str
    source: str
    law: str
    dtype: str
    seed: int
    configuration: int
    dims: dict[str, int]
    args: dict[str, dict[str, Any]]
    text: str
    version: int = VERSION


def save(witness: Witness, number: int = 0) -> Path:
    """Write ``witness`` by atomic rename and return its path."""
    folder = cache_folder("witnesses")
    suffix = f"-{number}" if number else ""
    stem = f"{witness.contract}-{witness.law}-{witness.dtype}{suffix}"
    path = folder / (re.sub(r"[^\w.\-]", "_", stem) + ".json")
    fields = {name: getattr(witness, name) for name in Witness.__slots__}
    write_whole(path, json.dumps(fields, indent=1))
    return path


def load(path: str | Path) -> Witness:
    """Read a witness; raises ValueError naming the file when it is none or of another version."""
    try:
        fields = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"witness {path}: cannot be read: {error}") from error
    if not isinstance(fields, dict) or fields.get("version") != VERSION:
        found = fields.get("version") if isinstance(fields, dict) else "no version"
        raise ValueError(f"witness {path}: expected version {VERSION}, found {found}")
    missing = [name for name in Witness.__slots__ if name not in fields]
    if missing:
        raise ValueError(f"witness {path}: lacks {', '.join(missing)}")
    return Witness(**{name: fields[name] for name in Witness.__slots__})


def packed(arguments: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return arguments in the witness's form; tensors that share storage name their group."""
    groups: dict[int, int] = {}
    return {name: _pack(value, groups) for name, value in arguments.items()}


def _pack(value: object, groups: dict[int, int]) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor):
        return {"value": value}
    key = value.untyped_storage().data_ptr() or id(value)
    return {
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "offset": value.storage_offset(),
        "dtype": str(value.dtype).removeprefix("torch."),
        "storage": groups.setdefault(key, len(groups)),
        "hex values": numpy_of(value).tobytes().hex(),
    }


def unpacked(args: Mapping[str, dict[str, Any]]) -> dict[str, object]:
    """Rebuild the arguments of a witness, with their strides, offsets and sharing."""
    sizes: dict[int, int] = {}
    for arg in (a for a in args.values() if "shape" in a):
        itemsize = torch.empty(0, dtype=getattr(torch, arg["dtype"])).element_size()
        sizes[arg["storage"]] = max(sizes.get(arg["storage"], 0), _reach(arg) * itemsize)
    storages = {key: torch.full((size,), 0xFF, dtype=torch.uint8) for key, size in sizes.items()}
    return {name: _unpack(arg, storages) for name, arg in args.items()}


def _reach(arg: Mapping[str, Any]) -> int:
    if 0 in arg["shape"]:
        return int(arg["offset"])
    steps = zip(arg["shape"], arg["strides"], strict=True)
    return int(arg["offset"] + sum((size - 1) * stride for size, stride in steps) + 1)


def _unpack(arg: Mapping[str, Any], storages: Mapping[int, torch.Tensor]) -> object:
    if "shape" not in arg:
        return arg["value"]
    dtype = getattr(torch, arg["dtype"])
    storage = storages[arg["storage"]].untyped_storage()
    view = torch.empty(0, dtype=dtype)
    view.set_(storage, arg["offset"], arg["shape"], arg["strides"])
    raw = bytearray(bytes.fromhex(arg["hex values"]))
    if raw:
        values = torch.frombuffer(raw, dtype=dtype).reshape(arg["shape"])
        _write(view, values)
    return view


def _write(view: torch.Tensor, values: torch.Tensor) -> None:
    """Copy into a view that may repeat elements (stride 0): drop the repeated dims first."""
    for axis, stride in enumerate(view.stride()):
        if stride == 0 and view.shape[axis] > 1:
            view, values = view.narrow(axis, 0, 1), values.narrow(axis, 0, 1)
    view.copy_(values)


def arrays_of(arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments as the oracle gets them: exact float64, integers and booleans plain."""
    return {
        name: exact(numpy_of(value)) if isinstance(value, torch.Tensor) else value
        for name, value in arguments.items()
    }
