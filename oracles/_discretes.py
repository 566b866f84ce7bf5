"""Rules of doubtful integers and truth values: NumPy on the value, doubt spreads."""

from typing import Any

import numpy as np

from trivet.oracles import _structure as _structure
from trivet.oracles._bounded import Bounded, lift
from trivet.oracles._discrete import STRUCTURE, Discrete, decided_or_not, parts
from trivet.oracles._dispatch import PLAIN, Rule, apply, traced_among

_ELEMENTWISE = [
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
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "maximum",
    "minimum",
    "sign",
    "square",
]


def _context(*operands: Any) -> Any:
    traced = traced_among(operands)
    assert traced is not None
    return traced.context


def _elementwise(name: str) -> None:
    function: Rule = getattr(np, name)

    def call(*operands: Any) -> Any:
        pairs = [parts(operand) for operand in operands]
        value = function(*(value for value, _ in pairs))
        context = _context(*operands)
        if np.issubdtype(value.dtype, np.floating):
            lifted = [lift(context, x) if isinstance(x, Discrete) else x for x in operands]
            return apply(name, *lifted)
        doubt: Any = np.False_
        for _, undecided in pairs:
            doubt = doubt | undecided
        return decided_or_not(context, value, _known(name, pairs, doubt))

    Discrete.rules[name] = call


def _known(name: str, pairs: Any, doubt: Any) -> Any:
    """Doubt less what a decided false (or true) operand settles by itself."""
    if name in ("logical_and", "logical_or", "bitwise_and", "bitwise_or"):
        settles = name.endswith("or")
        for value, undecided in pairs:
            if np.asarray(value).dtype == np.bool_:
                doubt = doubt & ~((np.asarray(value) == settles) & ~np.asarray(undecided))
    return doubt


for _name in _ELEMENTWISE:
    _elementwise(_name)


def _reduced(name: str) -> None:
    function: Rule = getattr(np, name)

    def call(array: Discrete, axis: Any = None, keepdims: Any = False, **_: Any) -> Any:
        options = {"axis": axis, "keepdims": keepdims}
        value = function(array.value, **options)
        doubt = array.undecided.any(**options)
        if name in ("any", "all"):
            settles = name == "any"
            decided = ((array.value.astype(bool) == settles) & ~array.undecided).any(**options)
            doubt = doubt & ~decided
        return decided_or_not(array.context, value, doubt)

    Discrete.rules[name] = call


for _name in ("any", "all", "sum", "max", "min", "prod", "argmax", "argmin", "count_nonzero"):
    _reduced(_name)


def _cumulated(array: Discrete, axis: int | None = None, **_: Any) -> Any:
    doubt = np.logical_or.accumulate(array.undecided, axis=axis or 0)
    return decided_or_not(array.context, np.cumsum(array.value, axis=axis), doubt)


def _astype(array: Discrete, dtype: Any, **_: Any) -> Any:
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name.startswith(("int", "uint", "bool")):
        return Discrete(array.context, array.value.astype(name), array.undecided)
    return lift(array.context, array)


def _through_bounded(name: str) -> Rule:
    def call(*operands: Any, **options: Any) -> Any:
        context = _context(*operands)
        lifted = [lift(context, x) if isinstance(x, Discrete) else x for x in operands]
        return apply(name, *lifted, **options)

    return call


def _where(condition: Any, chosen: Any, otherwise: Any) -> Any:
    """A choice among plain or doubtful integers; floats go to the bounded rule."""
    truth, unsure = parts(condition)
    (a, doubt_a), (b, doubt_b) = parts(chosen), parts(otherwise)
    value = np.where(truth, a, b)
    context = _context(condition, chosen, otherwise)
    if np.issubdtype(value.dtype, np.floating):
        result: Bounded = Bounded.rules["where"](
            condition, lift(context, chosen), lift(context, otherwise)
        )
        return result
    doubt = np.where(truth, doubt_a, doubt_b) | (unsure & (a != b))
    return decided_or_not(context, value, doubt)


Discrete.rules.update(STRUCTURE)
Discrete.rules.update({"cumsum": _cumulated, "astype": _astype, "cast": _astype, "where": _where})
for _name in (
    "mean",
    "exp",
    "log",
    "sqrt",
    "matmul",
    "einsum",
    "clip",
    "shape",
    "ndim",
    "size",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "asarray",
    "array",
):
    Discrete.rules[_name] = _through_bounded(_name)
PLAIN.setdefault("astype", lambda array, dtype, **_: np.asarray(array).astype(dtype))
