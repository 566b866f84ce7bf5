"""Running a function: blocks joined by branches, under active masks."""

from __future__ import annotations

import numpy as np

from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Code, Routine
from trivet.simulator.values import Value, merge


def call(routine: Routine, chunk: Chunk, arguments: list[Value]) -> list[Value]:
    """Run ``routine`` for the active programs; returns what it returns."""
    outer_values = chunk.values
    chunk.values = routine.template.copy()
    for slot, value in zip(routine.arguments, arguments, strict=True):
        chunk.values[slot] = value
    results = run_blocks(routine.blocks, chunk)
    chunk.values = outer_values
    return results


def run_blocks(blocks: list[Code], chunk: Chunk) -> list[Value]:
    """Run blocks joined by branches from the first one on; returns what the last ones return."""
    return blocks[0].run(chunk) if len(blocks) == 1 else _Walk(blocks, chunk).run()


class _Walk:
    """One walk over a control-flow graph.

    Programs wait in front of blocks; the first block in textual order that somebody waits for
    runs next, so that programs that took different ways meet again behind them. A block that runs
    twice (a loop) leaves the values of programs that are not in it alone.
    """

    def __init__(self, blocks: list[Code], chunk: Chunk) -> None:
        self._blocks = blocks
        self._numbers = {block.label: number for number, block in enumerate(blocks)}
        self._chunk = chunk
        self._waiting: dict[int, np.ndarray] = {}
        self._visited: set[int] = set()
        self._results: list[Value] | None = None
        self._walks = [object() for _ in blocks]

    def run(self) -> list[Value]:
        chunk, outer = self._chunk, self._chunk.active
        self._waiting[0] = np.ones(chunk.count, bool) if outer is None else outer
        while self._waiting:
            number = min(self._waiting)
            present = self._waiting.pop(number)
            chunk.active = None if present.all() else present
            self._visit(number, present)
        chunk.active = outer
        return self._results or []

    def _visit(self, number: int, present: np.ndarray) -> None:
        chunk, block = self._chunk, self._blocks[number]
        if number in self._visited and chunk.launch.scheduler is not None:
            chunk.launch.scheduler.pause(self._walks[number], self._state())
        kept = [chunk.values[slot] for slot, _, _ in block.shared]
        outputs = block.run(chunk)
        if number in self._visited:
            for (slot, move, rank), old in zip(block.shared, kept, strict=True):
                chunk.values[slot] = merge(move, chunk.active, rank, chunk.values[slot], old)
        self._visited.add(number)
        if not block.targets:
            self._return(block, outputs)
            return
        ways = [present]
        if len(block.targets) == 2:
            condition = np.broadcast_to(outputs[0], (chunk.count,))
            ways = [present & condition, present & ~condition]
        sent = [[chunk.values[slot] for slot in slots] for _, slots in block.targets]
        for (label, _), flags, values in zip(block.targets, ways, sent, strict=True):
            if flags.any():
                self._arrive(self._numbers[label], flags, values)

    def _state(self) -> list[Value]:
        """Every value that a block leaves to another one."""
        slots = [slot for block in self._blocks for slot, _, _ in block.shared]
        slots += [slot for block in self._blocks for slot in block.arguments]
        return [self._chunk.values[slot] for slot in slots]

    def _arrive(self, number: int, flags: np.ndarray, values: list[Value]) -> None:
        block, slots = self._blocks[number], self._chunk.values
        keep = number in self._waiting or number in self._visited
        for slot, (move, rank), value in zip(block.arguments, block.movers, values, strict=True):
            old = slots[slot] if keep else None
            slots[slot] = value if old is None else merge(move, flags, rank, value, old)
        earlier = self._waiting.get(number)
        self._waiting[number] = flags if earlier is None else earlier | flags

    def _return(self, block: Code, outputs: list[Value]) -> None:
        if self._results is None:
            self._results = outputs
            return
        flags = self._chunk.active
        self._results = [
            merge(move, flags, rank, new, old)
            for (move, rank), new, old in zip(
                block.output_movers, outputs, self._results, strict=True
            )
        ]
