"""Integers that wrapped in 32 bits, carried together with the values they were meant to have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from trivet.simulator.ir import Operation

_EXACT_UFUNCS = frozenset(
    {
        np.add,
        np.subtract,
        np.multiply,
        np.negative,
        np.minimum,
        np.maximum,
        np.fmod,
        np.floor_divide,
    }
)
_MOVING = frozenset(
    {
        np.where,
        np.broadcast_to,
        np.concatenate,
        np.stack,
        np.take_along_axis,
        np.repeat,
        np.moveaxis,
        np.swapaxes,
    }
)


class Wide(np.ndarray):
    """An int32 array of which some elements wrapped, or the places that came of it.

    ``exact`` has what each element would be without a limit, ``origin`` the operation that
    wrapped first. Sums, products and everything that moves elements keep both; whatever asks for
    bits, an order or a float gets the plain array, so that a hash is no concern.
    """

    exact: np.ndarray | None
    origin: Operation | None

    def __new__(cls, plain: np.ndarray, exact: np.ndarray, origin: Operation) -> Self:
        """Return a view of ``plain`` that knows ``exact``."""
        made = np.asarray(plain).view(cls)
        made.exact, made.origin = np.broadcast_to(exact, plain.shape), origin
        return made

    def __array_finalize__(self, obj: object) -> None:
        """Know nothing until told: the result of an operation that is not followed."""
        self.exact, self.origin = None, None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply ``ufunc`` to the plain values and, where it may be followed, to the exact ones."""
        options = {name: _plain_all(value) for name, value in options.items()}
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        if method != "__call__" or ufunc not in _EXACT_UFUNCS or "out" in options:
            return result
        return _with_exact(result, ufunc(*map(_exact, inputs)), inputs)

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, options: Mapping[str, Any]
    ) -> Any:
        """Move exact values as the plain ones."""
        result = function(*_plain_all(arguments), **_plain_all(options))
        if function not in _MOVING:
            return result
        exact = function(*_exact_all(arguments), **_exact_all(options))
        return _with_exact(result, exact, _leaves(arguments))

    def __getitem__(self, key: Any) -> Any:
        """Elements, with their exact values."""
        return self._moved(lambda array: array[_plain_all(key)])

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """The same elements in another shape."""
        return self._moved(lambda array: array.reshape(*shape, **options))

    def transpose(self, *axes: Any) -> Any:
        """The same elements along other axes."""
        return self._moved(lambda array: array.transpose(*axes))

    def astype(self, dtype: Any, *arguments: Any, **options: Any) -> Any:
        """Wider integers keep their exact values; anything else is plain."""
        plain = _plain(self).astype(dtype, *arguments, **options)
        return _with_exact(plain, self.exact, [self]) if np.dtype(dtype) == np.int64 else plain

    def _moved(self, function: Callable[[np.ndarray], Any]) -> Any:
        plain = function(_plain(self))
        return plain if self.exact is None else _with_exact(plain, function(self.exact), [self])


def _with_exact(plain: Any, exact: Any, sources: Any) -> Any:
    origins = [each.origin for each in sources if isinstance(each, Wide) and each.origin]
    if not origins or exact is None or not isinstance(plain, np.ndarray):
        return plain
    return plain if np.array_equal(plain, exact) else Wide(plain, exact, origins[0])


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Wide) else value


def _exact(value: Any) -> Any:
    if isinstance(value, Wide) and value.exact is not None:
        return value.exact
    value = _plain(value)
    integers = isinstance(value, np.ndarray) and value.dtype.kind == "i"
    return value.astype(np.int64) if integers else value


def _plain_all(value: Any) -> Any:
    return _mapped(_plain, value)


def _exact_all(value: Any) -> Any:
    return _mapped(_exact, value)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_mapped(function, each) for each in value)
    if isinstance(value, dict):
        return {key: _mapped(function, each) for key, each in value.items()}
    return function(value)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


def watched(
    function: Callable[[Any, Any], Any], operation: Operation
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """``function`` of two int32 arrays, Wide where an element of the result wrapped."""

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result: np.ndarray = function(a, b)
        if isinstance(result, Wide) or isinstance(a, Wide) or isinstance(b, Wide):
            return result
        if a.size == 0 or b.size == 0 or _fits(function, a, b):
            return result
        exact = function(a.astype(np.int64), b.astype(np.int64))
        return result if np.array_equal(exact, result) else Wide(result, exact, operation)

    return run


def _fits(function: Callable[[Any, Any], Any], a: np.ndarray, b: np.ndarray) -> bool:
    """Whether no pair of elements can wrap, by the extremes of both."""
    ends = [(np.int64(each.min()), np.int64(each.max())) for each in (a, b)]
    corners = [int(function(x, y)) for x in ends[0] for y in ends[1]]
    return min(corners) >= -(2**31) and max(corners) < 2**31
