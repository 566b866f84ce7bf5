"""What a kernel computes, whatever the order of independent operations.

Two kernels of one dataflow give the same bits: operations without effect are known by what they
compute, not by where they stand; the operands of commutative ones have no order; and a square does
not know the sign of what is squared (rounding knows no sign). Loads, stores, atomics and loops
keep their order.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trivet.simulator.ir import Block, Function, Module, Operation

_PURE_DIALECTS = ("arith.", "math.")
_PURE = {
    "tt.splat",
    "tt.addptr",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.make_range",
    "tt.reshape",
    "tt.trans",
    "tt.bitcast",
    "tt.fp_to_fp",
    "tt.get_program_id",
    "tt.get_num_programs",
    "tt.reduce",
    "tt.scan",
    "tt.dot",
    "tt.unsplat",
}
_COMMUTATIVE = {
    f"arith.{name}"
    for name in ("addf", "mulf", "addi", "muli", "andi", "ori", "xori", "maximumf", "minimumf")
}
_SIGNLESS = "signless"


def dataflow(module: Module, same: Mapping[str, str] | None = None) -> str:
    """Return a digest of what the module's functions compute.

    ``same`` maps arguments of the kernel to others that always hold the same number.
    """
    functions = [f for f in module.functions.values() if f is not module.entry]
    parts = sorted(_of_function(function, {}) for function in functions)
    return _digest("module", _of_function(module.entry, same or {}), *parts)


def _of_function(function: Function, same: Mapping[str, str]) -> str:
    scope = _Scope(0)
    types = [str(kind) for kind in function.argument_types]
    first = [_representative(name, function, same) for name in function.arguments]
    return _digest(
        "function", *types, *_of_region(function.blocks, scope, function.arguments, first)
    )


def _representative(name: str, function: Function, same: Mapping[str, str]) -> str:
    """Return the argument that stands for ``name``: another of its type, or itself."""
    other = f"%{same.get(name[1:], name[1:])}"
    types = dict(zip(function.arguments, map(str, function.argument_types), strict=True))
    return other if types.get(other) == types[name] else name


@dataclass
class _Scope:
    """Names seen so far: each value's digest, and the digest of it without its sign."""

    depth: int
    values: dict[str, str] = field(default_factory=dict)
    signless: dict[str, str] = field(default_factory=dict)

    def inner(self) -> "_Scope":
        return _Scope(self.depth + 1, dict(self.values), dict(self.signless))

    def name(self, value: str, digest: str) -> None:
        self.values[value] = digest
        self.signless[value] = digest


def _of_region(
    blocks: list[Block],
    scope: _Scope,
    arguments: Iterable[str] = (),
    known_as: Iterable[str] = (),
) -> list[str]:
    """Return the digests of what the blocks do, in order; names of theirs end with them.

    ``arguments`` are those of a function; ``known_as`` names the ones that stand for them.
    """
    labels = {block.label: str(number) for number, block in enumerate(blocks)}
    for number, block in enumerate(blocks):
        for index, name in enumerate(block.arguments):
            scope.name(name, _digest("argument", str(scope.depth), str(number), str(index)))
    places = {name: index for index, name in enumerate(arguments)}
    for name, other in zip(places, known_as, strict=True):
        scope.name(name, _digest("parameter", str(places[other])))
    done = []
    for block in blocks:
        done.append(_digest("block", *map(str, block.argument_types)))
        for operation in block.operations:
            digest = _of_operation(operation, scope, labels)
            if not _is_pure(operation):
                done.append(digest)
                digest = _digest("effect", str(scope.depth), str(len(done)))
            _name_results(operation, digest, scope)
    return done


def _name_results(operation: Operation, digest: str, scope: _Scope) -> None:
    for index, result in enumerate(operation.results):
        scope.name(result, _digest(digest, str(index)))
        scope.signless[result] = _without_sign(operation, scope) or scope.values[result]


def _is_pure(operation: Operation) -> bool:
    return operation.name in _PURE or operation.name.startswith(_PURE_DIALECTS)


def _of_operation(operation: Operation, scope: _Scope, labels: dict[str, str]) -> str:
    operands = [scope.values.get(name, f"unknown {name}") for name in operation.operands]
    if operation.name == "arith.mulf" and len(set(operation.operands)) == 1:
        operands = [_SIGNLESS, scope.signless.get(operation.operands[0], operands[0])]
    elif operation.name in _COMMUTATIVE:
        operands.sort()
    regions = [part for blocks in operation.regions for part in _of_region(blocks, scope.inner())]
    successors = [
        _digest(labels.get(label, label), *(scope.values.get(name, name) for name in names))
        for label, names in operation.successors
    ]
    return _digest(*_form(operation), *operands, "regions", *regions, "successors", *successors)


def _form(operation: Operation) -> list[str]:
    attributes = [f"{name}={value!r}" for name, value in sorted(operation.attributes.items())]
    types = [str(kind) for kind in (*operation.operand_types, *operation.result_types)]
    return [operation.name, *operation.words, *attributes, *types]


def _without_sign(operation: Operation, scope: _Scope) -> str | None:
    """Return the digest of a result's size alone, where the operation shows more than the value."""
    sizes = [scope.signless.get(name, name) for name in operation.operands]
    values = [scope.values.get(name, name) for name in operation.operands]
    if operation.name == "arith.subf":
        return _digest(_SIGNLESS, *_form(operation), *sorted(values))
    if operation.name == "arith.negf":
        return sizes[0]
    if operation.name == "arith.select":
        return _digest(_SIGNLESS, *_form(operation), values[0], *sizes[1:])
    if operation.name in ("arith.extf", "tt.splat", "tt.broadcast", "tt.expand_dims"):
        return _digest(_SIGNLESS, *_form(operation), *sizes)
    return None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
