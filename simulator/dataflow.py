"""What a kernel computes, whatever the order of independent operations.

Two kernels of one dataflow give the same bits: operations without effect are known by what they
compute, not by where they stand; the operands of commutative ones have no order; and a square does
not know the sign of what is squared (rounding knows no sign). Loads, stores, atomics and loops
keep their order.
"""

import hashlib
from collections.abc import Iterable
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


def dataflow(module: Module) -> str:
    """Return a digest of what the module's functions compute."""
    parts = [_of_function(function) for function in module.functions.values()]
    return _digest("module", *sorted(parts))


def _of_function(function: Function) -> str:
    scope = _Scope(0)
    types = [str(kind) for kind in function.argument_types]
    return _digest("function", *types, *_of_region(function.blocks, scope, function.arguments))


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


def _of_region(blocks: list[Block], scope: _Scope, arguments: Iterable[str] = ()) -> list[str]:
    """Return the digests of what the blocks do, in order; names of theirs end with them."""
    labels = {block.label: str(number) for number, block in enumerate(blocks)}
    for number, block in enumerate(blocks):
        names = [*(arguments if not number else ()), *block.arguments]
        for index, name in enumerate(names):
            scope.name(name, _digest("argument", str(scope.depth), str(number), str(index)))
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
