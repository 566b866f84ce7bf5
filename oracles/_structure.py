"""Rules that move elements without computing: the same function on value and error."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trivet.oracles._bounded import (
    Bounded,
    Facts,
    context_of,
    lift,
    part_origin,
    rule,
    stacked,
    terms_of,
)
from trivet.oracles._discrete import STRUCTURE, Discrete, parts
from trivet.oracles._dispatch import Rule, Traced
from trivet.oracles._errors import Undecidable


def getitem(array: Any, key: Any) -> Any:
    """array[key], as a function."""
    return array[key]


def zeros_like(array: Any, **_: Any) -> Any:
    """Zeros of the shape of `array`."""
    return np.zeros_like(array)


# Functions of one array and plain settings.
ONE: dict[str, Rule] = {
    "getitem": getitem,
    "reshape": np.reshape,
    "transpose": np.transpose,
    "matrix_transpose": np.matrix_transpose,
    "swapaxes": np.swapaxes,
    "moveaxis": np.moveaxis,
    "rollaxis": np.rollaxis,
    "expand_dims": np.expand_dims,
    "squeeze": np.squeeze,
    "ravel": np.ravel,
    "broadcast_to": np.broadcast_to,
    "flip": np.flip,
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "rot90": np.rot90,
    "roll": np.roll,
    "repeat": np.repeat,
    "tile": np.tile,
    "take": np.take,
    "take_along_axis": np.take_along_axis,
    "diagonal": np.diagonal,
    "diag": np.diag,
    "tril": np.tril,
    "triu": np.triu,
    "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d,
    "delete": np.delete,
    "zeros_like": zeros_like,
    "empty_like": zeros_like,
}
# Functions of a sequence of arrays.
MANY: dict[str, Rule] = {
    "concatenate": np.concatenate,
    "stack": np.stack,
    "vstack": np.vstack,
    "hstack": np.hstack,
    "column_stack": np.column_stack,
}
SPLIT: dict[str, Rule] = {"split": np.split, "array_split": np.array_split, "unstack": np.unstack}
# A view keeps what is known of its elements; these make elements of their own.
_FRESH = ("zeros_like", "empty_like", "tril", "triu", "diag")


def _plain_key(key: Any) -> tuple[Any, Any]:
    """An index with every part plain, and where a part of it was in doubt (or None)."""
    if isinstance(key, tuple):
        pairs = [parts(part) for part in key]
        doubt: Any = np.False_
        for value, undecided in pairs:
            _refuse_masks(value, undecided)
            doubt = doubt | undecided
        return tuple(value for value, _ in pairs), doubt
    _refuse_masks(*parts(key))
    return parts(key)


def _refuse_masks(value: Any, doubt: Any) -> None:
    """A mask in doubt leaves even the number of chosen elements open."""
    if np.any(doubt) and np.asarray(value).dtype == np.bool_:
        raise Undecidable("an index mask of the oracle depends on rounding", "getitem")


def _doubt_in(doubt: Any, shape: tuple[int, ...]) -> Any:
    """Which elements of a result of `shape` an index in doubt has chosen."""
    doubt = np.asarray(doubt)
    if not doubt.any():
        return np.False_
    if shape[: doubt.ndim] == doubt.shape:
        return doubt.reshape(doubt.shape + (1,) * (len(shape) - doubt.ndim))
    return np.True_


def _one(name: str, function: Rule) -> None:
    """Register a rule for a function of one array."""

    def move(array: Any, *settings: Any, **options: Any) -> Any:
        doubt: Any = np.False_
        if name in ("getitem", "take", "take_along_axis") and settings:
            key, doubt = _plain_key(settings[0])
            settings = (key, *settings[1:])
        options.pop("dtype", None)
        if not isinstance(array, Bounded):
            value, mask = parts(array)
            moved = function(value, *settings, **options)
            undecided = function(np.broadcast_to(mask, np.shape(value)), *settings, **options)
            context = context_of(array, *_keys(settings, options, doubt))
            return Discrete(context, moved, undecided | _doubt_in(doubt, np.shape(moved)))
        value = function(array.value, *settings, **options)
        error = function(array.error, *settings, **options)
        if np.any(doubt):
            error = np.where(_doubt_in(doubt, np.shape(error)), np.inf, error)
        if name == "broadcast_to":
            value, error = value.copy(), error.copy()
        if name in _FRESH:
            return Bounded(array.context, value, error)
        moved = Bounded(array.context, value, error, array.facts)
        terms = terms_of(array)
        if terms is not None:
            moved.terms = terms.moved(lambda part: function(part, *settings, **options))
        if name == "getitem":
            moved.origin = part_origin(array, settings[0])
        return moved

    rule(name)(move)
    STRUCTURE[name] = move


def _keys(settings: Sequence[Any], options: dict[str, Any], doubt: Any) -> list[Any]:
    return [*settings, *options.values()]


def _many(name: str, function: Rule) -> None:
    """Register a rule for a function of several arrays."""

    def move(arrays: Any, *settings: Any, **options: Any) -> Any:
        context = context_of(*arrays)
        if not any(isinstance(array, Bounded) for array in arrays):
            pairs = [parts(array) for array in arrays]
            masks = [np.broadcast_to(mask, np.shape(value)) for value, mask in pairs]
            values = function([value for value, _ in pairs], *settings, **options)
            return Discrete(context, values, function(masks, *settings, **options))
        members = [lift(context, array) for array in arrays]
        facts = Facts(
            min(member.facts.floor for member in members),
            any(member.facts.rescaled for member in members),
        )
        return Bounded(
            context,
            function([member.value for member in members], *settings, **options),
            function([member.error for member in members], *settings, **options),
            facts,
        )

    rule(name)(move)
    STRUCTURE[name] = move


def _split(name: str, function: Rule) -> None:
    """Register a rule for a function that returns several arrays."""

    def move(array: Bounded, *settings: Any, **options: Any) -> Any:
        values = function(array.value, *settings, **options)
        errors = function(array.error, *settings, **options)
        pairs = zip(values, errors, strict=True)
        return [Bounded(array.context, value, error, array.facts) for value, error in pairs]

    rule(name)(move)


for _name, _function in ONE.items():
    _one(_name, _function)
for _name, _function in MANY.items():
    _many(_name, _function)
for _name, _function in SPLIT.items():
    _split(_name, _function)


@rule("broadcast_arrays")
def broadcast_arrays(*arrays: Any, **_: Any) -> Any:
    """All arrays in their common shape."""
    context = context_of(*arrays)
    members = [lift(context, array) for array in arrays]
    shape = np.broadcast_shapes(*(member.shape for member in members))
    return tuple(Bounded.rules["broadcast_to"](member, shape) for member in members)


@rule("pad")
def pad(array: Bounded, pad_width: Any, mode: str = "constant", **options: Any) -> Bounded:
    """numpy.pad; constant values are literals."""
    fill = options.pop("constant_values", 0.0)
    constants = lift(array.context, fill)
    if mode != "constant":
        value = np.pad(array.value, pad_width, mode, **options)  # type: ignore[call-overload]
        error = np.pad(array.error, pad_width, mode, **options)  # type: ignore[call-overload]
        return Bounded(array.context, value, error)
    value = np.pad(array.value, pad_width, constant_values=constants.value)
    error = np.pad(array.error, pad_width, constant_values=constants.error)
    return Bounded(array.context, value, error)


@rule("full_like")
def full_like(array: Any, fill_value: Any, **_: Any) -> Bounded:
    """`fill_value` in the shape of `array`."""
    filled: Bounded = Bounded.rules["broadcast_to"](lift(array.context, fill_value), array.shape)
    return filled


@rule("ones_like")
def ones_like(array: Any, **_: Any) -> Bounded:
    """Ones in the shape of `array`."""
    return full_like(array, 1.0)


@rule("array", "asarray", "ascontiguousarray", "asanyarray")
def asarray(array: Any, *_: Any, **__: Any) -> Any:
    """The array itself, lists stacked."""
    return array if isinstance(array, Traced) else stacked(context_of(array), array)


@rule("put")
def put(array: Any, key: Any, values: Any) -> Bounded:
    """A copy of `array` with `array[key] = values`."""
    context = context_of(array, values)
    result: Bounded = Bounded.rules["copy"](lift(context, array))
    result[key] = values
    return result


@rule("shape")
def shape(array: Any) -> tuple[int, ...]:
    """numpy.shape."""
    return tuple(array.shape)


@rule("ndim")
def ndim(array: Any) -> int:
    """numpy.ndim."""
    return len(array.shape)


@rule("size")
def size(array: Any, axis: int | None = None) -> int:
    """numpy.size."""
    return int(np.prod(array.shape, dtype=np.int64)) if axis is None else int(array.shape[axis])
