"""Which pointer arguments of a kernel may be written or read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trivet.simulator.ir import Block, Function, Module, Operation, walk

_ALL_WRITES = frozenset(
    (
        "tt.store",
        "tt.atomic_rmw",
        "tt.atomic_cas",
        "tt.atomic_store",
        "tt.descriptor_store",
        "tt.descriptor_scatter",
        "tt.descriptor_reduce",
    )
)

_ALL_READS = frozenset(
    (
        "tt.load",
        "tt.atomic_rmw",
        "tt.atomic_cas",
        "tt.atomic_load",
        "tt.atomic_poll",
        "tt.descriptor_load",
        "tt.descriptor_gather",
        "tt.descriptor_reduce",
    )
)


def read_arguments(module: Module) -> frozenset[int]:
    """Positions of the entry's arguments that a load or an atomic may reach."""
    return reached_arguments(module, lambda operation: operation.name in _ALL_READS)


def written_arguments(module: Module) -> frozenset[int]:
    """Positions of the entry's arguments that a store or an atomic may reach."""
    return reached_arguments(module, lambda operation: operation.name in _ALL_WRITES)


def reached_arguments(module: Module, chosen: Callable[[Operation], bool]) -> frozenset[int]:
    """Positions of the entry's arguments that the first operand of a chosen operation may be.

    Pointers are followed backwards through every operation; what cannot be followed counts as
    all its operands, so the answer errs towards too many.
    """
    edges: dict[tuple[str, str], set[tuple[str, str]]] = {}
    targets: set[tuple[str, str]] = set()
    for function in module.functions.values():
        _follow(function, module, edges)
        chosen_here = filter(chosen, walk(function.blocks))
        targets.update((function.name, each.operands[0]) for each in chosen_here)
    pointers = {each for function in module.functions.values() for each in _pointers(function)}
    reached, waiting = set(targets), list(targets)
    while waiting:
        for source in edges.get(waiting.pop(), ()):
            if source in pointers and source not in reached:
                reached.add(source)
                waiting.append(source)
    entry = module.entry
    return frozenset(
        position for position, name in enumerate(entry.arguments) if (entry.name, name) in reached
    )


def _pointers(function: Function) -> Iterator[tuple[str, str]]:
    """Names of pointers and descriptors, or of integers on their way to become one."""
    typed = [zip(function.arguments, function.argument_types, strict=True)]
    blocks = [*function.blocks]
    while blocks:
        block = blocks.pop()
        typed.append(zip(block.arguments, block.argument_types, strict=True))
        for operation in block.operations:
            typed.append(zip(operation.results, operation.result_types, strict=True))
            blocks += [inner for region in operation.regions for inner in region]
            if operation.name == "tt.int_to_ptr":
                yield from ((function.name, name) for name in operation.operands)
    for names in typed:
        for name, kind in names:
            if kind.is_pointer or kind.element.startswith("desc<"):
                yield function.name, name


def _follow(
    function: Function,
    module: Module,
    edges: dict[tuple[str, str], set[tuple[str, str]]],
) -> None:
    """Add the edges result -> operand of ``function``; names carry the function's."""

    def link(results: list[str], operands: list[str], into: str = "") -> None:
        for result, operand in zip(results, operands, strict=False):
            edges.setdefault((into or function.name, result), set()).add((function.name, operand))

    for operation in walk(function.blocks):
        for arguments, names in branches(operation, function):
            link(arguments, names)
        if operation.name == "tt.call":
            callee = module.functions[operation.words[0]]
            link(callee.arguments, operation.operands, callee.name)
            for block in callee.blocks:
                returned = block.operations[-1].operands
                for result, operand in zip(operation.results, returned, strict=False):
                    key = (function.name, result)
                    edges.setdefault(key, set()).add((callee.name, operand))
        for results, operands in flows(operation):
            link(results, operands)


def branches(operation: Operation, function: Function) -> list[tuple[list[str], list[str]]]:
    """Pairs of the arguments of blocks and what ``operation`` hands to them."""
    by_label = {block.label: block for block in function.blocks}
    # A region within an operation (a mapped function) has labels of its own, no pointers.
    return [
        (by_label[label].arguments, names)
        for label, names in operation.successors
        if label in by_label
    ]


def flows(operation: Operation) -> list[tuple[list[str], list[str]]]:
    """Pairs of result names and the operand names they may come from, position by position."""
    results, operands = operation.results, operation.operands
    regions = operation.regions
    if operation.name == "scf.for":
        body, carried = regions[0][0], operands[3:]
        inner, yielded = body.arguments[1:], _last(body).operands
        return [(inner, carried), (inner, yielded), (results, carried), (results, yielded)]
    if operation.name == "scf.if":
        return [(results, _last(region[0]).operands) for region in regions]
    if operation.name == "scf.while":
        before, after = regions[0][0], regions[1][0]
        forwarded = _last(before).operands[1:]
        return [
            (before.arguments, operands),
            (before.arguments, _last(after).operands),
            (after.arguments, forwarded),
            (results, forwarded),
        ]
    if operation.name == "tt.addptr":
        # An offset, and what was loaded to compute it, is no pointer.
        operands = operands[:1]
    return [([result], [operand]) for result in results for operand in operands]


def _last(block: Block) -> Operation:
    return block.operations[-1]
