"""The math namespace `m` that an oracle is written against: NumPy's conventions."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from trivet.oracles._bounded import Bounded
from trivet.oracles._context import Context
from trivet.oracles._dispatch import COMPOSITES, PLAIN, apply
from trivet.oracles._errors import OracleError
from trivet.oracles._philox import uniform


class Namespace:
    """`m.exp(x)`, `m.sum(x, axis=-1, keepdims=True)` and so on, in any number system.

    Array functions follow NumPy. Beyond NumPy: sigmoid, softplus, silu, gelu, relu, rsqrt, erf,
    softmax, log_softmax, logsumexp, linear_scan(a, b, initial, axis), topk(x, k, axis),
    lerp(start, end, weight), cast(x, dtype), store(x, name), put(x, key, values),
    scatter_add(x, key, values) and rand(seed, offset). Raises OracleError for a name without a
    rule.
    """

    pi = math.pi
    e = math.e
    inf = math.inf
    nan = math.nan
    newaxis = None
    float32, float64, float16, bfloat16 = "float32", "float64", "float16", "bfloat16"
    int8, int32, int64, bool_ = "int8", "int32", "int64", "bool"

    def __init__(
        self, context: Context | None = None, wrap: Callable[[Any], Any] | None = None
    ) -> None:
        self._context = context
        self._wrap = wrap

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in PLAIN and name not in COMPOSITES and name not in Bounded.rules:
            raise OracleError(f"the math namespace has no {name}", name)
        return partial(apply, name)

    def _array(self, value: Any, dtype: Any) -> Any:
        whole = dtype is not None and not str(np.dtype(dtype)).startswith("float")
        if whole or self._context is None:
            return value
        return self._traced(Bounded(self._context, value, np.zeros(value.shape)))

    def _traced(self, array: Bounded) -> Any:
        return array if self._wrap is None else self._wrap(array)

    def zeros(self, shape: Any, dtype: Any = None) -> Any:
        """An array of zeros that traced numbers can be stored in."""
        return self._array(np.zeros(shape, _storage(dtype)), dtype)

    def ones(self, shape: Any, dtype: Any = None) -> Any:
        """An array of ones that traced numbers can be stored in."""
        return self._array(np.ones(shape, _storage(dtype)), dtype)

    def full(self, shape: Any, fill_value: Any, dtype: Any = None) -> Any:
        """An array of `fill_value`."""
        if isinstance(fill_value, (bool, int)) and dtype is None:
            return np.full(shape, fill_value)
        return apply("broadcast_to", self._array(np.asarray(fill_value), dtype), shape)

    def arange(self, *bounds: Any, dtype: Any = None) -> Any:
        """Whole numbers of a range, plain."""
        return np.arange(*bounds, dtype=_storage(dtype) if dtype is not None else None)

    def store(self, x: Any, name: str) -> Any:
        """`x`, rounded to the storage format the contract's precision declares for `name`."""
        storage = self._context.precision.storage if self._context is not None else {}
        return apply("cast", x, storage[name]) if name in storage else x

    def rand(self, seed: int, offset: Any) -> Any:
        """Triton's tl.rand(seed, offset): uniform in [0, 1)."""
        exact, rounded = uniform(seed, offset)
        if self._context is None:
            return exact
        return self._traced(Bounded(self._context, exact, np.abs(rounded - exact)))


def _storage(dtype: Any) -> Any:
    return np.float64 if dtype is None or "float" in str(dtype) else np.dtype(dtype)
