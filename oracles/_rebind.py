"""Lets a NumPy reference that makes its own arrays hold traced numbers in them.

NumPy's dispatch protocols reach functions of traced arrays, not `np.zeros(shape)`, `np.array(list)`
or `math.exp(x)`. A reference is therefore called with its module's names for numpy and math bound
to stand-ins that differ in these only; the user's module stays as it is.
"""

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from trivet.oracles._dispatch import apply, traced_among
from trivet.oracles._namespace import Namespace

_CONVERTERS = ("array", "asarray", "ascontiguousarray", "asanyarray")
_FLOATS = ("float16", "float32", "float64", "single", "double", "half")
_SCALAR_FUNCTIONS = {
    "exp": "exp", "expm1": "expm1", "log": "log", "log2": "log2", "log1p": "log1p",
    "log10": "log10", "sqrt": "sqrt", "tanh": "tanh", "sin": "sin", "cos": "cos", "erf": "erf",
    "fabs": "abs", "floor": "floor", "ceil": "ceil", "pow": "power", "isnan": "isnan",
    "isfinite": "isfinite", "isinf": "isinf", "hypot": "hypot", "exp2": "exp2",
}  # fmt: skip


class _StandIn:
    """A module with some of its functions replaced."""

    def __init__(self, module: types.ModuleType, replaced: dict[str, Any]) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def rebound(oracle: Callable[..., Any], namespace: Namespace) -> Callable[..., Any]:
    """`oracle` with numpy and math of its module, and of its helpers there, standing in."""
    if not isinstance(oracle, types.FunctionType):
        return oracle
    stand_ins = {id(np): _numpy(namespace), id(math): _math()}
    original = oracle.__globals__
    names = dict(original)

    def again(function: types.FunctionType) -> types.FunctionType:
        copy = types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

    for name, value in original.items():
        if id(value) in stand_ins:
            names[name] = stand_ins[id(value)]
        elif isinstance(value, types.FunctionType) and value.__globals__ is original:
            names[name] = again(value)
    return again(oracle)


def _numpy(namespace: Namespace) -> _StandIn:
    replaced: dict[str, Any] = {
        "zeros": namespace.zeros,
        "ones": namespace.ones,
        "empty": namespace.zeros,
        "full": namespace.full,
    }
    for name in _CONVERTERS:
        replaced[name] = _either(name, getattr(np, name))
    for name in _FLOATS:
        replaced[name] = _Float(getattr(np, name))
    return _StandIn(np, replaced)


def _math() -> _StandIn:
    functions = {
        name: _either(operation, getattr(math, name))
        for name, operation in _SCALAR_FUNCTIONS.items()
        if hasattr(math, name)
    }
    return _StandIn(math, functions)


def _either(operation: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """`plain`, or our rule where an operand is traced."""

    def call(*operands: Any, **options: Any) -> Any:
        if traced_among(operands) is None:
            return plain(*operands, **options)
        return apply(operation, *operands)

    return call


class _Float:
    """np.float32 and its like: converts traced numbers, is the dtype otherwise."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._plain = dtype

    def __call__(self, value: Any = 0.0) -> Any:
        if traced_among((value,)) is None:
            return self._plain(value)
        return apply("astype", value, self.dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)
