"""Bounded numbers: a float64 value and a proven bound on every admissible float32 execution.

A `Bounded` array holds (value, error): each float32 execution x^ of the oracle's plan that the
contract admits has |x^ - value| <= error. `value` is the exact mathematics, computed in float64;
an error of infinity means undecidable. Where |value| + error passes the largest float32 number
the execution may also hold an infinity. A value that is NaN or infinite with error 0 is decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from trivet.oracles._context import Context
from trivet.oracles._discrete import Discrete
from trivet.oracles._dispatch import Rule, Traced
from trivet.oracles._errors import OracleError
from trivet.oracles._formats import Array, round_to
from trivet.oracles._operators import Operators

# Covers the rounding of one float64 difference.
_DIFFERENCE = 1 + 2.0**-50

Function = TypeVar("Function", bound=Rule)

# Covers the float64 rounding of value and error themselves: 2^-53 beside 2^-24, a few thousand
# operations deep.
SLACK = 1 + 2.0**-10


@dataclass(slots=True)
class Facts:
    """What is known of all elements of an array, shared by its views.

    floor: no admissible execution holds less. rescaled: exponential weights relative to a running
    maximum, which blocked forms multiply by exp(old maximum - new maximum) block after block.
    """

    floor: float = -math.inf
    rescaled: bool = False


class Origin(NamedTuple):
    """How an array was made, kept for the formulas that stand for every stable form of theirs."""

    kind: str
    operands: tuple[Bounded, ...]
    axes: tuple[int, ...] = ()
    key: Any = None


def part_origin(array: Bounded, key: Any) -> Origin | None:
    """The origin of `array[key]`, kept where running sums of a part may be taken of the whole."""
    if not array.context.allows("cumsum"):
        return None
    keys = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(each, slice) or each is Ellipsis for each in keys):
        return None
    return Origin("part", (array,), key=keys)


class Terms(NamedTuple):
    """What an explicit sum has added up, per element: a + b + c promises no order of its terms.

    magnitude: sum of the terms' sizes; inherited: sum of their errors; quantum: a power of two
    that divides them all (0 where none is known); number: how many they are.
    """

    magnitude: Array
    inherited: Array
    quantum: Array
    number: Array

    def moved(self, function: Callable[[Array], Any]) -> Terms:
        """The terms of the elements that `function` moves."""
        return Terms(*(np.asarray(function(part)) for part in self))


class Bounded(Operators):
    """`value` and `error`, float64 arrays of one shape; see the module for their meaning."""

    __slots__ = ("error", "facts", "origin", "terms", "value")
    rules: ClassVar[dict[str, Rule]] = {}
    rank = 2

    def __init__(
        self,
        context: Context,
        value: npt.ArrayLike,
        error: npt.ArrayLike,
        facts: Facts | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.context = context
        self.value: Array = np.asarray(value, np.float64)
        error = np.asarray(error, np.float64)
        if error.shape != self.value.shape:
            error = np.array(np.broadcast_to(error, self.value.shape))
        self.error: Array = error
        self.facts = facts or Facts()
        self.origin = origin
        self.terms: Terms | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64: the dtype of the value."""
        return self.value.dtype

    def __repr__(self) -> str:
        return f"Bounded({self.value!r}, error={self.error!r})"

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __setitem__(self, key: Any, item: Any) -> None:
        part = lift(self.context, item)
        known = terms_of(part)
        if known is not None or self.terms is not None:
            self.terms = self.terms or single_terms(self)
            for mine, new in zip(self.terms, known or single_terms(part), strict=True):
                mine[key] = new
        self.value[key] = part.value
        self.error[key] = part.error
        self.facts.floor = min(self.facts.floor, part.facts.floor)
        self.facts.rescaled |= part.facts.rescaled

    def _single(self) -> Any:
        if np.any(self.error):
            raise OracleError("a traced number with a bound cannot become a Python number", "float")
        return self.value


def rule(*names: str) -> Callable[[Function], Function]:
    """Register a function as the rule of bounded arrays for each of `names`."""

    def register(function: Function) -> Function:
        for name in names:
            Bounded.rules[name] = function
        return function

    return register


def context_of(*operands: Any) -> Context:
    """The context of the first traced operand, sequences searched."""
    for operand in operands:
        if isinstance(operand, Traced):
            return operand.context
        if isinstance(operand, (list, tuple)) and any(isinstance(x, Traced) for x in operand):
            return context_of(*operand)
    raise OracleError("no traced operand")


def lift(context: Context, operand: Any) -> Bounded:
    """`operand` as a bounded array; a literal is rounded to float32 by whoever uses it."""
    if isinstance(operand, Bounded):
        return operand
    if isinstance(operand, Discrete):
        spread = 1.0 if operand.dtype == np.bool_ else math.inf
        return Bounded(context, operand.value, np.where(operand.undecided, spread, 0.0))
    if isinstance(operand, (list, tuple)) and any(isinstance(x, Traced) for x in operand):
        return stacked(context, operand)
    value = np.asarray(operand, np.float64)
    floor = float(value) if value.ndim == 0 and value == value else -math.inf
    error = np.where(representable(context, value), 0.0, context.unit * np.abs(value) * SLACK)
    return Bounded(context, value, error, Facts(floor - abs(floor) * context.unit * SLACK))


def single_terms(number: Bounded) -> Terms:
    """A number as the sum of itself alone."""
    error = spread(number)
    quantum = np.zeros(number.shape) if error.all() else quantum_of(number.value)
    return Terms(np.abs(number.value), np.array(error), quantum, np.ones(number.shape))


def terms_of(number: Bounded) -> Terms | None:
    """The terms of a number that is an explicit sum, None for any other."""
    if number.terms is None and number.origin is not None and number.origin.kind == "add":
        number.terms = joined_terms(*number.origin.operands)
    return number.terms


def joined_terms(first: Bounded, second: Bounded) -> Terms:
    """The terms of first + second."""
    one, two = (terms_of(number) or single_terms(number) for number in (first, second))
    shape = np.broadcast_shapes(first.shape, second.shape)
    magnitude, inherited, count = (
        np.array(np.broadcast_to(a + b, shape))
        for a, b in ((one[0], two[0]), (one[1], two[1]), (one[3], two[3]))
    )
    quantum = np.array(np.broadcast_to(np.minimum(one.quantum, two.quantum), shape))
    return Terms(magnitude, inherited, quantum, count)


def quantum_of(value: Array) -> Array:
    """The largest power of two that divides each number, infinity for 0."""
    fraction, exponent = np.frexp(value)
    whole = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(np.float64), np.maximum(exponent - 53, -1074))
    return np.where(value == 0, np.inf, lowest)


def stacked(context: Context, sequence: Any) -> Bounded:
    """A nested list of traced and plain numbers as one array."""
    members = [lift(context, member) for member in sequence]
    return Bounded(
        context,
        np.stack([member.value for member in members]),
        np.stack([member.error for member in members]),
        Facts(min(member.facts.floor for member in members)),
    )


def representable(context: Context, value: Array) -> Any:
    """Where `value` is a number of the computing format, or not finite."""
    if context.compute.name != "float32":
        return (round_to(value, context.compute) == value) | np.isnan(value)
    return (value.astype(np.float32) == value) | np.isnan(value)


def _most(array: Array) -> float:
    """The largest magnitude, NaN if there is one; a quick test before a careful one."""
    return max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))


def all_finite(array: Any) -> bool:
    """Whether every element is finite; may say no for finite ones that add up to infinity."""
    return math.isfinite(np.sum(array))


def spread(number: Bounded) -> Array:
    """The error of an operand: infinite where the execution may have overflowed."""
    if _most(number.value) + _most(number.error) <= number.context.compute.largest:
        return number.error
    reach = np.abs(number.value) + number.error
    over = (reach > number.context.compute.largest) & np.isfinite(number.value)
    return np.where(over, np.inf, number.error) if over.any() else number.error


def interval(number: Bounded) -> tuple[Array, Array]:
    """Least and greatest value an admissible execution may hold."""
    error = spread(number)
    low, high = number.value - error, number.value + error
    if number.facts.floor > -math.inf:
        # What is undecidable may be NaN: no floor holds it.
        low = np.where(np.isinf(number.error), low, np.maximum(low, number.facts.floor))
    if not all_finite(number.value):
        nonfinite = ~np.isfinite(number.value) & (error == 0)
        unknown = np.isinf(number.error)
        low = np.where(nonfinite, number.value, np.where(unknown, -np.inf, low))
        high = np.where(nonfinite, number.value, np.where(unknown, np.inf, high))
    return low, high


def hull(context: Context, value: Any, low: Any, high: Any, facts: Facts | None = None) -> Bounded:
    """The result of an exact operation known to lie between `low` and `high`."""
    value = np.asarray(value, np.float64)
    error = np.maximum(high - value, value - low) * _DIFFERENCE
    odd = np.isnan(error)
    if odd.any():
        same = (low == high) | (np.isnan(value) & ~np.isinf(low) & ~np.isinf(high))
        error = np.where(odd, np.where(same, 0.0, np.inf), error)
    return Bounded(context, value, error, facts)


def doubtful(*errors: Any) -> Any:
    """Where any operand is undecidable, broadcast together."""
    mask: Any = np.False_
    for error in errors:
        if not all_finite(error):
            mask = mask | np.isinf(error)
    return mask


def settle(value: Any, error: Any, doubt: Any) -> Any:
    """`error` where it is a number; else 0 for a decided NaN or infinity, infinity in doubt."""
    if all_finite(value) and all_finite(error):
        return error
    odd = ~np.isfinite(value) | np.isnan(error)
    return np.where(odd, np.where(doubt, np.inf, 0.0), error)


def finish(
    context: Context,
    operation: str,
    value: Any,
    propagated: Any,
    relative: Any,
    *,
    doubt: Any,
    exact: Any = None,
    facts: Facts | None = None,
    origin: Origin | None = None,
) -> Bounded:
    """A result: error handed on by the operands, and the operation's own rounding.

    `relative` bounds the own rounding relative to the result; `exact` marks results that need
    none; `doubt` marks undecidable operands.
    """
    value = np.asarray(value, np.float64)
    reach = np.abs(value) + propagated
    own = relative * reach
    edge = 4 * context.compute.normal
    if not reach.min(initial=edge) >= edge:
        own = own + (reach < edge) * context.profile.underflow
    if exact is not None:
        own = np.where(exact, 0.0, own)
    error = settle(value, (propagated + context.own(operation, own)) * SLACK, doubt)
    if np.any(doubt):
        error = np.where(doubt, np.inf, error)
    return Bounded(context, value, error, facts, origin)
