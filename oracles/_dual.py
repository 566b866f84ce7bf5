"""Dual numbers: a bounded value, its tangents, and a bound on every way to accumulate them.

A `Dual` carries K tangents t of a bounded array, the path-absolute tangents `reach` (the sum over
all paths of products of |partial derivative|) and `slip`, a bound on the rounding of the tangent.
Forward, reverse and mixed accumulation add up the same paths, so a bound that charges every path
with the roundings of its edges holds for a backward kernel in reverse mode too. Along an edge a
reverse accumulation multiplies once, with a partial that has an error of its own; where a number
is used n times it adds n contributions: up to n - 1 roundings, or the declared depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from trivet.oracles._bounded import SLACK, Bounded, lift
from trivet.oracles._context import Context
from trivet.oracles._discrete import parts
from trivet.oracles._dispatch import Function, Rule, Traced, apply
from trivet.oracles._formats import Array
from trivet.oracles._operators import Operators
from trivet.oracles._structure import MANY, ONE


@dataclass
class Tape:
    """What the dual numbers of one evaluation share.

    count: K. constant_extrema: maxima and minima pass on no tangent (for shifts that cancel).
    uses: for each dual number, in order of creation, how often each element is used; `known`
    holds the counts of an earlier run. lost: what underflow of adjoints may cost each tangent.
    """

    context: Context
    count: int
    constant_extrema: bool = False
    known: list[Array] | None = None
    uses: list[Array] = field(default_factory=list)
    lost: Array = field(default_factory=lambda: np.zeros(0))
    extrema: bool = False

    def __post_init__(self) -> None:
        self.lost = np.zeros(self.count)


# One product with the adjoint; a partial that is a quotient may be divided by instead.
STEPS = 2.0


class Dual(Operators):
    """`primal` (bounded) with `tangent`, `reach` and `slip`, float64 of shape (K, *shape)."""

    __slots__ = ("primal", "reach", "slip", "tangent", "tape", "uses")
    rules: ClassVar[dict[str, Rule]] = {}
    rank = 3

    def __init__(self, tape: Tape, primal: Bounded, tangent: Array, reach: Array, slip: Array):
        self.context = tape.context
        self.tape = tape
        self.primal = primal
        self.tangent, self.reach, self.slip = tangent, reach, slip
        self.uses: Array = np.zeros(primal.shape)
        if tape.known is not None:
            self._charge(tape.known[len(tape.uses)])
        tape.uses.append(self.uses)

    def _charge(self, uses: Array) -> None:
        """Add the roundings of summing the contributions of all uses."""
        depth = self.context.precision.depth
        steps = np.maximum(uses - 1, 0)
        steps = steps if depth is None else np.minimum(steps, depth)
        total = self.reach + self.slip
        own = np.where(steps > 0, total * self.context.gamma(steps), 0.0)
        self.slip = self.slip + own
        size = total.reshape(len(total), uses.size).sum(1)
        underflow = self.context.profile.underflow * np.where(np.isfinite(size), size, 0.0)
        self.tape.lost = self.tape.lost + underflow * max(float(uses.max(initial=1.0)), 1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes of the value."""
        return self.primal.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64: the dtype of the value."""
        return self.primal.dtype

    def __bool__(self) -> bool:
        return bool(self.primal)

    def __setitem__(self, key: Any, item: Any) -> None:
        part = dual(self.tape, item)
        key = plain_key(key)
        self.primal[key] = part.primal
        index = np.arange(self.size).reshape(self.shape)[key]
        part.uses += 1
        for mine, theirs in (
            (self.tangent, part.tangent),
            (self.reach, part.reach),
            (self.slip, part.slip),
        ):
            flat = mine.reshape(len(mine), self.size)
            flat[:, index] = broadcast(theirs, np.shape(index))

    def _single(self) -> Any:
        return self.primal._single()


def dual_rule(*names: str) -> Callable[[Function], Function]:
    """Register a function as the rule of dual numbers for each of `names`."""

    def register(function: Function) -> Function:
        for name in names:
            Dual.rules[name] = function
        return function

    return register


def dual(tape: Tape, operand: Any) -> Dual:
    """`operand` as a dual number; constants have no tangents."""
    if isinstance(operand, Dual):
        return operand
    if isinstance(operand, (list, tuple)) and any(isinstance(x, Traced) for x in operand):
        return _many(np.stack, tape, operand)
    primal = lift(tape.context, operand)
    zero = np.zeros((tape.count, *primal.shape))
    return Dual(tape, primal, zero, zero.copy(), zero.copy())


def tape_of(*operands: Any) -> Tape:
    """The tape of the first dual operand, sequences searched."""
    for operand in operands:
        if isinstance(operand, Dual):
            return operand.tape
        if isinstance(operand, (list, tuple)):
            try:
                return tape_of(*operand)
            except LookupError:
                continue
    raise LookupError("no dual operand")


def broadcast(array: Array, shape: tuple[int, ...]) -> Array:
    """Tangents (K, *small) as (K, *shape)."""
    lead = array.reshape(array.shape[0], *(1,) * (len(shape) - array.ndim + 1), *array.shape[1:])
    return np.broadcast_to(lead, (array.shape[0], *shape))


def markbroadcast(number: Dual, shape: tuple[int, ...]) -> None:
    """Count the uses of a number broadcast to `shape`."""
    if number.size:
        number.uses += math.prod(shape) / number.size


def times(partial: Bounded, number: Dual, shape: tuple[int, ...], steps: float) -> Any:
    """Tangent, reach and slip of partial * number, broadcast to `shape`, in `steps` roundings."""
    unit = number.context.unit
    tangent, reach, slip = (
        broadcast(x, shape) for x in (number.tangent, number.reach, number.slip)
    )
    size = np.abs(partial.value)
    dead = (reach == 0) & (slip == 0)
    moved = np.where(dead, 0.0, partial.value * tangent)
    moved_reach = np.where(dead, 0.0, size * reach)
    moved_slip = np.where(dead, 0.0, size * slip + partial.error * (reach + slip))
    moved_slip = np.where(np.isnan(moved_slip), np.inf, moved_slip)
    own = steps * unit * (moved_reach + moved_slip)
    return moved, moved_reach, (moved_slip + own) * SLACK


def lose(number: Dual, reached: Any) -> None:
    """Charge underflow within an edge whose partial is a product or quotient of several numbers.

    A factor that multiplies what has underflowed carries that on: `reached` bounds the factors
    still to come, added up over the roundings of the edge, in the form of `number`.
    """
    tape, tiny = number.tape, number.context.profile.underflow
    size = (number.reach + number.slip) * reached
    size = np.where(np.isfinite(size), size, 0.0)
    tape.lost = tape.lost + tiny * size.reshape(len(size), number.size).sum(1)


def combine(tape: Tape, primal: Any, edges: list[tuple[Dual, Bounded | None, float]]) -> Dual:
    """The number `primal` reached over `edges`: operand, partial (None is 1), roundings."""
    primal = lift(tape.context, primal)
    shape = primal.shape
    total = [np.zeros((tape.count, *shape)) for _ in range(3)]
    for number, partial, steps in edges:
        markbroadcast(number, shape)
        pieces = (
            [broadcast(x, shape) for x in (number.tangent, number.reach, number.slip)]
            if partial is None
            else times(partial, number, shape, steps)
        )
        total = [sum_ + piece for sum_, piece in zip(total, pieces, strict=True)]
    return Dual(tape, primal, *total)


def linear(
    tape: Tape, primal: Bounded, number: Dual, function: Rule, uses: Any, steps: float = 0.0
) -> Dual:
    """A linear function with coefficients that are not negative, of one number."""
    number.uses += uses
    tangent, reach, slip = (function(x) for x in (number.tangent, number.reach, number.slip))
    slip = slip + steps * tape.context.unit * (reach + slip)
    return Dual(tape, primal, tangent, reach, slip * SLACK if steps else slip)


def _gather(number: Dual, index: Any) -> list[Array]:
    """The components at flat positions `index` counted from 1; 0 stands for no element."""
    index = np.asarray(index)
    np.add.at(number.uses.reshape(-1), index[index > 0].ravel() - 1, 1.0)
    result = []
    for part in (number.tangent, number.reach, number.slip):
        flat = part.reshape(len(part), number.size)
        pool = np.concatenate([np.zeros((len(part), 1)), flat], axis=1)
        result.append(pool[:, index])
    return result


def _positions(number: Dual) -> Any:
    return np.arange(1, number.size + 1).reshape(number.shape)


def _one(name: str, function: Rule) -> None:
    """Register a rule for a function that moves elements of one array."""

    def move(number: Any, *settings: Any, **options: Any) -> Any:
        if not isinstance(number, Dual):
            return apply(name, number, *settings, **options)
        primal = apply(name, number.primal, *settings, **options)
        plain = [plain_key(x) for x in settings]
        index = function(_positions(number), *plain, **options)
        tangent, reach, slip = _gather(number, index)
        if np.isinf(primal.error).any() and not np.isinf(number.primal.error).any():
            slip = np.where(np.isinf(primal.error), np.inf, slip)  # an index in doubt
        return Dual(number.tape, primal, tangent, reach, slip)

    Dual.rules[name] = move


def plain_key(key: Any) -> Any:
    """An index with every part plain."""
    if isinstance(key, tuple):
        return tuple(plain_key(part) for part in key)
    return parts(key)[0]


def _many(function: Rule, tape: Tape, arrays: Any, **options: Any) -> Dual:
    """Move elements of several arrays into one."""
    members = [dual(tape, array) for array in arrays]
    primal_value = function([x.primal.value for x in members], **options)
    primal_error = function([x.primal.error for x in members], **options)
    primal = Bounded(tape.context, primal_value, primal_error)
    primal.facts.floor = min((x.primal.facts.floor for x in members), default=-math.inf)
    offset, positions = 0, []
    for member in members:
        positions.append(_positions(member) + offset)
        offset += member.size
    index = function(positions, **options)
    flat = [member.reshape(-1) for member in members]
    pools = [
        np.concatenate([getattr(x, part) for x in flat], axis=1)
        for part in ("tangent", "reach", "slip")
    ]
    return Dual(tape, primal, *(pool[:, index - 1] for pool in pools))


for _name, _function in ONE.items():
    _one(_name, _function)
for _name, _function in MANY.items():

    def _rule(arrays: Any, *settings: Any, _function: Rule = _function, **options: Any) -> Dual:
        if settings:
            options["axis"] = settings[0]
        return _many(_function, tape_of(*arrays), arrays, **options)

    Dual.rules[_name] = _rule
