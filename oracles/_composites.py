"""Functions written over other operations: they serve every number system alike."""

import math
from typing import Any

import numpy as np

from trivet.oracles._dispatch import apply, composite


@composite("softmax")
def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x - max) over its sum."""
    weights = apply("exp", x - apply("max", x, axis=axis, keepdims=True))
    return weights / apply("sum", weights, axis=axis, keepdims=True)


@composite("log_softmax")
def log_softmax(x: Any, axis: int = -1) -> Any:
    """x - logsumexp(x)."""
    return x - apply("logsumexp", x, axis=axis, keepdims=True)


@composite("var")
def var(x: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0, **options: Any) -> Any:
    """Mean square of the differences from the mean; divisor n - ddof (or `correction`)."""
    ddof = options.get("correction", ddof)
    difference = x - apply("mean", x, axis=axis, keepdims=True)
    squares = difference * difference
    if not ddof:
        return apply("mean", squares, axis=axis, keepdims=keepdims)
    total = apply("sum", squares, axis=axis, keepdims=keepdims)
    return total / float(math.prod(squares.shape) // max(math.prod(total.shape), 1) - ddof)


@composite("std")
def std(x: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0, **options: Any) -> Any:
    """The square root of the variance."""
    return apply("sqrt", var(x, axis, keepdims, ddof, **options))


@composite("silu")
def silu(x: Any) -> Any:
    """x * sigmoid(x)."""
    return x * apply("sigmoid", x)


@composite("gelu")
def gelu(x: Any, approximate: str = "none") -> Any:
    """x times the normal distribution function, or its tanh form."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + apply("tanh", inner))
    return 0.5 * x * (1.0 + apply("erf", x * math.sqrt(0.5)))


@composite("relu")
def relu(x: Any) -> Any:
    """max(x, 0)."""
    return apply("maximum", x, 0.0)


@composite("logaddexp")
def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y))."""
    greater = apply("maximum", x, y)
    smaller = apply("minimum", x, y)
    return greater + apply("log1p", apply("exp", smaller - greater))


@composite("floor_divide")
def floor_divide(x: Any, y: Any) -> Any:
    """floor(x / y)."""
    return apply("floor", x / y)


@composite("remainder")
def remainder(x: Any, y: Any) -> Any:
    """x - floor(x / y) y."""
    return x - apply("floor", x / y) * y


@composite("hypot")
def hypot(x: Any, y: Any) -> Any:
    """sqrt(x^2 + y^2)."""
    return apply("sqrt", x * x + y * y)


@composite("outer")
def outer(x: Any, y: Any) -> Any:
    """All products of two vectors."""
    return apply("ravel", x)[:, None] * apply("ravel", y)[None, :]


@composite("inner")
@composite("vdot")
def inner(x: Any, y: Any) -> Any:
    """Sum of products over the last axis of both."""
    return apply("tensordot", x, y, (x.ndim - 1, y.ndim - 1))


@composite("tensordot")
def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    """numpy.tensordot."""
    if isinstance(axes, int):
        axes = (range(x.ndim - axes, x.ndim), range(axes))
    left, right = ([int(a) for a in np.atleast_1d(part)] for part in axes)
    letters = "abcdefghijklmnopqrstuvwxyz"
    first = list(letters[: x.ndim])
    second = list(letters[x.ndim : x.ndim + y.ndim])
    for a, b in zip(left, right, strict=True):
        second[b] = first[a]
    shared = {first[a] for a in left}
    result = [letter for letter in (*first, *second) if letter not in shared]
    return apply("einsum", f"{''.join(first)},{''.join(second)}->{''.join(result)}", x, y)


@composite("nan_to_num")
def nan_to_num(x: Any, nan: float = 0.0, **_: Any) -> Any:
    """NaN replaced by `nan`."""
    return apply("where", apply("isnan", x), nan, x)


@composite("nansum")
def nansum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The sum of what is not NaN."""
    return apply("sum", nan_to_num(x), axis=axis, keepdims=keepdims)


@composite("nanmean")
def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean of what is not NaN."""
    present = apply("sum", ~apply("isnan", x), axis=axis, keepdims=keepdims)
    return nansum(x, axis, keepdims) / present


@composite("copysign")
def copysign(x: Any, y: Any) -> Any:
    """|x| with the sign of y."""
    return apply("where", y < 0, -abs(x), abs(x))


@composite("count_nonzero")
def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not zero."""
    return apply("sum", x != 0, axis=axis, keepdims=keepdims)


@composite("ptp")
def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Largest minus smallest."""
    largest, smallest = (apply(f, x, axis=axis, keepdims=keepdims) for f in ("max", "min"))
    return largest - smallest


@composite("average")
def average(x: Any, axis: Any = None, weights: Any = None) -> Any:
    """The mean, or the weighted mean."""
    if weights is None:
        return apply("mean", x, axis=axis)
    return apply("sum", x * weights, axis=axis) / apply("sum", weights, axis=axis)


@composite("trace")
def trace(x: Any) -> Any:
    """The sum of the diagonal."""
    return apply("sum", apply("diagonal", x), axis=-1)


@composite("lerp")
def lerp(x: Any, y: Any, weight: Any) -> Any:
    """x + weight (y - x)."""
    return x + weight * (y - x)


@composite("diff")
def diff(x: Any, n: int = 1, axis: int = -1) -> Any:
    """Differences of neighbours along `axis`."""
    for _ in range(n):
        moved = apply("moveaxis", x, axis, 0)
        x = apply("moveaxis", moved[1:] - moved[:-1], 0, axis)
    return x
