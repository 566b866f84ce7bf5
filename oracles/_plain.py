"""The operations on plain arrays: NumPy itself, and float64 forms of what NumPy lacks."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from trivet.oracles import _special
from trivet.oracles._dispatch import PLAIN, Rule
from trivet.oracles._formats import Array
from trivet.oracles._structure import MANY, ONE, SPLIT

Function = TypeVar("Function", bound=Rule)

_NUMPY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "power",
    "negative",
    "positive",
    "abs",
    "invert",
    "sign",
    "square",
    "reciprocal",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "cbrt",
    "tanh",
    "sinh",
    "sin",
    "cos",
    "arctan",
    "arcsinh",
    "arcsin",
    "arccos",
    "arctanh",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "round",
    "isnan",
    "isfinite",
    "isinf",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "clip",
    "where",
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "any",
    "all",
    "argmax",
    "argmin",
    "sort",
    "argsort",
    "cumsum",
    "cumprod",
    "quantile",
    "median",
    "searchsorted",
    "matmul",
    "dot",
    "einsum",
    "pad",
    "full_like",
    "ones_like",
    "asarray",
    "array",
    "copy",
    "broadcast_arrays",
    "shape",
    "ndim",
    "size",
    "count_nonzero",
    "nanmax",
    "nanmin",
    "var",
    "std",
    "unique",
    "outer",
    "inner",
    "tensordot",
    "vdot",
    "hypot",
    "logaddexp",
    "copysign",
    "nan_to_num",
    "bincount",
    "meshgrid",
    "arange",
    "linspace",
    "eye",
    "tri",
    "triu_indices",
    "tril_indices",
    "nonzero",
    "flatnonzero",
]

for _name in _NUMPY:
    PLAIN[_name] = getattr(np, _name)
PLAIN.update(ONE)
PLAIN.update(MANY)
PLAIN.update(SPLIT)
for _name in ("erf", "sigmoid", "softplus", "rsqrt"):
    PLAIN[_name] = getattr(_special, _name)
PLAIN["cummax"] = np.maximum.accumulate
PLAIN["cummin"] = np.minimum.accumulate
PLAIN["linalg_norm"] = np.linalg.norm


def plain(name: str) -> Callable[[Function], Function]:
    """Register a function as the operation `name` on plain arrays."""

    def register(function: Function) -> Function:
        PLAIN[name] = function
        return function

    return register


@plain("astype")
@plain("cast")
def cast(array: Any, dtype: Any, **_: Any) -> Any:
    """Integers and bools convert; floats stay float64, for the value is exact mathematics."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name.startswith(("int", "uint", "bool")):
        with np.errstate(invalid="ignore"):
            return np.asarray(array).astype(name)
    return np.asarray(array, np.float64)


@plain("logsumexp")
def log_sum_exp(array: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) relative to the maximum."""
    peak = np.max(array, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(peak), peak, 0.0)
    result = shift + np.log(np.sum(np.exp(array - shift), axis=axis, keepdims=True))
    if keepdims:
        return result
    return np.squeeze(result, axis) if axis is not None else result.reshape(())[()]


@plain("linear_scan")
def linear_scan(a: Any, b: Any, initial: Any = None, axis: int = -1) -> Array:
    """h_t = a_t h_(t-1) + b_t along `axis`."""
    a, b = np.broadcast_arrays(a, b)
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    state = np.broadcast_to(0.0 if initial is None else initial, b.shape[1:])
    result = np.empty(b.shape, np.result_type(a, b, np.float64))
    for step in range(b.shape[0]):
        state = result[step] = a[step] * state + b[step]
    return np.moveaxis(result, 0, axis)


@plain("topk")
def topk(array: Any, k: int, axis: int = -1, largest: bool = True) -> tuple[Any, Any]:
    """The k largest (or smallest) along `axis`, best first, ties by index, and their indices."""
    order = np.argsort(-array if largest else array, axis=axis, kind="stable")
    order = np.take(order, np.arange(k), axis)
    return np.take_along_axis(array, order, axis), order


@plain("put")
def put(array: Any, key: Any, values: Any) -> Any:
    """A copy of `array` with `array[key] = values`."""
    result = np.array(array)
    result[key] = values
    return result


@plain("scatter_add")
def scatter_add(target: Any, key: Any, values: Any) -> Any:
    """`target[key] += values`, repeated indices added, in place; returns it."""
    np.add.at(target, key, values)
    return target


@plain("argsort")
def argsort(array: Any, axis: int = -1, **_: Any) -> Any:
    """Stable ascending order."""
    return np.argsort(array, axis=axis, kind="stable")
