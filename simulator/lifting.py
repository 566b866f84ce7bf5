"""Float atomics told by their bits, put back as what they are.

``tl.atomic_max`` of floats is an integer ``max`` of the bits of what is not negative and an
unsigned ``min`` of the others. An arithmetic whose numbers are wider than the bits of memory would
lose what it knows in between.
"""

from __future__ import annotations

from dataclasses import replace

from trivet.simulator.ir import Block, Operation, Type

_FLOAT_KIND = {"max": "max", "umin": "max", "min": "min", "umax": "min"}


class Lifting:
    """Rewrites blocks in textual order; a name stands for its last definition."""

    def __init__(self) -> None:
        self._definitions: dict[str, Operation] = {}

    def block(self, block: Block) -> Block:
        """``block`` with its float atomics on floats."""
        operations = []
        for operation in block.operations:
            self._definitions.update(dict.fromkeys(operation.results, operation))
            operations += self._lifted(operation)
        return replace(block, operations=operations)

    def _lifted(self, operation: Operation) -> list[Operation]:
        if operation.name != "tt.atomic_rmw" or operation.words[0] not in _FLOAT_KIND:
            return [operation]
        sources = [self._definitions.get(name) for name in operation.operands[:2]]
        pointer, value = sources
        if pointer is None or value is None or not (_is_cast(pointer) and _is_cast(value)):
            return [operation]
        kind, held = value.operand_types[0], pointer.operand_types[0]
        if not kind.is_float or held.pointee != kind.element:
            return [operation]
        result = operation.results[0]
        update = replace(
            operation,
            results=[f"{result}.float"],
            operands=[pointer.operands[0], value.operands[0], *operation.operands[2:]],
            operand_types=[held, kind, *operation.operand_types[2:]],
            result_types=[Type(kind.shape, kind.element)],
            words=[_FLOAT_KIND[operation.words[0]], *operation.words[1:]],
        )
        bits = Operation(
            "tt.bitcast",
            results=[result],
            operands=[f"{result}.float"],
            operand_types=update.result_types,
            result_types=operation.result_types,
            location=operation.location,
        )
        return [update, bits]


def _is_cast(operation: Operation) -> bool:
    return operation.name == "tt.bitcast"
