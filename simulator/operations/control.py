"""Structured control flow: loops and conditionals under active masks, calls."""

from __future__ import annotations

import numpy as np

from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Code, Compiler
from trivet.simulator.ir import Operation, Type
from trivet.simulator.operations.registry import Handler, effect, unpacked
from trivet.simulator.routines import call
from trivet.simulator.values import UNSIGNED, Mover, Value, merge


class _Merger:
    """Merges lists of values of known types for a subset of the programs."""

    def __init__(self, kinds: list[Type], compiler: Compiler) -> None:
        self._parts: list[tuple[Mover, int]] = [
            (compiler.mover(kind), len(kind.shape)) for kind in kinds
        ]

    def __call__(self, flags: np.ndarray | None, new: list[Value], old: list[Value]) -> list[Value]:
        if flags is None:
            return new
        return [
            merge(move, flags, rank, one, other)
            for (move, rank), one, other in zip(self._parts, new, old, strict=True)
        ]


def _enter(chunk: Chunk, code: Code, values: list[Value]) -> list[Value]:
    slots = chunk.values
    for slot, value in zip(code.arguments, values, strict=True):
        slots[slot] = value
    return code.run(chunk)


def _both(outer: np.ndarray | None, inner: np.ndarray) -> np.ndarray:
    return inner if outer is None else outer & inner


@effect("scf.for")
def build_for(operation: Operation, compiler: Compiler) -> Handler:
    """Counted loop: one Python loop where all programs agree on the bounds, else masked."""
    body = compiler.region(operation.regions[0])[0]
    merger = _Merger(operation.result_types, compiler)
    unsigned = "unsigned" in operation.words

    def uniform(chunk: Chunk, bounds: range, dtype: np.dtype, carried: list[Value]) -> list[Value]:
        for counter in bounds:
            carried = _enter(chunk, body, [np.array([counter], dtype), *carried])
        return carried

    def ragged(
        chunk: Chunk, counter: np.ndarray, upper: np.ndarray, step: np.ndarray, carried: list[Value]
    ) -> list[Value]:
        outer = chunk.active
        while True:
            live = _both(outer, np.broadcast_to(_below(counter, upper, unsigned), (chunk.count,)))
            if not live.any():
                break
            chunk.active = None if live.all() else live
            results = _enter(chunk, body, [counter, *carried])
            carried = merger(chunk.active, results, carried)
            counter = counter + step
        chunk.active = outer
        return carried

    def run(
        chunk: Chunk, lower: np.ndarray, upper: np.ndarray, step: np.ndarray, *carried: Value
    ) -> Value:
        first, last, stride = (chunk.uniform(bound) for bound in (lower, upper, step))
        if first is None or last is None or stride is None:
            return unpacked(operation, ragged(chunk, lower, upper, step, list(carried)))
        if unsigned:
            modulus = 1 << (8 * lower.itemsize)
            first, last, stride = first % modulus, last % modulus, stride % modulus
        bounds = range(first, last, stride) if stride else range(0)
        return unpacked(operation, uniform(chunk, bounds, lower.dtype, list(carried)))

    return run


def _below(counter: np.ndarray, upper: np.ndarray, unsigned: bool) -> np.ndarray:
    if unsigned:
        kind = UNSIGNED[counter.dtype]
        counter, upper = counter.view(kind), upper.view(kind)
    below: np.ndarray = counter < upper
    return below


@effect("scf.if")
def build_if(operation: Operation, compiler: Compiler) -> Handler:
    """Conditional: only the branches somebody takes run, each under its programs' mask."""
    regions = [compiler.region(region)[0] for region in operation.regions]
    then, otherwise = regions[0], regions[1] if len(regions) > 1 else None
    merger = _Merger(operation.result_types, compiler)

    def run(chunk: Chunk, condition: np.ndarray) -> Value:
        outer = chunk.active
        decided = chunk.uniform(condition)
        if decided is not None:
            branch = then if decided else otherwise
            return unpacked(operation, branch.run(chunk) if branch else [])
        chunk.active = taken = _both(outer, condition)
        first = then.run(chunk)
        chunk.active = _both(outer, ~condition)
        second = otherwise.run(chunk) if otherwise else []
        chunk.active = outer
        return unpacked(operation, merger(taken, first, second))

    return run


@effect("scf.while")
def build_while(operation: Operation, compiler: Compiler) -> Handler:
    """Loop with a data-dependent end; a program that has left keeps its values."""
    before = compiler.region(operation.regions[0])[0]
    after = compiler.region(operation.regions[1])[0]
    left = _Merger(operation.result_types, compiler)
    carry = _Merger(operation.operand_types, compiler)

    def run(chunk: Chunk, *carried: Value) -> Value:
        outer = active = chunk.active
        current = list(carried)
        results: list[Value] | None = None
        scheduler, loop = chunk.launch.scheduler, object()
        while True:
            chunk.active = active
            if scheduler is not None:
                scheduler.pause(loop, current)
            condition, *forwarded = _enter(chunk, before, current)
            results = forwarded if results is None else left(active, forwarded, results)
            decided = chunk.uniform(condition)
            if decided is None:
                active = _both(active, condition)
            elif not decided:
                break
            chunk.active = active
            current = carry(active, _enter(chunk, after, forwarded), current)
        chunk.active = outer
        return unpacked(operation, results)

    return run


@effect("tt.call")
def build_call(operation: Operation, compiler: Compiler) -> Handler:
    """Call of a device function that was not inlined."""
    routine = compiler.routine(operation.words[0])

    def run(chunk: Chunk, *operands: Value) -> Value:
        return unpacked(operation, call(routine, chunk, list(operands)))

    return run
