"""Where 32-bit integers on their way to an address may wrap: intervals, once a launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trivet.simulator.aliasing import branches, flows
from trivet.simulator.ir import Function, Module, Operation, walk
from trivet.simulator.memory import Argument

Interval = tuple[int, int]
_INT32: Interval = (-(2**31), 2**31 - 1)
_INT64: Interval = (-(2**63), 2**63 - 1)
_NOTHING_KNOWN = {"i1": (0, 1), "i8": (-128, 127), "i16": (-(2**15), 2**15 - 1), "i32": _INT32}
_ARITHMETIC = ("arith.addi", "arith.subi", "arith.muli")
_KEEPING = (
    "tt.splat",
    "tt.unsplat",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.reshape",
    "tt.trans",
    "ttg.convert_layout",
    "arith.extsi",
    "arith.index_cast",
)
_FOLLOWED = (
    *_ARITHMETIC,
    *_KEEPING,
    "arith.select",
    "arith.divsi",
    "arith.remsi",
    "arith.minsi",
    "arith.maxsi",
)
_ADDRESSES = (
    "tt.addptr",
    "tt.descriptor_load",
    "tt.descriptor_store",
    "tt.descriptor_gather",
    "tt.descriptor_scatter",
    "tt.descriptor_reduce",
)
# Larger index tensors are not looked through before a launch: anything may be in them.
_MOST_LOOKED_AT = 1 << 20


class Wraps:
    """The integer operations of a module whose results become places, and when they may wrap.

    ``written`` are the positions of the arguments that the kernel writes.
    """

    def __init__(self, module: Module, written: frozenset[int]) -> None:
        self._functions = [_Places(function) for function in module.functions.values()]
        names = module.entry.arguments
        self._kept = frozenset(name for n, name in enumerate(names) if n not in written)
        self.operations = frozenset(
            id(operation) for each in self._functions for operation in each.arithmetic
        )
        self._known: dict[object, bool] = {}

    def possible(self, grid: tuple[int, int, int], arguments: Sequence[object]) -> bool:
        """Whether an operation may wrap in this launch; errs towards yes."""
        if not self.operations:
            return False
        if len(self._functions) > 1:
            return True
        places = self._functions[0]
        integers = tuple(each if isinstance(each, int) else None for each in arguments)
        key = None if places.loads else (grid, integers)
        if key is None or key not in self._known:
            given = dict(zip(places.function.arguments, arguments, strict=True))
            bounds = _Bounds(places, grid, given, self._kept)
            self._known[key] = any(map(bounds.leaves, places.arithmetic))
        return self._known[key]


class _Places:
    """The integers of one function that reach an address.

    Regions beside each other reuse names: a name may have several definitions.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.definitions: dict[str, list[Operation]] = {}
        self.loops: dict[str, list[tuple[Operation, int]]] = {}
        self.unknown: set[str] = set()
        self._sources: dict[str, set[str]] = {}
        roots: list[str] = []
        for block in function.blocks[1:]:
            self.unknown.update(block.arguments)
        for operation in walk(function.blocks):
            self._note(operation)
            if operation.name in _ADDRESSES:
                roots += operation.operands[1:]
        reached = [
            each for name in self._reaching(roots) for each in self.definitions.get(name, ())
        ]
        chosen = {id(each): each for each in reached if each.name in _ARITHMETIC}
        self.arithmetic = [e for e in chosen.values() if e.result_types[0].element == "i32"]
        self.loads = any(each.name == "tt.load" for each in reached)

    def _note(self, operation: Operation) -> None:
        for name in operation.results:
            self.definitions.setdefault(name, []).append(operation)
        for results, operands in [*flows(operation), *branches(operation, self.function)]:
            for result, operand in zip(results, operands, strict=False):
                self._sources.setdefault(result, set()).add(operand)
        for region in operation.regions:
            for block in region:
                self._note_arguments(operation, block.arguments)

    def _note_arguments(self, operation: Operation, names: list[str]) -> None:
        if operation.name != "scf.for":
            self.unknown.update(names)
            return
        for number, name in enumerate(names):
            self.loops.setdefault(name, []).append((operation, number))
        self._sources.setdefault(names[0], set()).update(operation.operands[:3])

    def _reaching(self, roots: list[str]) -> set[str]:
        found: set[str] = set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            made_by = self.definitions.get(name, [])
            if all(each.regions or each.name in _FOLLOWED for each in made_by):
                waiting += self._sources.get(name, ())
        return found


class _Bounds:
    """Intervals of the values of one launch."""

    def __init__(
        self,
        places: _Places,
        grid: tuple[int, int, int],
        given: Mapping[str, object],
        kept: frozenset[str],
    ) -> None:
        self._places = places
        self._grid = grid
        self._given = given
        self._kept = kept
        self._found: dict[str, Interval] = {}

    def leaves(self, operation: Operation) -> bool:
        low, high = self._raw(operation)
        return low < _INT32[0] or high > _INT32[1]

    def of(self, name: str) -> Interval:
        found = self._found.get(name)
        if found is None:
            self._found[name] = _INT64
            found = self._found[name] = self._of(name)
        return found

    def _of(self, name: str) -> Interval:
        value = self._given.get(name)
        if name in self._places.unknown or isinstance(value, float | Argument):
            return _INT64
        found = [(int(value), int(value))] if isinstance(value, int) else []
        found += [self._counted(*each) for each in self._places.loops.get(name, ())]
        found += [self._made(each) for each in self._places.definitions.get(name, ())]
        return _union(*found) if found else _INT64

    def _made(self, operation: Operation) -> Interval:
        low, high = self._raw(operation)
        least, most = _NOTHING_KNOWN.get(operation.result_types[0].element, _INT64)
        return (low, high) if least <= low and high <= most else (least, most)

    def _counted(self, loop: Operation, number: int) -> Interval:
        """A loop's counter, or a value that grows by an amount that does not depend on it."""
        lower, upper, step = (self.of(name) for name in loop.operands[:3])
        if number == 0:
            return lower[0], max(lower[0], upper[1] - 1)
        body = loop.regions[0][0]
        start, name = self.of(loop.operands[2 + number]), body.arguments[number]
        [grown] = self._places.definitions.get(body.operations[-1].operands[number - 1], [None])[:1]
        if grown is None or grown.name != "arith.addi" or name not in grown.operands:
            return _INT64
        by = self.of(next((each for each in grown.operands if each != name), name))
        rounds = max(0, -(-(upper[1] - lower[0]) // max(1, step[0])))
        return start[0] + min(0, rounds * by[0]), start[1] + max(0, rounds * by[1])

    def _raw(self, operation: Operation) -> Interval:
        rule = _RULES.get(operation.name)
        if rule is not None:
            return rule(*(self.of(name) for name in operation.operands[-2:]))
        if operation.name in _KEEPING:
            return self.of(operation.operands[0])
        special = _SPECIAL.get(operation.name)
        return special(self, operation) if special else _INT64

    def constant(self, operation: Operation) -> Interval:
        word = operation.words[0].removeprefix("dense<").removesuffix(">")
        try:
            value = {"true": 1, "false": 0}.get(word) or int(word, 0)
        except ValueError:
            return _INT64
        return value, value

    def counted_range(self, operation: Operation) -> Interval:
        start, end = operation.attributes["start"], operation.attributes["end"]
        assert isinstance(start, int)
        assert isinstance(end, int)
        return start, end - 1

    def program(self, operation: Operation) -> Interval:
        return 0, max(0, self._grid["xyz".index(operation.words[0])] - 1)

    def programs(self, operation: Operation) -> Interval:
        extent = self._grid["xyz".index(operation.words[0])]
        return extent, extent

    def selected(self, operation: Operation) -> Interval:
        return _union(*(self.of(name) for name in operation.operands[1:3]))

    def extended(self, operation: Operation) -> Interval:
        low, high = self.of(operation.operands[0])
        if operation.operand_types[0].element == "i1":
            return 0, 1
        return (low, high) if low >= 0 else _INT64

    def folded(self, operation: Operation) -> Interval:
        """A sum, or a choice, of as many elements as an axis has."""
        steps = operation.regions[0][0].operations
        axis = operation.attributes["axis"]
        assert isinstance(axis, int)
        if len(steps) != 2 or len(operation.operands) != 1:
            return _INT64
        low, high = self.of(operation.operands[0])
        if steps[0].name == "arith.addi":
            count = operation.operand_types[0].shape[axis]
            return min(low, count * low), max(high, count * high)
        chooses = steps[0].name in ("arith.maxsi", "arith.minsi")
        return (low, high) if chooses else _INT64

    def loaded(self, operation: Operation) -> Interval:
        """What lies in the tensor a whole number is loaded from, if it is small enough to see."""
        name = self._base(operation.operands[0])
        argument = self._given.get(name)
        if not isinstance(argument, Argument) or name not in self._kept:
            return _INT64
        data = argument.allocation.data
        if data.dtype.kind not in "iu" or not 0 < data.size <= _MOST_LOOKED_AT:
            return _INT64
        return int(data.min()), int(data.max())

    def _base(self, name: str) -> str:
        while len(made_by := self._places.definitions.get(name, [])) == 1:
            if made_by[0].name not in (*_KEEPING, "tt.addptr"):
                break
            name = made_by[0].operands[0]
        return name


def _union(*intervals: Interval) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _products(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotients(a: Interval, b: Interval) -> Interval:
    size = max(abs(a[0]), abs(a[1]))
    return (0, size) if a[0] >= 0 and b[0] > 0 else (-size, size)


def _remainders(a: Interval, b: Interval) -> Interval:
    size = max(abs(b[0]), abs(b[1])) - 1
    return (0 if a[0] >= 0 else -size, size)


def _common_bits(a: Interval, b: Interval) -> Interval:
    known = [high for low, high in (a, b) if low >= 0]
    return (0, min(known)) if known else _INT64


_RULES: dict[str, Callable[[Interval, Interval], Interval]] = {
    "arith.addi": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "arith.subi": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "arith.muli": _products,
    "arith.divsi": _quotients,
    "arith.remsi": _remainders,
    "arith.andi": _common_bits,
    "arith.minsi": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "arith.maxsi": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
_SPECIAL: dict[str, Callable[[_Bounds, Operation], Interval]] = {
    "arith.constant": _Bounds.constant,
    "tt.make_range": _Bounds.counted_range,
    "tt.get_program_id": _Bounds.program,
    "tt.get_num_programs": _Bounds.programs,
    "arith.select": _Bounds.selected,
    "tt.load": _Bounds.loaded,
    "tt.reduce": _Bounds.folded,
    "tt.scan": _Bounds.folded,
    "arith.extui": _Bounds.extended,
}
