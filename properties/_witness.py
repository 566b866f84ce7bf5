"""Witnesses: the smallest inputs that turn a gate red, kept as JSON and judged again by replay."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from trivet.properties._arrays import exact, numpy_of
from trivet.simulator.cache import cache_folder, write_whole

VERSION = 1
_KINDS = {
    **dict.fromkeys(("contract", "source", "law", "dtype", "text"), str),
    **dict.fromkeys(("seed", "configuration"), int),
    **dict.fromkeys(("dims", "args"), dict),
}
_POISON = 0xFF
_PLAIN = (bool, int, float, str, type(None))


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
    stem = re.sub(r"[^\w.\-]", "_", stem)
    path = folder / f"{stem}.json"
    if _source_of(path) not in (None, witness.source):
        # Contracts of one name in two files must not overwrite each other's witnesses.
        path = folder / f"{stem}-{sha256(witness.source.encode()).hexdigest()[:8]}.json"
    fields = {name: getattr(witness, name) for name in Witness.__slots__}
    write_whole(path, json.dumps(fields, indent=1))
    return path


def _source_of(path: Path) -> str | None:
    try:
        return load(path).source
    except ValueError:
        return None


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
    wrong = next(
        (name for name, kind in _KINDS.items() if not isinstance(fields[name], kind)), None
    )
    if wrong is not None:
        raise ValueError(f"witness {path}: {wrong} is no {_KINDS[wrong].__name__}")
    return Witness(**{name: fields[name] for name in Witness.__slots__})


def packed(arguments: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return arguments in the witness's form; tensors that share storage name their group."""
    groups: dict[int, int] = {}
    return {name: _pack(value, groups) for name, value in arguments.items()}


def _pack(value: object, groups: dict[int, int]) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor):
        # A Choice may hold anything: what JSON cannot carry is found again by how it prints.
        return {"value": value} if type(value) in _PLAIN else {"repr": repr(value)}
    key = value.untyped_storage().data_ptr() or id(value)
    return {
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "offset": value.storage_offset(),
        "dtype": str(value.dtype).removeprefix("torch."),
        "storage": groups.setdefault(key, len(groups)),
        "storage bytes": value.untyped_storage().nbytes(),
        "hex values": numpy_of(value).tobytes().hex(),
    }


def unpacked(args: Mapping[str, dict[str, Any]]) -> dict[str, object]:
    """Rebuild the arguments of a witness, with their strides, offsets and sharing.

    A value that JSON could not carry comes as its text. Raises ValueError naming the argument.
    """
    sizes: dict[int, int] = {}
    storages: dict[int, torch.Tensor] = {}
    found: dict[str, object] = {}
    for step in (partial(_measure, sizes), partial(_unpack, sizes, storages)):
        for name, arg in args.items():
            try:
                found[name] = step(arg)
            except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
                text = f"{type(error).__name__}: {error}"
                raise ValueError(f"argument {name}: cannot be rebuilt: {text}") from error
    return found


def _measure(sizes: dict[int, int], arg: Mapping[str, Any]) -> None:
    if "shape" in arg:
        itemsize = torch.empty(0, dtype=getattr(torch, arg["dtype"])).element_size()
        reach = max(_reach(arg) * itemsize, arg["storage bytes"])
        sizes[arg["storage"]] = max(sizes.get(arg["storage"], 0), reach)


def _reach(arg: Mapping[str, Any]) -> int:
    if 0 in arg["shape"]:
        return int(arg["offset"])
    steps = zip(arg["shape"], arg["strides"], strict=True)
    return int(arg["offset"] + sum((size - 1) * stride for size, stride in steps) + 1)


def _unpack(
    sizes: Mapping[int, int], storages: dict[int, torch.Tensor], arg: Mapping[str, Any]
) -> object:
    if "shape" not in arg:
        return arg["repr"] if "repr" in arg else arg["value"]
    dtype = getattr(torch, arg["dtype"])
    group = arg["storage"]
    poisoned = torch.full((sizes[group],), _POISON, dtype=torch.uint8)
    storage = storages.setdefault(group, poisoned).untyped_storage()
    view = torch.empty(0, dtype=dtype)
    view.set_(storage, arg["offset"], arg["shape"], arg["strides"])
    raw = bytearray(bytes.fromhex(arg["hex values"]))
    if raw or view.numel():
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
