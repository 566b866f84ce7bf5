"""Rules of ATen operations that compute: arithmetic, functions of numbers, reductions, products."""

import math
from typing import Any

import numpy as np

from trivet.oracles._bounded import Bounded
from trivet.oracles._dispatch import apply
from trivet.properties._torch_trace import NoRuleError, Rule, torch_rule

# ATen's name of an operation, and ours of the same one.
_SAME = {
    "mul": "multiply", "neg": "negative", "abs": "abs", "exp": "exp", "exp2": "exp2",
    "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "tanh": "tanh", "sigmoid": "sigmoid", "erf": "erf",
    "sin": "sin", "cos": "cos", "sinh": "sinh", "atan": "arctan", "asin": "arcsin",
    "acos": "arccos", "asinh": "arcsinh", "atanh": "arctanh", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "sign": "sign", "sgn": "sign", "square": "square", "silu": "silu",
    "relu": "relu", "reciprocal": "reciprocal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "eq": "equal", "ne": "not_equal", "maximum": "maximum",
    "minimum": "minimum", "fmax": "fmax", "fmin": "fmin", "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor", "bitwise_not": "invert",
    "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite",
    "mv": "matmul", "dot": "matmul", "vdot": "matmul", "logaddexp": "logaddexp",
    "hypot": "hypot", "copysign": "copysign", "remainder": "remainder", "pow": "power",
}  # fmt: skip


def axis_of(dim: Any) -> Any:
    """The axes of a reduction as NumPy takes them: None, an int or a tuple."""
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


def _same(operation: str) -> Rule:
    def call(*operands: Any, **_: Any) -> Any:
        return apply(operation, *operands)

    return call


for _name, _operation in _SAME.items():
    torch_rule(_name)(_same(_operation))


def _scaled(number: Any, alpha: Any) -> Any:
    return number if alpha == 1 else apply("multiply", number, alpha)


@torch_rule("add")
def _add(x: Any, y: Any, alpha: Any = 1) -> Any:
    return apply("add", x, _scaled(y, alpha))


@torch_rule("sub", "subtract")
def _subtract(x: Any, y: Any, alpha: Any = 1) -> Any:
    return apply("subtract", x, _scaled(y, alpha))


@torch_rule("rsub")
def _subtract_from(x: Any, y: Any, alpha: Any = 1) -> Any:
    return apply("subtract", y, _scaled(x, alpha))


@torch_rule("div", "true_divide")
def _divide(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    quotient = apply("divide", x, y)
    if rounding_mode is None:
        return quotient
    return apply(rounding_mode, quotient)


@torch_rule("floor_divide")
def _floor_divide(x: Any, y: Any) -> Any:
    return apply("floor", apply("divide", x, y))


@torch_rule("fmod")
def _fmod(x: Any, y: Any) -> Any:
    return x - apply("multiply", apply("trunc", apply("divide", x, y)), y)


@torch_rule("frac")
def _frac(x: Any) -> Any:
    return x - apply("trunc", x)


@torch_rule("round")
def _round(x: Any, decimals: int = 0) -> Any:
    return apply("round", x, decimals)


@torch_rule("erfc")
def _erfc(x: Any) -> Any:
    return 1.0 - apply("erf", x)


@torch_rule("tan")
def _tan(x: Any) -> Any:
    return apply("sin", x) / apply("cos", x)


@torch_rule("cosh")
def _cosh(x: Any) -> Any:
    return (apply("exp", x) + apply("exp", -x)) * 0.5


@torch_rule("logical_and")
def _logical_and(x: Any, y: Any) -> Any:
    return apply("logical_and", _truth(x), _truth(y))


@torch_rule("logical_or")
def _logical_or(x: Any, y: Any) -> Any:
    return apply("logical_or", _truth(x), _truth(y))


@torch_rule("logical_not")
def _logical_not(x: Any) -> Any:
    return apply("logical_not", _truth(x))


def _truth(x: Any) -> Any:
    return x != 0 if isinstance(x, Bounded) else x


@torch_rule("where")
def _where(condition: Any, chosen: Any, otherwise: Any) -> Any:
    return apply("where", condition, chosen, otherwise)


@torch_rule("masked_fill")
def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return apply("where", mask, value, x)


@torch_rule("clamp", "clip", "hardtanh")
def _clamp(x: Any, low: Any = None, high: Any = None, **bounds: Any) -> Any:
    return apply("clip", x, bounds.get("min", low), bounds.get("max", high))


@torch_rule("clamp_min")
def _clamp_min(x: Any, low: Any) -> Any:
    return apply("maximum", x, low)


@torch_rule("clamp_max")
def _clamp_max(x: Any, high: Any) -> Any:
    return apply("minimum", x, high)


@torch_rule("lerp")
def _lerp(start: Any, end: Any, weight: Any) -> Any:
    return apply("lerp", start, end, weight)


@torch_rule("addcmul")
def _addcmul(x: Any, first: Any, second: Any, value: Any = 1) -> Any:
    return x + _scaled(apply("multiply", first, second), value)


@torch_rule("addcdiv")
def _addcdiv(x: Any, first: Any, second: Any, value: Any = 1) -> Any:
    return x + apply("divide", _scaled(first, value), second)


@torch_rule("nan_to_num")
def _nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if posinf is not None or neginf is not None:
        raise NoRuleError("posinf, neginf")
    return apply("nan_to_num", x, nan=0.0 if nan is None else nan)


@torch_rule("sum")
def _sum(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return apply("sum", x, axis=axis_of(dim), keepdims=keepdim)


@torch_rule("mean")
def _mean(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return apply("mean", x, axis=axis_of(dim), keepdims=keepdim)


@torch_rule("prod")
def _prod(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return apply("prod", x, axis=axis_of(dim), keepdims=keepdim)


def _truth_over(name: str) -> Rule:
    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return apply(name, _truth(x), axis=axis_of(dim), keepdims=keepdim)

    return call


torch_rule("any")(_truth_over("any"))
torch_rule("all")(_truth_over("all"))


@torch_rule("amax")
def _amax(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    return apply("max", x, axis=axis_of(dim), keepdims=keepdim)


@torch_rule("amin")
def _amin(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    return apply("min", x, axis=axis_of(dim), keepdims=keepdim)


def _extremum(name: str) -> Rule:
    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return apply(name, x)
        value = apply(name, x, axis=dim, keepdims=keepdim)
        return value, apply(f"arg{name}", x, axis=dim, keepdims=keepdim)

    return call


torch_rule("max")(_extremum("max"))
torch_rule("min")(_extremum("min"))


def _position(name: str) -> Rule:
    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return apply(name, x, axis=dim, keepdims=keepdim)

    return call


torch_rule("argmax")(_position("argmax"))
torch_rule("argmin")(_position("argmin"))


def _moments(x: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    axis = axis_of(dim)
    divisor = {"ddof": 1 if correction is None else correction}
    return apply("var", x, axis=axis, keepdims=keepdim, **divisor), axis


@torch_rule("var")
def _var(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return _moments(x, dim, correction, keepdim)[0]


@torch_rule("std")
def _std(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return apply("sqrt", _moments(x, dim, correction, keepdim)[0])


@torch_rule("var_mean")
def _var_mean(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    variance, axis = _moments(x, dim, correction, keepdim)
    return variance, apply("mean", x, axis=axis, keepdims=keepdim)


@torch_rule("linalg_vector_norm", "norm")
def _norm(x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    axis, size = axis_of(dim), apply("abs", x)
    if order in (None, 2):
        return apply("sqrt", apply("sum", apply("square", x), axis=axis, keepdims=keepdim))
    if order == 1:
        return apply("sum", size, axis=axis, keepdims=keepdim)
    if order in (math.inf, -math.inf):
        return apply("max" if order > 0 else "min", size, axis=axis, keepdims=keepdim)
    raise NoRuleError(f"a norm of order {order}")


@torch_rule("logsumexp")
def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    return apply("logsumexp", x, axis=axis_of(dim), keepdims=keepdim)


@torch_rule("cumsum")
def _cumsum(x: Any, dim: int, dtype: Any = None) -> Any:
    return x if not np.ndim(x) else apply("cumsum", x, axis=dim)


@torch_rule("cumprod")
def _cumprod(x: Any, dim: int, dtype: Any = None) -> Any:
    return x if not np.ndim(x) else apply("cumprod", x, axis=dim)


@torch_rule("addmm", "baddbmm", "addmv")
def _addmm(bias: Any, first: Any, second: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return _scaled(bias, beta) + _scaled(apply("matmul", first, second), alpha)


@torch_rule("addbmm")
def _addbmm(bias: Any, first: Any, second: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    products = apply("einsum", "bij,bjk->ik", first, second)
    return _scaled(bias, beta) + _scaled(products, alpha)


@torch_rule("addr")
def _addr(bias: Any, first: Any, second: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return _scaled(bias, beta) + _scaled(first[:, None] * second[None, :], alpha)


@torch_rule("sort")
def _sort(x: Any, *settings: Any, **options: Any) -> Any:
    """sort(x, dim, descending) and sort.stable(x, *, stable, dim, descending)."""
    given = dict(zip(("dim", "descending"), settings, strict=False)) | options
    dim, descending = given.get("dim", -1), given.get("descending", False)
    order = apply("argsort", apply("negative", x) if descending else x, axis=dim)
    ordered = apply("sort", x, axis=dim)
    return (apply("flip", ordered, dim) if descending else ordered), order


@torch_rule("argsort")
def _argsort(x: Any, *settings: Any, **options: Any) -> Any:
    return _sort(x, *settings, **options)[1]


@torch_rule("topk")
def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return apply("topk", x, k, axis=dim, largest=largest)


@torch_rule("searchsorted")
def _searchsorted(table: Any, values: Any, **options: Any) -> Any:
    if np.ndim(table) > 1:
        raise NoRuleError("a table of several rows")
    side = "right" if options.get("right") or options.get("side") == "right" else "left"
    return apply("searchsorted", table, values, side=side)


@torch_rule("bucketize")
def _bucketize(values: Any, table: Any, **options: Any) -> Any:
    return _searchsorted(table, values, **options)
