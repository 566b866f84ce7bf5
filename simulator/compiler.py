"""From parsed functions to closures: every operation becomes one prepared step."""

from __future__ import annotations

from collections.abc import Callable
from operator import length_hint
from typing import Any

import numpy as np

from trivet.simulator.arithmetic import Arithmetic
from trivet.simulator.chunk import Chunk
from trivet.simulator.contraction import contracted
from trivet.simulator.faults import Fault, Site, Trap, site
from trivet.simulator.ir import Block, Function, Module, Operation, Type, walk
from trivet.simulator.lifting import Lifting
from trivet.simulator.operations.registry import EFFECTS, PURE, Handler, Unsupported
from trivet.simulator.values import Mover, Value, mover
from trivet.simulator.wide import watched

Step = Callable[[Chunk], None]

_WORK_PER_STEP = 10  # a NumPy call and its bookkeeping, in microseconds
_WORK_PER_ELEMENT = 10
_SAME_VALUE = ("tt.broadcast", "ttg.convert_layout")


class Code:
    """Straight-line steps of one block; ``outputs`` are the operands of its terminator.

    ``shared`` names the values that other blocks of the same function use, ``dying`` lists the
    slots to drop after each operation.
    """

    def __init__(
        self, block: Block, compiler: Compiler, shared: set[str], dying: list[list[int]]
    ) -> None:
        self.label = block.label
        self.arguments = [compiler.slot(name) for name in block.arguments]
        self.movers = [(compiler.mover(kind), len(kind.shape)) for kind in block.argument_types]
        self.terminator = block.operations[-1]
        self.outputs = [compiler.slot(name) for name in self.terminator.operands]
        self.output_movers = [
            (compiler.mover(kind), len(kind.shape)) for kind in self.terminator.operand_types
        ]
        self.targets = [
            (label, [compiler.slot(name) for name in names])
            for label, names in self.terminator.successors
        ]
        self.shared = [
            (compiler.slot(name), compiler.mover(kind), len(kind.shape))
            for name, kind in _definitions(block)
            if name in shared
        ]
        self._operations: list[Operation] = []
        self._steps: list[Step] = []
        self._explain = compiler.explain
        for operation, dead in zip(block.operations[:-1], dying, strict=True):
            step = compiler.step(operation, dead)
            if step is not None:
                self._steps.append(step)
                self._operations.append(operation)
        self._fixed = _WORK_PER_STEP * (1 + len(self._steps))
        self._elements = sum(
            kind.size for operation in self._operations for kind in operation.result_types
        )

    def run(self, chunk: Chunk) -> list[Value]:
        """Run all steps; returns the terminator's operands. Raises Trap."""
        launch = chunk.launch
        launch.fuel -= self._fixed + (self._elements * chunk.count >> _WORK_PER_ELEMENT)
        steps = iter(self._steps)
        try:
            if launch.fuel < 0:
                raise TimeoutError
            for step in steps:
                step(chunk)
        except Trap:
            raise
        except Exception as error:
            index = max(0, len(self._steps) - length_hint(steps) - 1)
            operation = self._operations[index] if self._operations else self.terminator
            raise Trap(self._explain(error, operation, chunk)) from error
        values = chunk.values
        return [values[slot] for slot in self.outputs]


class Routine:
    """A compiled function."""

    def __init__(self, function: Function, machine: Compiler) -> None:
        self.arguments = [machine.slot(name) for name in function.arguments]
        self.blocks = machine.region(function.blocks)
        self.template = machine.template()


class Compiler:
    """Compiles the functions of one module for one arithmetic.

    ``sites`` numbers the memory operations, ``largest_tile`` is in elements; ``watched`` are
    integer operations, by their identity, whose results tell where they wrapped.
    """

    def __init__(
        self, module: Module, arithmetic: Arithmetic, watched: frozenset[int] = frozenset()
    ) -> None:
        self.module = module
        self._watched = watched
        self.arithmetic = arithmetic
        self.sites: list[Operation] = []
        self.routines: dict[str, Routine] = {}
        self.largest_tile = 1
        self._slots: dict[str, int] = {}
        self._template: list[Value] = []
        self._used = {
            name
            for function in module.functions.values()
            for operation in walk(function.blocks)
            for name in _names(operation)
        }
        self._lines: dict[str, Site] = {}
        self._lifting = Lifting()

    def routine(self, name: str) -> Routine:
        """Compiled form of the function ``name``; each function has its own slots."""
        known = self.routines.get(name)
        if known is None:
            outer = self._slots, self._template
            function = self.module.functions[name]
            self._slots, self._template = {}, []
            known = self.routines[name] = Routine(function, self)
            self._slots, self._template = outer
        return known

    def template(self) -> list[Value]:
        """Initial slot values of the function being compiled: constants, else None."""
        return self._template

    def slot(self, name: str) -> int:
        """Slot of an SSA name of the function being compiled."""
        number = self._slots.get(name)
        if number is None:
            number = self._slots[name] = len(self._template)
            self._template.append(None)
        return number

    def mover(self, kind: Type) -> Mover:
        """How structure reaches values of type ``kind``."""
        return mover(kind, self.arithmetic)

    def region(self, blocks: list[Block]) -> list[Code]:
        """Compiled blocks of a region, whose names have slots of their own.

        Regions beside each other reuse names; a constant in one must survive the other.
        """
        if self.arithmetic.fused:
            blocks = [contracted(block) for block in blocks]
        if not self.arithmetic.bitwise:
            blocks = [self._lifting.block(block) for block in blocks]
        outer = self._slots
        inner = {name for block in blocks for name, _ in _definitions(block)}
        self._slots = {name: slot for name, slot in outer.items() if name not in inner}
        shared = _crossing(blocks)
        dying = [self._dying(block, shared) for block in blocks]
        compiled = [
            Code(block, self, shared, dead) for block, dead in zip(blocks, dying, strict=True)
        ]
        self._slots = outer
        return compiled

    def site(self, operation: Operation) -> int:
        """Number of a memory operation."""
        self.sites.append(operation)
        return len(self.sites) - 1

    def is_used(self, operation: Operation) -> bool:
        """Whether any result of ``operation`` is used."""
        return any(name in self._used for name in operation.results)

    def line(self, operation: Operation) -> Site:
        """Source lines of ``operation``."""
        found = self._lines.get(operation.location)
        if found is None:
            found = self._lines[operation.location] = site(self.module.frames(operation.location))
        return found

    def _dying(self, block: Block, shared: set[str]) -> list[list[int]]:
        """Per operation but the last: slots of values of this block that it is the last to use.

        Dropping them keeps a chunk's working set in the cache. Gives every result its slot; a
        broadcast, which changes nothing here, shares that of its operand.
        """
        last = dict.fromkeys(map(self.slot, block.arguments), 0)
        for index, operation in enumerate(block.operations):
            used = {self._slots.get(name, -1) for name in _names(operation)}
            last.update(dict.fromkeys(used & last.keys(), index))
            if operation.name in _SAME_VALUE:
                self._slots[operation.results[0]] = self.slot(operation.operands[0])
            elif operation.operands or operation.name not in PURE:
                last.update(dict.fromkeys(map(self.slot, operation.results), index))
        ending: list[list[int]] = [[] for _ in block.operations]
        kept = {self._slots[name] for name in shared if name in self._slots}
        for slot, index in last.items():
            if slot not in kept:
                ending[index].append(slot)
        return ending[:-1]

    def step(self, operation: Operation, dead: list[int]) -> Step | None:
        """Prepared step of ``operation``, None when its value is known already."""
        if operation.name in _SAME_VALUE:
            return None
        for kind in operation.result_types:
            self.largest_tile = max(self.largest_tile, kind.size)
        handler, takes_chunk = self._handler(operation)
        targets = [self.slot(name) for name in operation.results]
        if not operation.operands and not takes_chunk and len(targets) == 1:
            self._template[targets[0]] = handler()
            return None
        sources = [self.slot(name) for name in operation.operands]
        return bind(handler, takes_chunk, sources, targets, dead)

    def _handler(self, operation: Operation) -> tuple[Handler, bool]:
        try:
            if id(operation) in self._watched:
                return watched(PURE[operation.name](operation, self), operation), False
            if operation.name in PURE:
                return PURE[operation.name](operation, self), False
            if operation.name in EFFECTS:
                return EFFECTS[operation.name](operation, self), True
            raise Unsupported(f"the simulator has no rule for {operation.name}")
        except Unsupported as error:
            reason = str(error)

            def refuse(chunk: Chunk, *operands: Value) -> Value:
                raise Unsupported(reason)

            return refuse, True

    def explain(self, error: Exception, operation: Operation, chunk: Chunk) -> Fault:
        """Fatal fault for an exception raised while running ``operation``."""
        place = self.line(operation)
        kind, kernel = "unsupported", self.module.entry.name
        first = int(chunk.programs[0] if chunk.active is None else chunk.programs[chunk.active][0])
        program = program_coordinates(first, chunk.launch.grid)
        reason = f"{operation.name}: {type(error).__name__}: {error}"
        if isinstance(error, Unsupported):
            reason = f"{operation.name}: {error}"
        if isinstance(error, TimeoutError):
            kind, reason = "fuel", "the launch used up its fuel; a loop may never end"
        return Fault(
            kind=kind,
            kernel=kernel,
            argument="",
            index="",
            program=program,
            other_program=None,
            line=place.line,
            other_line=None,
            source=place.source,
            text=f"program {program} of {kernel} stops at {place.phrase}: {reason}",
            lanes=1,
        )


def program_coordinates(number: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Grid coordinates of the program with linear ``number`` (x fastest)."""
    x, y, _ = grid
    return number % x, number // x % y, number // (x * y)


def bind(
    handler: Handler, takes_chunk: bool, sources: list[int], targets: list[int], dead: list[int]
) -> Step:
    """Closure that feeds ``handler`` from slots, keeps its results and drops dead slots."""
    if not takes_chunk and len(targets) == 1 and len(sources) <= 2:
        return _bind_plain(handler, sources, targets[0], dead)

    def step(chunk: Chunk) -> None:
        values = chunk.values
        operands = [values[slot] for slot in sources]
        result = handler(chunk, *operands) if takes_chunk else handler(*operands)
        operands.clear()
        if len(targets) == 1:
            values[targets[0]] = result
        elif targets:
            for slot, value in zip(targets, result, strict=True):
                values[slot] = value
        for slot in dead:
            values[slot] = None

    return step


def _bind_plain(handler: Handler, sources: list[int], target: int, dead: list[int]) -> Step:
    first, last = sources[0], sources[-1]

    def one(chunk: Chunk) -> None:
        values = chunk.values
        values[target] = handler(values[first])
        for slot in dead:
            values[slot] = None

    def two(chunk: Chunk) -> None:
        values = chunk.values
        values[target] = handler(values[first], values[last])
        for slot in dead:
            values[slot] = None

    return one if len(sources) == 1 else two


def _names(operation: Operation) -> list[str]:
    """Every SSA name ``operation`` or its regions use."""
    names = list(operation.operands)
    for _, arguments in operation.successors:
        names += arguments
    for region in operation.regions:
        for inner in walk(region):
            names += inner.operands
            for _, arguments in inner.successors:
                names += arguments
    return names


def _definitions(block: Block) -> list[tuple[str, Type]]:
    found = list(zip(block.arguments, block.argument_types, strict=True))
    for operation in block.operations:
        found += zip(operation.results, operation.result_types, strict=True)
    return found


def _crossing(blocks: list[Block]) -> set[str]:
    """Names defined in one of ``blocks`` and used in another."""
    if len(blocks) == 1:
        return set()
    crossing: set[str] = set()
    for block in blocks:
        inner = {name for name, _ in _definitions(block)}
        crossing.update(name for op in block.operations for name in _names(op) if name not in inner)
    return crossing


def as_column(value: Any, rank: int) -> np.ndarray:
    """A zero-dimensional array with one leading axis and ``rank`` tile axes of extent 1."""
    return np.asarray(value).reshape((1,) * (rank + 1))
