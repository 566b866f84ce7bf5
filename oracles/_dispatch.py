"""Sends each operation of an oracle to the number system of its operands.

A number system is a `Traced` array class with a table of rules, operation name to function. NumPy's
dispatch protocols, the operators and the math namespace all end in `apply`. Operations on arrays
that are not traced go to the table of plain functions.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

import numpy as np

from trivet.oracles._context import Context
from trivet.oracles._errors import OracleError

Rule = Callable[..., Any]
Function = TypeVar("Function", bound=Rule)

PLAIN: dict[str, Rule] = {}
COMPOSITES: dict[str, Rule] = {}

# NumPy's own names of ufuncs and functions, where ours differ.
_ALIASES = {
    "true_divide": "divide",
    "absolute": "abs",
    "fabs": "abs",
    "amax": "max",
    "amin": "min",
    "around": "round",
    "float_power": "power",
    "conjugate": "positive",
    "concat": "concatenate",
    "permute_dims": "transpose",
    "pow": "power",
    "fix": "trunc",
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
    "bitwise_invert": "invert",
    "cumulative_sum": "cumsum",
    "cumulative_prod": "cumprod",
    "ndarray_round": "round",
}
_METHODS = {
    ("add", "reduce"): "sum",
    ("multiply", "reduce"): "prod",
    ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min",
    ("logical_and", "reduce"): "all",
    ("logical_or", "reduce"): "any",
    ("add", "accumulate"): "cumsum",
    ("multiply", "accumulate"): "cumprod",
    ("maximum", "accumulate"): "cummax",
    ("minimum", "accumulate"): "cummin",
    ("add", "at"): "add_at",
}


class Traced:
    """An array of a number system; the system of highest rank among the operands has the word."""

    __slots__ = ("context",)
    __array_priority__ = 1000.0
    rules: ClassVar[dict[str, Rule]] = {}
    rank: ClassVar[int] = 0
    context: Context

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = _ALIASES.get(ufunc.__name__, ufunc.__name__)
        if method == "outer":
            first, second = inputs
            spread = (..., *(None,) * np.ndim(second))
            return apply(name, apply("getitem", first, spread), second, **_settings(name, options))
        if method != "__call__":
            if (name, method) not in _METHODS:
                raise OracleError(f"numpy.{name}.{method} has no rule", f"{name}.{method}")
            name = _METHODS[name, method]
            options = {"axis": 0, **options} if name not in ("add_at",) else options
        return apply(name, *inputs, **_settings(name, options))

    def __array_function__(
        self, function: Rule, types: Iterable[type], inputs: Any, options: Any
    ) -> Any:
        name = function.__name__
        home = (function.__module__ or "numpy").removeprefix("numpy").removeprefix(".")
        if home == "linalg":
            name = f"linalg_{name}" if name in ("norm",) else name
        name = _ALIASES.get(name, name)
        return apply(name, *inputs, **_settings(name, options))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise OracleError(
            "a traced array cannot become a plain NumPy array, as filling one from np.zeros or "
            "np.empty needs: use np.zeros_like of an argument, np.stack of a list, or m.zeros",
            "array",
        )


def _settings(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a NumPy call less those that say nothing about the value."""
    kept = {key: value for key, value in options.items() if key not in ("dtype", "casting")}
    out = kept.pop("out", None)
    if out is not None and any(part is not None for part in np.atleast_1d(np.array(out, object))):
        raise OracleError(f"{name} with out= has no rule", name)
    if name in ("astype", "full_like", "zeros_like", "ones_like", "empty_like"):
        kept.pop("subok", None)
        kept.update({"dtype": options["dtype"]} if options.get("dtype") is not None else {})
    return kept


def traced_among(operands: Iterable[Any]) -> Traced | None:
    """The operand of the highest-ranking number system, sequences searched, or None."""
    best: Traced | None = None
    for operand in operands:
        if isinstance(operand, (list, tuple)):
            operand = traced_among(operand)
        if isinstance(operand, Traced) and (best is None or operand.rank > best.rank):
            best = operand
    return best


def apply(name: str, *operands: Any, **options: Any) -> Any:
    """The operation `name` in the number system of its operands.

    Raises OracleError when that system has no rule for it.
    """
    traced = traced_among(operands)
    if traced is None:
        traced = traced_among(options.values())
    table = PLAIN if traced is None else traced.rules
    rule = table.get(name) or COMPOSITES.get(name)
    if rule is None:
        raise OracleError(f"{name} has no rule in oracles", name)
    if traced is not None and traced.context.interceptor is not None:
        return traced.context.interceptor(name, rule, operands, options)
    return rule(*operands, **options)


def composite(name: str) -> Callable[[Function], Function]:
    """Register a function written over other operations: it serves every number system."""

    def register(function: Function) -> Function:
        COMPOSITES[name] = function
        return function

    return register
