"""A product and a sum as one fused operation, as GPU compilers make of them unless told not to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from trivet.simulator.ir import Block, Operation, walk

_SUMS = ("arith.addf", "arith.subf")
_FLOATS = ("f16", "bf16", "f32", "f64")


def contracted(block: Block) -> Block:
    """``block`` with each sum of a product that nothing else uses as a fused multiply-add.

    The first operand goes first where both are products. A difference negates a factor or the
    term, which is exact.
    """
    uses = Counter(name for each in walk([block]) for name in each.operands)
    uses.update(name for each in walk([block]) for _, names in each.successors for name in names)
    products: dict[str, Operation] = {}
    operations: list[Operation] = []
    for operation in block.operations:
        if operation.name == "arith.mulf" and uses[operation.results[0]] == 1:
            products[operation.results[0]] = operation
        fused = _fused(operation, products)
        if fused:
            product = next(name for name in operation.operands if name in products)
            operations.remove(products.pop(product))
        operations += fused or [operation]
    return replace(block, operations=operations)


def _fused(operation: Operation, products: dict[str, Operation]) -> list[Operation]:
    """The operations that take the place of a sum; empty where it stays."""
    if operation.name not in _SUMS or operation.result_types[0].element not in _FLOATS:
        return []
    first, second = operation.operands
    if first == second or not {first, second} & products.keys():
        return []
    subtracts = operation.name == "arith.subf"
    if first in products:
        a, b = products[first].operands
        if not subtracts:
            return [_fma(operation, a, b, second)]
        negated = _negation(operation, second)
        return [negated, _fma(operation, a, b, negated.results[0])]
    a, b = products[second].operands
    if not subtracts:
        return [_fma(operation, a, b, first)]
    negated = _negation(operation, a)
    return [negated, _fma(operation, negated.results[0], b, first)]


def _fma(operation: Operation, a: str, b: str, c: str) -> Operation:
    kinds = operation.result_types * 3
    return replace(operation, name="math.fma", operands=[a, b, c], operand_types=kinds)


def _negation(operation: Operation, name: str) -> Operation:
    return replace(
        operation,
        name="arith.negf",
        results=[f"{operation.results[0]}.negated"],
        operands=[name],
        operand_types=operation.result_types,
    )
