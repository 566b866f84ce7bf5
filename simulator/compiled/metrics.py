"""The metrics of one artifact: what the compiler made of a kernel, by the names that locks use."""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trivet.simulator.compiled._child import Artifact
from trivet.simulator.compiled.listing import (
    Instruction,
    Listing,
    Place,
    frequent_place,
    gcn_listing,
    sass_listing,
)
from trivet.simulator.compiled.targets import device_named, is_nvidia

Value = int | float | str

# Opcode patterns: name of the class, NVIDIA's, AMD's. An empty pattern is a class that the target
# does not have.
_CLASSES: dict[str, tuple[str, str]] = {
    "loads": (r"LDG(?!STS|DEPBAR)", r"(?:global|buffer|flat)_load(?!.*_lds)"),
    "stores": (r"STG", r"(?:global|buffer|flat)_store"),
    "async_copies": (r"LDGSTS|UTMALDG|UBLKCP", r"(?:global|buffer)_load.*_lds"),
    "shared_loads": (r"LDS(?!M)", r"ds_(?:read|load)"),
    "shared_stores": (r"STS(?!M)", r"ds_(?:write|store)"),
    "shared_matrices": (r"LDSM|STSM", ""),
    "local": (r"LDL|STL", r"scratch_"),
    "atomics": (r"ATOM|REDG?(?:\.|$)", r"(?:global|buffer|flat|ds)_.*atomic|ds_(?:add|max|min)_"),
    "matrix": (
        r"[HIQDBO]MMA|[HQI]GMMA|UTC\w*MMA",
        r"v_(?:mfma|wmma|smfmac)",
    ),
    "float32": (r"FFMA|FMUL|FADD", r"v_(?:pk_|dual_)?(?:fma|fmac|mul|add)\w*_f32"),
    "double": (r"DADD|DMUL|DFMA|DSETP|DMNMX|MUFU\.\w*64H|F2F\.F64", r"v_\w*_f64"),
    "functions": (r"MUFU", r"v_(?:exp|rcp|log|sqrt|rsq|sin|cos)_"),
    "barriers": (r"BAR(?:\.|$)|SYNCS|DEPBAR\.LE|WARPSYNC", r"s_barrier"),
    "shuffles": (r"SHFL", r"ds_bpermute|ds_swizzle|v_permlane|v_mov_b32_dpp"),
    "wide_integers": (
        r"IMAD\.WIDE|IMAD\.HI|LEA\.HI\.X|IADD3\.X|IADD\.64",
        r"v_mad_[iu]64|v_mul_hi",
    ),
}
_WIDTHS = {"load_bits": "loads", "store_bits": "stores", "async_bits": "async_copies",
           "shared_load_bits": "shared_loads", "shared_store_bits": "shared_stores"}  # fmt: skip
_GCN_WIDTHS = (
    ("x4|b128", 128), ("x3|b96", 96), ("x2|b64", 64), ("dword|b32", 32), ("short|16", 16),
    ("byte|8", 8),
)  # fmt: skip


@dataclass
class Found:
    """Metrics by name, the source line of each where one is known, and the kernel's listing."""

    metrics: dict[str, Value] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    listing: Listing = field(default_factory=lambda: Listing((), 0))


def metrics_of(artifact: Artifact, target: str) -> Found:
    """Read an artifact: resources, instruction counts, access widths, occupancy."""
    nvidia = is_nvidia(target)
    listing = (sass_listing if nvidia else gcn_listing)(artifact.assembly)
    found = Found(listing=listing)
    resources = _sass_resources(artifact) if nvidia else _gcn_resources(artifact)
    found.metrics.update(resources, num_warps=artifact.warps, shared_bytes=artifact.shared)
    for name, patterns in _CLASSES.items():
        pattern = patterns[0 if nvidia else 1]
        _add(found, name, listing.matching(pattern) if pattern else [])
    if nvidia:
        found.metrics["spills"] = found.metrics["local"]
    _add_loop(found)
    _add_widths(found, nvidia)
    _add_matrix_kind(found, nvidia)
    found.metrics["layout_changes"] = len(re.findall(r"ttg\.convert_layout", artifact.ttgir))
    found.metrics.update(_occupancy(found.metrics, target))
    found.metrics["opcodes"] = _digest(item.opcode for item in listing.instructions)
    if "local" in found.places:
        found.places["spills"] = found.places["local_bytes"] = found.places["local"]
    return found


def _add(found: Found, name: str, instructions: Sequence[Instruction]) -> None:
    found.metrics[name] = len(instructions)
    place = frequent_place(instructions)
    if place is not None:
        found.places[name] = place


def _add_loop(found: Found) -> None:
    innermost = found.listing.innermost
    found.metrics["instructions"] = len(found.listing.instructions)
    found.metrics["loops"] = found.listing.loops
    _add(found, "loop_instructions", innermost)
    barriers = {id(item) for item in found.listing.matching(r"BAR(?:\.|$)|SYNCS|s_barrier")}
    _add(found, "loop_barriers", [item for item in innermost if id(item) in barriers])


def _add_widths(found: Found, nvidia: bool) -> None:
    """Average bits of an access, and the line of the narrowest ones."""
    for metric, name in _WIDTHS.items():
        pattern = _CLASSES[name][0 if nvidia else 1]
        accesses = [
            (_sass_bits(item.opcode) if nvidia else _gcn_bits(item.opcode), item)
            for item in found.listing.matching(pattern)
        ]
        if not accesses:
            found.metrics[metric] = 0
            continue
        bits = [width for width, _ in accesses]
        found.metrics[metric] = round(sum(bits) / len(bits), 1)
        place = frequent_place(item for width, item in accesses if width == min(bits))
        if place is not None:
            found.places[metric] = place


def _sass_bits(opcode: str) -> int:
    if opcode.startswith(("UTMA", "UBLKCP")):
        return 128  # whole tiles: as wide as can be
    if wide := re.search(r"\.(256|128|64)(?:\.|$)", opcode):
        return int(wide[1])
    narrow = re.search(r"\.[US](16|8)(?:\.|$)", opcode)
    return int(narrow[1]) if narrow else 32


def _gcn_bits(opcode: str) -> int:
    return next((bits for text, bits in _GCN_WIDTHS if re.search(text, opcode)), 32)


def _add_matrix_kind(found: Found, nvidia: bool) -> None:
    """The kinds of matrix instruction: unit, tile and input types."""
    opcodes = {item.opcode for item in found.listing.matching(_CLASSES["matrix"][not nvidia])}
    found.metrics["matrix_kind"] = ",".join(sorted(map(_sass_kind if nvidia else str, opcodes)))
    kinds = str(found.metrics["matrix_kind"]).split(",") if opcodes else []
    found.metrics["matrix_kind"] = ",".join(sorted(set(kinds)))
    found.metrics["matrix_rank"] = max(map(matrix_rank, kinds), default=0)
    for name in ("matrix_kind", "matrix_rank"):
        if "matrix" in found.places:
            found.places[name] = found.places["matrix"]


def _sass_kind(opcode: str) -> str:
    """HGMMA.64x128x16.F32.BF16 of an opcode with further modifiers."""
    unit, *parts = opcode.split(".")
    types = [p for p in parts if re.fullmatch(r"[\dx]{3,}|T?F\d\w*|BF16|E\dM\d|[SU][48]", p)]
    return ".".join([unit, *types])


def matrix_rank(kind: str) -> int:
    """How fast a kind of matrix instruction is, for comparison on one target only.

    Asynchronous units of whole warp groups before those of a warp before float64 ones; narrow
    inputs before those of 32 bits.
    """
    if not kind:
        return 0
    unit = kind.partition(".")[0]
    if unit.startswith(("DMMA", "v_mfma_f64")):
        return 10
    base = 30 if re.match(r"[HQI]GMMA|UTC\w*MMA", unit) else 20
    wide = re.search(r"TF32|xf32|x\d+_?f32$|1688\.F32", kind) is not None
    return base + (0 if wide else 5)


def _sass_resources(artifact: Artifact) -> dict[str, Value]:
    found = re.search(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", artifact.usage)
    if not found:
        raise ValueError(f"cuobjdump -res-usage said nothing of registers: {artifact.usage[:200]}")
    registers, stack, local = map(int, found.groups())
    return {"registers": registers, "local_bytes": max(stack, local)}


def _gcn_resources(artifact: Artifact) -> dict[str, Value]:
    text = artifact.assembly
    vector, spilled = _field(text, "vgpr_count"), _field(text, "vgpr_spill_count")
    return {
        "registers": vector,
        "scalar_registers": _field(text, "sgpr_count"),
        "local_bytes": _field(text, "private_segment_fixed_size"),
        "spills": spilled + _field(text, "sgpr_spill_count"),
    }


def _field(text: str, name: str) -> int:
    found = re.search(rf"^\s*(?:- )?\.{name}:\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def _occupancy(metrics: Mapping[str, Value], target: str) -> dict[str, Value]:
    """Share of the resident warps that registers and shared memory leave, and bytes in flight."""
    device = device_named(target)
    warps, registers = int(metrics["num_warps"]), max(1, int(metrics["registers"]))
    unit = device.register_unit
    if is_nvidia(target):
        each = math.ceil(registers * device.target.warp_size / unit) * unit
        room = device.registers // each
        room -= room % device.schedulers
    else:
        most = device.warps // device.schedulers
        room = device.schedulers * min(
            most, device.registers // (math.ceil(registers / unit) * unit)
        )
    shared = math.ceil((int(metrics["shared_bytes"]) + device.shared_reserved) / device.shared_unit)
    by_shared = device.shared // max(1, shared * device.shared_unit)
    blocks = max(0, min(device.warps // warps, device.blocks, room // warps, by_shared))
    loads = int(metrics["loads"]) * float(metrics["load_bits"])
    copies = int(metrics["async_copies"]) * float(metrics["async_bits"])
    lanes = blocks * warps * device.target.warp_size
    return {
        "fits": int(int(metrics["shared_bytes"]) <= device.most_shared),
        "occupancy": round(blocks * warps / device.warps, 3),
        "bytes_in_flight": int(lanes * (loads + copies) / 8),
    }


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]
