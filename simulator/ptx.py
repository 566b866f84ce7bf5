"""The precision of compiled PTX: which instructions it rounds with, and those no plan allows.

Runs without a GPU and without a number: a tf32 product, a half accumulator or an approximate
function is certain from the text, however small it is in the values.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trivet.oracles._precision import Precision
from trivet.oracles._profile import Profile
from trivet.simulator.ptx_depth import addition_depth

# PTX types by the names that contracts use.
TYPES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tf32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}
_NARROW = frozenset(TYPES) - {"f32", "f64"}
_ARITHMETIC = frozenset({"add", "sub", "mul", "fma"})
# What a backend's profile bounds by itself: div.full (and the reciprocal inside functions), the
# exponential of base 2, both roots.
_BOUNDED = frozenset({"ex2", "sqrt", "rsqrt", "rcp", "div.full"})
_ROUNDINGS = frozenset({"rn", "rna", "rz", "rni", "rm", "rp", "rs"})
# tcgen05 names a family of types; the descriptor in a register says which of them.
_FAMILIES = {
    "kind::tf32": ("tf32",),
    "kind::f16": ("f16", "bf16"),
    "kind::f8f6f4": ("e4m3", "e5m2"),
    "kind::mxf8f6f4": ("e4m3", "e5m2"),
}
_OPCODE = re.compile(r"(?:@!?%?\w+\s+)?([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_:]+)+)(?=\s|$)")


@dataclass
class Counts:
    """How often each kind of instruction occurs, by its PTX types.

    matrix: (type of the inputs, type of the accumulator). approximate: (operation, type), with
    div.full apart from div. narrowing: (target type, rounding), counted in elements. arithmetic:
    (operation, type), counted in elements. flushing: instructions with .ftz. depth: the additions
    that a term of a sum passes through, at least.
    """

    matrix: Counter[tuple[str, str]] = field(default_factory=Counter)
    approximate: Counter[tuple[str, str]] = field(default_factory=Counter)
    narrowing: Counter[tuple[str, str]] = field(default_factory=Counter)
    arithmetic: Counter[tuple[str, str]] = field(default_factory=Counter)
    flushing: int = 0
    depth: int = 0

    def narrowed(self, target: str) -> int:
        """Elements converted to a type, by any rounding."""
        return sum(count for (to, _), count in self.narrowing.items() if to == target)


def to_json(counts: Counts) -> dict[str, Any]:
    """Return counts as plain data, for a cache."""
    return {
        name: value if isinstance(value, int) else [[*key, n] for key, n in sorted(value.items())]
        for name, value in vars(counts).items()
    }


def from_json(plain: Mapping[str, Any]) -> Counts:
    """Return the counts that ``to_json`` wrote down.

    >>> from_json(to_json(parse("cvt.rn.bf16x2.f32 %r1, %f1, %f2;"))).narrowed("bf16")
    2
    """
    counts = Counts()
    for name, value in plain.items():
        pairs = value if isinstance(value, list) else None
        known = value if pairs is None else Counter({(a, b): n for a, b, n in pairs})
        setattr(counts, name, known)
    return counts


@dataclass(frozen=True, slots=True)
class Plan:
    """What a kernel may round: its precision, the types it stores, and the backend's profile."""

    precision: Precision
    dtypes: frozenset[str]
    profile: Profile

    def stores(self, kind: str) -> bool:
        """Whether values of a PTX type are among the kernel's own."""
        return TYPES[kind] in self.dtypes or TYPES[kind] in self.precision.storage.values()


@dataclass(frozen=True, slots=True)
class Finding:
    """Instructions that round more than the plan allows, and why they do."""

    instruction: str
    count: int
    reason: str

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"{self.instruction}, {times}: {self.reason}"


def parse(text: str) -> Counts:
    """Count the instructions of PTX `text` that round."""
    counts = Counts(depth=addition_depth(text))
    for opcode in _opcodes(text):
        name, *parts = opcode.split(".")
        counts.flushing += "ftz" in parts
        if name in ("mma", "wgmma", "tcgen05"):
            _count_matrix(counts, parts)
        elif name == "cvt":
            _count_conversion(counts, parts)
        elif "approx" in parts or opcode.startswith("div.full"):
            operation = "div.full" if "full" in parts else name
            counts.approximate[operation, _element(parts)[0]] += 1
        elif name in _ARITHMETIC and _element(parts)[0] in TYPES:
            kind, width = _element(parts)
            counts.arithmetic[name, kind] += width
    return counts


def _opcodes(text: str) -> Iterator[str]:
    """Yield every opcode with its modifiers: `fma.rn.f32`."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    for line in text.splitlines():
        for statement in line.partition("//")[0].split(";"):
            found = _OPCODE.match(statement.strip(" \t{}"))
            if found:
                yield found.group(1)


def _element(parts: list[str]) -> tuple[str, int]:
    """The type of an instruction and how many of it are packed in one register."""
    kind = parts[-1] if parts else ""
    return (kind.removesuffix("x2"), 2) if kind.endswith("x2") else (kind, 1)


def _count_matrix(counts: Counts, parts: list[str]) -> None:
    if "mma" not in parts and "mma_async" not in parts and "sync" not in parts[:1]:
        return
    families = [part for part in parts if part in _FAMILIES]
    types = [part for part in parts if part in TYPES]
    if families:
        counts.matrix[families[0], "f32"] += 1
    elif len(types) >= 3:
        counts.matrix[types[1], types[0]] += 1


def _count_conversion(counts: Counts, parts: list[str]) -> None:
    """cvt.rounding.target.source; packed forms convert two."""
    types = [part for part in parts if part.removesuffix("x2") in TYPES]
    if len(types) < 2:
        return
    target, source = (kind.removesuffix("x2") for kind in types[:2])
    if target in _NARROW and source in ("f32", "f64"):
        rounding = next((part for part in parts if part in _ROUNDINGS), "rn")
        counts.narrowing[target, rounding] += 2 if types[0].endswith("x2") else 1


def audit(counts: Counts, plan: Plan) -> list[Finding]:
    """Every kind of instruction that rounds more than `plan` allows."""
    return [
        *_matrices(counts, plan),
        *_functions(counts, plan),
        *_conversions(counts, plan),
        *_flushes(counts, plan),
        *_depths(counts, plan),
    ]


def _matrices(counts: Counts, plan: Plan) -> Iterator[Finding]:
    for (inputs, accumulator), count in counts.matrix.items():
        kinds = _FAMILIES.get(inputs, (inputs,))
        name = f"mma with {inputs} inputs"
        if kinds == ("tf32",) and not _tf32_allowed(counts, plan):
            reason = "float32 operands keep 11 bits; use input_precision='ieee' or allow tf32"
            yield Finding(name, count, reason)
        elif _NARROW.issuperset(kinds) and not _inputs_allowed(counts, plan, kinds):
            names = " or ".join(TYPES[kind] for kind in kinds)
            yield Finding(name, count, f"the kernel stores nothing in {names}")
        narrow = accumulator in _NARROW
        if narrow and TYPES[accumulator] != plan.precision.accumulate:
            reason = f"sums are promised in {plan.precision.accumulate}"
            yield Finding(f"mma with {accumulator} accumulator", count, reason)


def _tf32_allowed(counts: Counts, plan: Plan) -> bool:
    """tf32x3 rounds each operand and multiplies the rest, which it subtracts, apart."""
    split = counts.narrowed("tf32")
    return "tf32" in plan.precision.approx or 0 < split <= counts.arithmetic["sub", "f32"]


def _inputs_allowed(counts: Counts, plan: Plan, kinds: tuple[str, ...]) -> bool:
    """Own values, or float32 split in parts: three of bfloat16 hold it, two are as good as tf32."""
    if kinds == ("tf32",) or any(plan.stores(kind) for kind in kinds):
        return True
    parts = max(_parts(counts, kind) for kind in kinds)
    return parts >= 3 or (parts >= 2 and "tf32" in plan.precision.approx)


def _parts(counts: Counts, kind: str) -> int:
    """In how many parts of a type operands are split: each but the first is a difference."""
    converted = counts.narrowed(kind)
    whole = converted - counts.arithmetic["sub", "f32"]
    return round(converted / whole) if whole > 0 else 1


def _functions(counts: Counts, plan: Plan) -> Iterator[Finding]:
    for (operation, kind), count in counts.approximate.items():
        if operation in _BOUNDED and kind in ("f32", "f64"):
            continue
        name = f"{operation}.approx.{kind}" if operation != "div.full" else f"{operation}.{kind}"
        yield Finding(name, count, "an approximation that no profile bounds")


def _conversions(counts: Counts, plan: Plan) -> Iterator[Finding]:
    multiplied = {kind for inputs, _ in counts.matrix for kind in _FAMILIES.get(inputs, (inputs,))}
    for (target, rounding), count in counts.narrowing.items():
        name = f"cvt.{rounding}.{target}"
        if target in multiplied and not plan.stores(target):
            continue  # judged with the product it feeds
        if not plan.stores(target):
            yield Finding(name, count, f"the kernel stores nothing in {TYPES[target]}")
        elif rounding == "rz":
            yield Finding(name, count, "truncates where storage rounds to nearest")


def _flushes(counts: Counts, plan: Plan) -> Iterator[Finding]:
    if counts.flushing and not plan.profile.flush:
        reason = f"the profile {plan.profile.name} keeps subnormal results"
        yield Finding(".ftz", counts.flushing, reason)


def _depths(counts: Counts, plan: Plan) -> Iterator[Finding]:
    promised = plan.precision.depth
    if promised is not None and counts.depth > promised:
        reason = f"depth={promised} promises fewer; declare {counts.depth} or more, or no depth"
        yield Finding(f"a chain of {counts.depth} additions", 1, reason)
