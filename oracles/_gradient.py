"""Gradients of an oracle in forward mode, bounded for every order of accumulation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trivet.oracles import _dual_reductions as _dual_reductions
from trivet.oracles._bounded import SLACK, Bounded
from trivet.oracles._context import Context
from trivet.oracles._dual import Dual, Tape, dual
from trivet.oracles._evaluate import Argument, Oracle, Value, call_traced, outputs_of, trace
from trivet.oracles._formats import Array
from trivet.oracles._namespace import Namespace
from trivet.oracles._precision import Precision
from trivet.oracles._profile import profile_named

# Components of all tangents of one batch: 8 MB a component for the arguments.
_BATCH = 2**20
# Two accumulations of one gradient in float64 agree to this part of the path-absolute sum.
_SAME = 2.0**-36


def gradient(
    oracle: Oracle,
    arguments: Mapping[str, Argument],
    wrt: Sequence[str],
    cotangents: Sequence[npt.NDArray[Any] | None],
    *,
    precision: Precision | None = None,
    profile: str = "simulator",
    elements: Mapping[str, npt.NDArray[np.int64]] | None = None,
) -> list[Value]:
    """Gradients of sum(cotangent * output) to each argument of `wrt`, with bounds.

    `cotangents` holds one array, or None, for each output. Values have the argument's shape; with
    `elements` (flat indices by argument) only those are computed, in the shape of the indices.
    The bound covers forward, reverse and mixed accumulation; it is infinite at kinks. Raises
    OracleError for an operation without a derivative rule.
    """
    context = Context(profile_named(profile), precision or Precision())

    def run(tape: Tape, seeds: Mapping[str, Array]) -> list[Any]:
        return _run(oracle, arguments, tape, seeds)

    blank = Tape(context, 0)
    shapes = {name: np.shape(np.asarray(arguments[name])) for name in wrt}
    run(blank, {name: np.zeros((0, *shape)) for name, shape in shapes.items()})
    directions = _directions(shapes, elements)
    parts = []
    size = max(sum(int(np.prod(shape)) for shape in shapes.values()), 1)
    batch = max(_BATCH // size, 1)
    for start in range(0, len(directions), batch):
        chosen = directions[start : start + batch]
        parts.append(_batch(run, blank, context, shapes, chosen, cotangents))
    value = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0)
    error = np.concatenate([part[1] for part in parts]) if parts else np.zeros(0)
    return _split(value, error, shapes, elements)


def _run(
    oracle: Oracle, arguments: Mapping[str, Argument], tape: Tape, seeds: Mapping[str, Array]
) -> list[Any]:
    """The outputs of `oracle` with `seeds` as the tangents of its arguments."""
    traced = {}
    for name, argument in arguments.items():
        value = trace(tape.context, argument)
        if name in seeds and isinstance(value, Bounded):
            seed = seeds[name]
            value = Dual(tape, value, seed, np.abs(seed), np.zeros(seed.shape))
        traced[name] = value
    namespace = Namespace(tape.context, lambda value: dual(tape, value))
    return outputs_of(call_traced(oracle, traced, namespace))


Directions = list[tuple[str, int]]


def _directions(
    shapes: Mapping[str, tuple[int, ...]], elements: Mapping[str, npt.NDArray[np.int64]] | None
) -> Directions:
    result: Directions = []
    for name, shape in shapes.items():
        flat = range(int(np.prod(shape))) if elements is None else np.ravel(elements[name])
        result += [(name, int(index)) for index in flat]
    return result


def _batch(
    run: Callable[[Tape, Mapping[str, Array]], list[Any]],
    blank: Tape,
    context: Context,
    shapes: Mapping[str, tuple[int, ...]],
    chosen: Directions,
    cotangents: Sequence[Any],
) -> tuple[Array, Array]:
    """Gradient and bound along basis directions.

    Shifts by a maximum cancel in stable formulas: where the gradient is the same with the maximum
    held constant, which of several equal elements is the maximum does not matter.
    """
    seeds = {name: np.zeros((len(chosen), *shape)) for name, shape in shapes.items()}
    for row, (name, index) in enumerate(chosen):
        seeds[name][row].reshape(-1)[index] = 1.0

    def once(constant: bool) -> tuple[Array, Array, Array]:
        tape = Tape(context, len(chosen), constant, list(blank.uses) if not constant else None)
        if constant:
            counting = Tape(context, 0, True)
            run(counting, {name: np.zeros((0, *shape)) for name, shape in shapes.items()})
            tape.known = counting.uses
        return _contract(tape, run(tape, seeds), cotangents)

    value, error, reach = once(False)
    if not blank.extrema:
        return value, error
    shifted, bound, _ = once(True)
    same = np.abs(value - shifted) <= _SAME * reach
    return np.where(same, shifted, value), np.where(same, bound, error)


def _contract(
    tape: Tape, outputs: list[Any], cotangents: Sequence[Any]
) -> tuple[Array, Array, Array]:
    """Sum over all outputs of cotangent times tangent; its bound; the sum of all paths."""
    value, error, reach = (np.zeros(tape.count) for _ in range(3))
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if cotangent is None or not isinstance(output, Dual):
            continue
        g = np.broadcast_to(np.asarray(cotangent, np.float64), output.shape).reshape(-1)
        tangent, paths, slip = (
            part.reshape(tape.count, g.size) for part in (output.tangent, output.reach, output.slip)
        )
        live = (paths > 0) & (g != 0)
        value = value + np.where(live, tangent * g, 0.0).sum(1)
        size = np.where(live, paths * np.abs(g), 0.0).sum(1)
        reach = reach + size
        error = error + np.where(live, slip * np.abs(g), 0.0).sum(1)
    tape_error = error + tape.lost + tape.context.unit * (reach + error)
    tape_error = tape_error + tape.context.profile.underflow * (reach > 0)
    return value, np.where(np.isnan(tape_error), np.inf, tape_error * SLACK), reach


def _split(
    value: Array,
    error: Array,
    shapes: Mapping[str, tuple[int, ...]],
    elements: Mapping[str, npt.NDArray[np.int64]] | None,
) -> list[Value]:
    result, start = [], 0
    for name, shape in shapes.items():
        form = shape if elements is None else np.shape(elements[name])
        stop = start + int(np.prod(form))
        pieces = [x[start:stop].reshape(form) for x in (value, error)]
        result.append(Value(pieces[0], pieces[1], lambda index: "all paths to the argument"))
        start = stop
    return result
