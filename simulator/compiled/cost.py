"""Bytes and operations of one launch, counted in its Triton IR.

Masks count as true: what is counted is what a launch moves at most, which is what its tiles were
chosen for. Loops count as often as they run in the program in the middle of the grid, as far as
their bounds follow from arguments and program ids; a loop whose bounds are loaded counts once.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trivet.simulator.compiled.listing import Place
from trivet.simulator.ir import Block, Function, Module, Operation, Type, walk

Number = int | float | bool
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "divui": lambda a, b: a // b,
    "remsi": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "remui": lambda a, b: a % b,
    "ceildivsi": lambda a, b: -(-a // b),
    "minsi": min,
    "minui": min,
    "maxsi": max,
    "maxui": max,
    "shli": lambda a, b: a << b,
    "shrsi": lambda a, b: a >> b,
    "andi": lambda a, b: a & b,
}
_SAME = frozenset({"arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"})
_LOADS = frozenset({"tt.load", "tt.descriptor_load", "tt.descriptor_gather"})
_STORES = frozenset({"tt.store", "tt.descriptor_store", "tt.descriptor_scatter"})
_ATOMICS = frozenset({"tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce"})
_FLOATING = re.compile(r"arith\.(?:add|sub|mul|div|rem|max\w*|min\w*|neg)f$|math\.|tt\.precise_")
_AXES = ("x", "y", "z")


@dataclass
class Cost:
    """What one program moves and computes, and the lines that move most.

    ``iterations`` is how often the deepest loops run; ``unknown`` counts loops whose bounds are
    not known before the launch.
    """

    read: int = 0
    written: int = 0
    atomic: int = 0
    matrix: int = 0
    floating: int = 0
    double: int = 0
    iterations: int = 1
    unknown: int = 0
    lines: dict[str, Counter[Place]] = field(default_factory=dict)

    @property
    def moved(self) -> int:
        """Bytes that go to or come from global memory."""
        return self.read + self.written + self.atomic

    def place(self, kind: str) -> Place | None:
        """Return the line that accounts for most of ``kind`` (read, written, atomic, ...)."""
        counted = self.lines.get(kind)
        return counted.most_common(1)[0][0] if counted else None


def cost_of(
    module: Module, grid: Sequence[int], leaves: Sequence[str], scalars: Mapping[str, Number]
) -> Cost:
    """Count the middle program of a launch.

    ``leaves`` are the names of the runtime arguments in order, ``scalars`` the values of those
    that are numbers.
    """
    counter = _Counter(module, [size // 2 for size in grid], grid)
    counter.arguments(module.entry, leaves, scalars)
    counter.blocks(module.entry.blocks, 1)
    return counter.cost


class _Counter:
    """Walks the IR once, with the integers that are known."""

    def __init__(self, module: Module, program: Sequence[int], grid: Sequence[int]) -> None:
        self.module = module
        self.cost = Cost()
        self._program = program
        self._grid = grid
        self._known: dict[str, int] = {}
        self._open: list[str] = []

    def arguments(
        self, function: Function, leaves: Sequence[str], scalars: Mapping[str, Number]
    ) -> None:
        names = function.arguments
        if len(names) != len(leaves):  # descriptors bring arguments of their own
            leaves = [name.lstrip("%") for name in names]
        for name, leaf in zip(names, leaves, strict=True):
            value = scalars.get(leaf)
            if isinstance(value, int):
                self._known[name] = int(value)

    def blocks(self, blocks: Sequence[Block], times: int) -> None:
        for block in blocks:
            for operation in block.operations:
                self._operation(operation, times)

    def _operation(self, operation: Operation, times: int) -> None:
        name = operation.name
        if name == "scf.for":
            self._loop(operation, times)
        elif name in ("tt.reduce", "tt.scan"):
            self._fold(operation, times)
        elif name == "scf.if":
            self._branch(operation, times)
        elif name == "tt.call":
            self._call(operation, times)
        elif operation.regions:
            self.cost.unknown += name == "scf.while"
            for region in operation.regions:
                self.blocks(region, times)
        else:
            self._learn(operation)
            self._count(operation, times)

    def _loop(self, operation: Operation, times: int) -> None:
        bounds = [self._known.get(name) for name in operation.operands[:3]]
        low, high, step = bounds
        if low is None or high is None or not step:
            trips = 1
            self.cost.unknown += 1
        else:
            trips = max(0, -(-(high - low) // step))
        inner = times * trips
        self.cost.iterations = max(self.cost.iterations, inner)
        for region in operation.regions:
            self.blocks(region, inner)

    def _branch(self, operation: Operation, times: int) -> None:
        """Count both sides of a branch, or the one that is known to be taken."""
        taken = self._known.get(operation.operands[0])
        regions = operation.regions
        if taken is not None:
            regions = regions[:1] if taken else regions[1:]
        for region in regions:
            self.blocks(region, times)

    def _fold(self, operation: Operation, times: int) -> None:
        """Each element but one goes once through the combining region."""
        size = max((kind.size for kind in operation.operand_types), default=1)
        for inner in walk([block for region in operation.regions for block in region]):
            if _FLOATING.match(inner.name):
                self._floating(inner, times * max(0, size - 1))

    def _call(self, operation: Operation, times: int) -> None:
        callee = self.module.functions.get(
            operation.words[0].lstrip("@") if operation.words else ""
        )
        if callee is None or callee.name in self._open:
            return
        self._open.append(callee.name)
        self.blocks(callee.blocks, times)
        self._open.pop()

    def _learn(self, operation: Operation) -> None:
        """Keep the value of an integer that follows from what is known."""
        value = self._value(operation)
        if value is not None and operation.results:
            self._known[operation.results[0]] = value

    def _value(self, operation: Operation) -> int | None:
        name, words = operation.name, operation.words
        if operation.result_types and operation.result_types[0].shape:
            return None
        if name == "arith.constant":
            return _constant(words)
        if name in ("tt.get_program_id", "tt.get_num_programs"):
            source = self._program if name == "tt.get_program_id" else self._grid
            return source[_AXES.index(words[0])] if words and words[0] in _AXES else None
        known = [self._known.get(operand) for operand in operation.operands]
        if not known or any(value is None for value in known):
            return None
        values = [value for value in known if value is not None]
        return _computed(name, words, values)

    def _count(self, operation: Operation, times: int) -> None:
        name = operation.name
        if name in _LOADS:
            self._moves("read", operation, operation.result_types, times)
        elif name in _STORES:
            self._moves("written", operation, operation.operand_types, times)
        elif name in _ATOMICS:
            kinds = operation.result_types or operation.operand_types
            self._moves("atomic", operation, kinds, times)
        elif name in ("tt.dot", "tt.dot_scaled"):
            self._product(operation, times)
        elif _FLOATING.match(name):
            self._floating(operation, times)

    def _moves(self, kind: str, operation: Operation, types: Sequence[Type], times: int) -> None:
        count = times * max((_bytes(item) for item in types), default=0)
        setattr(self.cost, kind, getattr(self.cost, kind) + count)
        self._note(kind, operation, count)

    def _product(self, operation: Operation, times: int) -> None:
        left, right = operation.operand_types[:2]
        count = times * 2 * left.size * right.shape[-1]
        self.cost.matrix += count
        self._note("matrix", operation, count)

    def _floating(self, operation: Operation, times: int) -> None:
        kinds = operation.result_types or operation.operand_types
        if not kinds or not kinds[0].is_float:
            return
        count = times * kinds[0].size
        self.cost.floating += count
        if kinds[0].element == "f64":
            self.cost.double += count
            self._note("double", operation, count)

    def _note(self, kind: str, operation: Operation, count: int) -> None:
        frames = self.module.frames(operation.location)
        own = next((frame for frame in frames if "/triton/language/" not in frame.file), None)
        if own is not None:
            self.cost.lines.setdefault(kind, Counter())[own.file, own.line] += count


def _constant(words: Sequence[str]) -> int | None:
    text = words[0] if words else ""
    if text in ("true", "false"):
        return int(text == "true")
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _computed(name: str, words: Sequence[str], values: Sequence[int]) -> int | None:
    if name in _SAME:
        return values[0]
    if name == "arith.cmpi" and words:
        return _compared(words[0], *values)
    if name == "arith.select":
        return values[1] if values[0] else values[2]
    function = _ARITHMETIC.get(name.removeprefix("arith."))
    if function is None or len(values) != 2:
        return None
    try:
        return function(*values)
    except (ZeroDivisionError, ValueError):
        return None


def _compared(predicate: str, first: int, second: int) -> int | None:
    tests = {
        "eq": first == second,
        "ne": first != second,
        "lt": first < second,
        "le": first <= second,
        "gt": first > second,
        "ge": first >= second,
    }
    found = tests.get(predicate.lstrip("su") if predicate not in tests else predicate)
    return None if found is None else int(found)


def _bytes(kind: Type) -> int:
    """Bytes of a tile: of what a pointer or a descriptor points at."""
    element = kind.element
    if element.startswith(("ptr<", "desc<")):
        element = kind.pointee
    if element.startswith("ptr<"):
        bits = 64
    elif element == "i1" or element.startswith("f8"):
        bits = 8
    else:
        bits = int("".join(c for c in element if c.isdigit()) or 32)
    return kind.size * bits // 8


def cost_places(cost: Cost) -> Iterator[tuple[str, Place]]:
    """Yield each kind of work with the line that accounts for most of it."""
    for kind in cost.lines:
        place = cost.place(kind)
        if place is not None:
            yield kind, place
