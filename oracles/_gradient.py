"""Gradients of an oracle in forward mode, bounded for every order of accumulation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
    shapes = {name: np.shape(np.asarray(arguments[name])) for name in wrt}

    def run(count: int, seeds: Mapping[str, Array], constant: bool, known: Any) -> _Run:
        tape = Tape(context, count, constant, known)
        return _Run(tape, _run(oracle, arguments, tape, seeds))

    constant = _shifts_cancel(run, shapes)
    none = {name: np.zeros((0, *shape)) for name, shape in shapes.items()}
    uses = run(0, none, constant, None).tape.uses
    with np.errstate(all="ignore"):
        parts = [
            _contract(run(count, seeds, constant, uses), cotangents)
            for count, seeds in _batches(shapes, _directions(shapes, elements))
        ]
    value, error = (np.concatenate([np.zeros(0), *column]) for column in zip(*parts, strict=True))
    return _split(value, error, shapes, elements)


class _Run(NamedTuple):
    tape: Tape
    outputs: list[Any]


def _shifts_cancel(run: Callable[..., _Run], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether maxima and minima may be held constant, as shifts in stable formulas may.

    Then it does not matter which of several equal elements is the largest. Decided along one
    dense direction, output by output.
    """
    generator = np.random.default_rng(0)
    seeds = {name: generator.standard_normal((1, *shape)) for name, shape in shapes.items()}
    moving = run(1, seeds, False, None)
    if not moving.tape.extrema:
        return False
    fixed = run(1, seeds, True, None)
    for first, second in zip(moving.outputs, fixed.outputs, strict=True):
        if isinstance(first, Dual):
            apart = np.abs(first.tangent - second.tangent) > _SAME * first.reach
            if apart.any():
                return False
    return True


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


def _batches(
    shapes: Mapping[str, tuple[int, ...]], directions: Directions
) -> Iterator[tuple[int, dict[str, Array]]]:
    """Seed tangents for a few directions at a time, and their number."""
    size = max(sum(int(np.prod(shape)) for shape in shapes.values()), 1)
    batch = max(_BATCH // size, 1)
    for start in range(0, max(len(directions), 1), batch):
        chosen = directions[start : start + batch]
        seeds = {name: np.zeros((len(chosen), *shape)) for name, shape in shapes.items()}
        for row, (name, index) in enumerate(chosen):
            seeds[name].reshape(len(chosen), -1)[row, index] = 1.0
        yield len(chosen), seeds


def _contract(run: _Run, cotangents: Sequence[Any]) -> tuple[Array, Array]:
    """Sum over all outputs of cotangent times tangent, and its bound."""
    tape = run.tape
    value, error, reach = (np.zeros(tape.count) for _ in range(3))
    for output, cotangent in zip(run.outputs, cotangents, strict=True):
        if cotangent is None or not isinstance(output, Dual):
            continue
        g = np.broadcast_to(np.asarray(cotangent, np.float64), output.shape).reshape(-1)
        tangent, paths, slip = (
            part.reshape(tape.count, g.size) for part in (output.tangent, output.reach, output.slip)
        )
        live = ((paths != 0) | (slip != 0)) & (g != 0)
        value = value + np.where(live, tangent * g, 0.0).sum(1)
        reach = reach + np.where(live, paths * np.abs(g), 0.0).sum(1)
        error = error + np.where(live, slip * np.abs(g), 0.0).sum(1)
    context = tape.context
    error = error + tape.lost + context.unit * (reach + error)
    error = error + context.profile.underflow * (reach > 0)
    return value, np.where(np.isnan(error), np.inf, error * SLACK)


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
