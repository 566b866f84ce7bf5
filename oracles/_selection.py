"""Rules of bounded numbers: extrema, order and rank.

Order statistics are 1-Lipschitz: those of value - error and value + error bound those of every
admissible execution. Indices are decided where no other choice is possible; equal exact values
follow NumPy's rule, the first index wins.
"""

from typing import Any

import numpy as np

from trivet.oracles._bounded import (
    Bounded,
    Facts,
    context_of,
    hull,
    interval,
    lift,
    rule,
)
from trivet.oracles._discrete import decided_or_not
from trivet.oracles._dispatch import Rule, apply
from trivet.oracles._formats import Array
from trivet.oracles._reductions import axes_of


def _extremum(name: str, function: Rule, combine: str) -> None:
    def call(
        number: Bounded,
        axis: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Bounded:
        if where is not None:
            number = apply("where", where, number, initial)
        axes = axes_of(len(number.shape), axis)
        if any(number.shape[index] == 0 for index in axes) and initial is not None:
            kept = [
                1 if i in axes else n
                for i, n in enumerate(number.shape)
                if i not in axes or keepdims
            ]
            return apply("broadcast_to", lift(number.context, initial), tuple(kept))  # type: ignore[no-any-return]
        low, high = interval(number)
        value = function(number.value, axis=axes, keepdims=keepdims)
        least = function(low, axis=axes, keepdims=keepdims)
        most = function(high, axis=axes, keepdims=keepdims)
        result = hull(number.context, value, least, most, Facts(number.facts.floor))
        return result if initial is None else apply(combine, result, initial)

    rule(name)(call)


_extremum("max", np.max, "maximum")
_extremum("min", np.min, "minimum")
_extremum("nanmax", np.fmax.reduce, "fmax")
_extremum("nanmin", np.fmin.reduce, "fmin")


def _running(name: str, function: Rule) -> None:
    def call(number: Bounded, axis: int = -1) -> Bounded:
        low, high = (function(end, axis=axis) for end in interval(number))
        value = function(number.value, axis=axis)
        return hull(number.context, value, low, high, Facts(number.facts.floor))

    rule(name)(call)


_running("cummax", np.maximum.accumulate)
_running("cummin", np.minimum.accumulate)


def _position(name: str, choose: Rule, sign: float) -> None:
    def call(number: Bounded, axis: int | None = None, keepdims: bool = False) -> Any:
        if axis is None:
            number, axis = apply("ravel", number), 0
        value = sign * number.value
        index = np.expand_dims(np.argmax(value, axis), axis)
        low, high = interval(number)
        low, high = (low, high) if sign > 0 else (-high, -low)
        best = np.take_along_axis(low, index, axis)
        others = np.arange(value.shape[axis]).reshape(
            [-1 if i == axis % value.ndim else 1 for i in range(value.ndim)]
        )
        rival = (high >= best) & (others != index)
        certain = (low == high) & (best == np.take_along_axis(high, index, axis))
        doubt = (rival & ~certain).any(axis, keepdims=True)
        if not keepdims:
            index, doubt = index.squeeze(axis), doubt.squeeze(axis)
        return decided_or_not(number.context, index, doubt)

    rule(name)(call)


_position("argmax", np.argmax, 1.0)
_position("argmin", np.argmin, -1.0)


@rule("sort")
def sort(number: Bounded, axis: int = -1, **_: Any) -> Bounded:
    """Ascending along `axis`."""
    low, high = (np.sort(end, axis=axis) for end in interval(number))
    return hull(
        number.context, np.sort(number.value, axis=axis), low, high, Facts(number.facts.floor)
    )


@rule("argsort")
def argsort(number: Bounded, axis: int = -1, **_: Any) -> Any:
    """Stable ascending order; a position is in doubt where its element could stand elsewhere."""
    order = np.argsort(number.value, axis=axis, kind="stable")
    low, high = (np.take_along_axis(end, order, axis) for end in interval(number))
    return decided_or_not(number.context, order, _movable(low, high, axis))


def _movable(low: Array, high: Array, axis: int) -> Any:
    """Which elements of a sorted sequence of intervals could change places."""
    low, high = np.moveaxis(low, axis, -1), np.moveaxis(high, axis, -1)
    if not low.shape[-1] or (low == high).all():
        return np.moveaxis(np.zeros(low.shape, bool), -1, axis)
    before = np.maximum.accumulate(high, -1)[..., :-1]
    after = np.minimum.accumulate(low[..., ::-1], -1)[..., ::-1][..., 1:]
    exact = (low == high)[..., :-1] & (low == high)[..., 1:] & (before == high[..., :-1])
    exact &= after == low[..., 1:]
    open_edge = ~((before < after) | ((before == after) & exact))
    doubt = np.zeros(low.shape, bool)
    doubt[..., :-1] |= open_edge
    doubt[..., 1:] |= open_edge
    return np.moveaxis(doubt, -1, axis)


@rule("topk")
def topk(number: Bounded, k: int, axis: int = -1, largest: bool = True) -> tuple[Bounded, Any]:
    """The k largest (or smallest) elements along `axis`, best first, and their indices."""
    (axis,) = axes_of(len(number.shape), axis)
    order = apply("argsort", apply("negative", number) if largest else number, axis)
    ordered = apply("sort", number, axis)
    ordered = apply("flip", ordered, axis) if largest else ordered
    head = (slice(None),) * axis + (slice(0, k),)
    return ordered[head], order[head]


@rule("quantile")
def quantile(
    number: Bounded, q: Any, axis: Any = None, keepdims: bool = False, **_: Any
) -> Bounded:
    """Linear interpolation between order statistics, at position q (n - 1)."""
    if axis is None:
        number, axis = apply("ravel", number), 0
    ordered = apply("moveaxis", apply("sort", number, axis), axis, 0)
    count = ordered.shape[0]
    position = np.asarray(q, np.float64) * (count - 1)
    below = np.clip(np.floor(position), 0, count - 1).astype(int)
    above = np.clip(below + 1, 0, count - 1)
    weight = lift(
        number.context, (position - below).reshape(position.shape + (1,) * (ordered.ndim - 1))
    )
    low, high = ordered[below], ordered[above]
    context = number.context
    # The position may be computed in float32, off by two roundings of its own size.
    weight.error = weight.error + 2 * context.unit * np.abs(position).reshape(weight.shape)
    exact = (weight.value == 0) & (np.asarray(q).reshape(weight.shape) == 0)
    weight.error = np.where(exact, 0.0, weight.error)
    result: Bounded = low + (high - low) * weight
    return apply("expand_dims", result, axis) if keepdims else result


@rule("median")
def median(number: Bounded, axis: Any = None, keepdims: bool = False) -> Bounded:
    """The middle order statistic, or the mean of the two middle ones."""
    if axis is None:
        number, axis = apply("ravel", number), 0
    ordered = apply("moveaxis", apply("sort", number, axis), axis, 0)
    count = ordered.shape[0]
    middle = ordered[count // 2]
    if count % 2 == 0:
        middle = (ordered[count // 2 - 1] + middle) * 0.5
    return apply("expand_dims", middle, axis) if keepdims else middle  # type: ignore[no-any-return]


@rule("searchsorted")
def searchsorted(table: Any, values: Any, side: str = "left", **_: Any) -> Any:
    """Insertion points; in doubt where the interval of a value or of the table spans two."""
    context = context_of(table, values)
    low, high = interval(lift(context, values))
    least, most = interval(lift(context, table))
    first = np.searchsorted(most, low, side)  # type: ignore[call-overload]
    last = np.searchsorted(least, high, side)  # type: ignore[call-overload]
    index = np.searchsorted(lift(context, table).value, lift(context, values).value, side)  # type: ignore[call-overload]
    return decided_or_not(context, index, first != last)


@rule("add_at", "scatter_add")
def scatter_add(target: Any, key: Any, values: Any) -> Any:
    """`target[key] += values` with repeated indices added in any order, in place; returns it."""
    context = context_of(target, values)
    if not isinstance(target, Bounded):
        target = lift(context, np.array(target, np.float64))
    added = lift(context, values)
    shape = target.value[key].shape
    terms = np.broadcast_to(added.value, shape), np.broadcast_to(added.error, shape)
    count = np.zeros(target.shape)
    magnitude, inherited = np.abs(target.value), target.error.copy()
    np.add.at(count, key, 1.0)
    np.add.at(target.value, key, terms[0])
    np.add.at(magnitude, key, np.abs(terms[0]))
    np.add.at(inherited, key, terms[1])
    own = context.own("scatter_add", context.gamma(count) * (magnitude + inherited))
    target.error[...] = np.where(count == 0, inherited, (inherited + own) * (1 + 2.0**-10))
    target.facts.floor = float("-inf")
    return target
