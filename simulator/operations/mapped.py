"""Scalar functions mapped over the elements of tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation, walk
from trivet.simulator.operations.registry import Handler, effect, unpacked
from trivet.simulator.routines import run_blocks
from trivet.simulator.values import Value


@effect("tt.map_elementwise")
def build_map(operation: Operation, compiler: Compiler) -> Handler:
    """A scalar function applied to every element, or to every ``pack`` neighbours at once."""
    blocks = compiler.region(operation.regions[0])
    pack = operation.attributes.get("pack", 1)
    assert isinstance(pack, int)

    def straight(chunk: Chunk, *operands: Value) -> Value:
        for slot, value in zip(blocks[0].arguments, operands, strict=True):
            chunk.values[slot] = value
        return unpacked(operation, blocks[0].run(chunk))

    decides = any(each.regions or each.name == "tt.call" for each in walk(operation.regions[0]))
    if len(blocks) == 1 and pack == 1 and not decides:
        return straight
    sources = [(compiler.mover(kind), kind.shape) for kind in operation.operand_types]
    targets = [(compiler.mover(kind), kind.shape) for kind in operation.result_types]
    calls = operation.operand_types[0].size // pack

    def columns(chunk: Chunk, operands: tuple[Value, ...]) -> list[Value]:
        """The arguments of each call: one array for each place in the pack."""
        found = []
        for (move, shape), value in zip(sources, operands, strict=True):
            part = _parts((chunk.count, *shape), pack)
            found += [move(partial(part, place), value) for place in range(pack)]
        return found

    def run(chunk: Chunk, *operands: Value) -> Value:
        inner = Chunk(chunk.launch, np.repeat(chunk.programs, calls))
        inner.active = None if chunk.active is None else np.repeat(chunk.active, calls)
        inner.values = chunk.values
        for slot, value in zip(blocks[0].arguments, columns(chunk, operands), strict=True):
            inner.values[slot] = value
        results = run_blocks(blocks, inner)
        tiles = []
        for number, (move, shape) in enumerate(targets):
            parts = results[number * pack : (number + 1) * pack]
            tiles.append(move(_interleaved(inner.count, shape), *parts))
        return unpacked(operation, tiles)

    return run


def _parts(shape: tuple[int, ...], pack: int) -> Callable[[int, np.ndarray], np.ndarray]:
    """Function of (place, array) that picks one place of every pack of a tile."""
    return lambda place, array: np.broadcast_to(array, shape).reshape(-1, pack)[:, place]


def _interleaved(count: int, shape: tuple[int, ...]) -> Callable[..., np.ndarray]:
    """Function that makes a tile of ``shape`` per program from the arrays of a pack."""

    def tile(*arrays: np.ndarray) -> np.ndarray:
        full = [np.broadcast_to(array, (count,)) for array in arrays]
        return np.stack(full, -1).reshape(-1, *shape)

    return tile
