"""Rules of dual numbers: the derivative of every operation an oracle may use.

Partial derivatives are bounded numbers themselves, so their rounding is in the bound. Where a
derivative depends on a comparison in doubt, or on which of two equal numbers is the larger, the
gradient is undecidable there (a kink).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trivet.oracles._bounded import Bounded, lift
from trivet.oracles._discrete import parts
from trivet.oracles._dispatch import Function, Rule, apply
from trivet.oracles._dual import Dual, Tape, combine, dual, linear, tape_of
from trivet.oracles._errors import OracleError
from trivet.oracles._formats import format_of
from trivet.oracles._reductions import axes_of


def _rule(*names: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        for name in names:
            Dual.rules[name] = function
        return function

    return register


def _number(tape: Tape, value: Any) -> Bounded:
    return lift(tape.context, value)


# Elementwise ------------------------------------------------------------------------------------

# Each partial takes the argument and the result, both bounded.
_PARTIALS: dict[str, Rule] = {
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2),
    "expm1": lambda x, y: apply("exp", x),
    "log": lambda x, y: 1.0 / x,
    "log2": lambda x, y: 1.0 / (x * math.log(2)),
    "log10": lambda x, y: 1.0 / (x * math.log(10)),
    "log1p": lambda x, y: 1.0 / (1.0 + x),
    "sqrt": lambda x, y: 0.5 / y,
    "rsqrt": lambda x, y: -0.5 * y / x,
    "tanh": lambda x, y: 1.0 - y * y,
    "sigmoid": lambda x, y: y * (1.0 - y),
    "softplus": lambda x, y: apply("sigmoid", x),
    "erf": lambda x, y: 2 / math.sqrt(math.pi) * apply("exp", -(x * x)),
    "sin": lambda x, y: apply("cos", x),
    "cos": lambda x, y: -apply("sin", x),
    "sinh": lambda x, y: apply("sqrt", 1.0 + y * y),
    "arctan": lambda x, y: 1.0 / (1.0 + x * x),
    "arcsinh": lambda x, y: apply("rsqrt", 1.0 + x * x),
    "arcsin": lambda x, y: apply("rsqrt", 1.0 - x * x),
    "arccos": lambda x, y: -apply("rsqrt", 1.0 - x * x),
    "arctanh": lambda x, y: 1.0 / (1.0 - x * x),
    "cbrt": lambda x, y: y / (3.0 * x),
    "square": lambda x, y: 2.0 * x,
    "reciprocal": lambda x, y: -(y * y),
}
# One product with the adjoint; a partial that is a quotient may be divided by instead.
_STEPS = 2.0


def _function(name: str, partial: Rule) -> None:
    def call(x: Dual) -> Dual:
        y = apply(name, x.primal)
        slope = lift(x.tape.context, partial(x.primal, y))
        return combine(x.tape, y, [(x, slope, _STEPS)])

    Dual.rules[name] = call


for _name, _partial in _PARTIALS.items():
    _function(_name, _partial)


def _flat(name: str) -> None:
    """Register a step function: its derivative is zero, and undecidable at its jumps."""

    def call(x: Dual, *settings: Any) -> Dual:
        return combine(x.tape, apply(name, x.primal, *settings), [])

    Dual.rules[name] = call


for _name in ("floor", "ceil", "trunc", "rint", "round", "sign"):
    _flat(_name)


@_rule("add")
def add(a: Any, b: Any) -> Dual:
    """a + b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    return combine(tape, apply("add", x.primal, y.primal), [(x, None, 0), (y, None, 0)])


@_rule("subtract")
def subtract(a: Any, b: Any) -> Dual:
    """a - b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    minus = _number(tape, -1.0)
    return combine(tape, apply("subtract", x.primal, y.primal), [(x, None, 0), (y, minus, 0)])


@_rule("negative")
def negative(x: Dual) -> Dual:
    """-x."""
    return combine(x.tape, apply("negative", x.primal), [(x, _number(x.tape, -1.0), 0)])


@_rule("positive", "copy", "asarray", "array", "ascontiguousarray")
def positive(x: Any, *_: Any, **__: Any) -> Dual:
    """x itself."""
    tape = tape_of(x)
    number = dual(tape, x)
    return combine(tape, apply("positive", number.primal), [(number, None, 0)])


@_rule("multiply")
def multiply(a: Any, b: Any) -> Dual:
    """a * b; a square passes its adjoint along one edge, 2 a."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    product = apply("multiply", x.primal, y.primal)
    if x is y:
        return combine(tape, product, [(x, x.primal * 2.0, _STEPS)])
    return combine(tape, product, [(x, y.primal, _STEPS), (y, x.primal, _STEPS)])


@_rule("divide")
def divide(a: Any, b: Any) -> Dual:
    """a / b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    quotient = apply("divide", x.primal, y.primal)
    inverse = apply("divide", 1.0, y.primal)
    edges = [(x, inverse, _STEPS + 1)]
    if isinstance(b, Dual):
        edges.append((y, -(quotient * inverse), _STEPS + 2))
    return combine(tape, quotient, edges)


@_rule("power")
def power(a: Any, b: Any) -> Dual:
    """a ** b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    if not isinstance(b, Dual):
        exponent = np.asarray(b, np.float64)
        if exponent.ndim == 0 and float(exponent) == 2.0:
            return multiply(x, x)
        result = apply("power", x.primal, b)
        slope = apply("power", x.primal, exponent - 1.0) * exponent
        return combine(tape, result, [(x, slope, _STEPS + 1)])
    result = apply("power", x.primal, y.primal)
    by_base = y.primal * apply("power", x.primal, y.primal - 1.0)
    by_exponent = result * apply("log", x.primal)
    return combine(tape, result, [(x, by_base, _STEPS + 1), (y, by_exponent, _STEPS + 1)])


@_rule("abs")
def absolute(x: Dual) -> Dual:
    """|x|, with a kink at zero."""
    slope = apply("sign", x.primal)
    kink = x.primal.value == 0
    slope = Bounded(slope.context, slope.value, np.where(kink, np.inf, slope.error))
    return combine(x.tape, apply("abs", x.primal), [(x, slope, 0)])


# Choice -----------------------------------------------------------------------------------------


@_rule("where")
def where(condition: Any, chosen: Any, otherwise: Any) -> Dual:
    """A choice; its tangent is undecidable where the condition is in doubt."""
    tape = tape_of(condition, chosen, otherwise)
    if isinstance(condition, Dual):
        condition = condition.primal != 0
    x, y = dual(tape, chosen), dual(tape, otherwise)
    primal = apply("where", condition, x.primal, y.primal)
    truth, doubt = parts(condition)
    truth = np.asarray(truth, bool)
    return _choose(tape, primal, truth, doubt, x, y)


def _choose(tape: Tape, primal: Bounded, truth: Any, doubt: Any, x: Dual, y: Dual) -> Dual:
    """x where `truth`, else y; undecidable where in doubt and the two tangents could differ."""
    shape = primal.shape
    truth, doubt = np.broadcast_to(truth, shape), np.broadcast_to(doubt, shape)
    for number, used in ((x, truth), (y, ~truth)):
        _mark_selected(number, used)
    components = []
    for part in ("tangent", "reach", "slip"):
        left, right = (_spread(getattr(z, part), shape) for z in (x, y))
        components.append(np.where(truth, left, right))
    if np.any(doubt):
        alive = (_spread(x.reach, shape) > 0) | (_spread(y.reach, shape) > 0)
        components[2] = np.where(doubt & alive, np.inf, components[2])
        components[1] = np.where(doubt & alive, np.maximum(components[1], 1e-300), components[1])
    return Dual(tape, primal, *components)


def _spread(part: Any, shape: tuple[int, ...]) -> Any:
    lead = part.reshape(part.shape[0], *(1,) * (len(shape) - part.ndim + 1), *part.shape[1:])
    return np.broadcast_to(lead, (part.shape[0], *shape))


def _mark_selected(number: Dual, used: Any) -> None:
    """Count the uses of a broadcast number at the positions `used`."""
    extra = used.ndim - len(number.shape)
    count = used.astype(np.float64)
    count = count.sum(tuple(range(extra))) if extra else count
    axes = tuple(i for i, n in enumerate(number.shape) if n == 1)
    number.uses += count.sum(axes, keepdims=True) if axes else count


def _extremum(name: str, compare: str) -> None:
    """Register the larger or smaller of two; equal numbers make a kink."""

    def call(a: Any, b: Any) -> Dual:
        tape = tape_of(a, b)
        x, y = dual(tape, a), dual(tape, b)
        truth, doubt = parts(apply(compare, x.primal, y.primal))
        tie, unsure = parts(apply("equal", x.primal, y.primal))
        primal = apply(name, x.primal, y.primal)
        return _choose(tape, primal, truth, doubt | tie | unsure, x, y)

    Dual.rules[name] = call


_extremum("maximum", "greater")
_extremum("minimum", "less")
_extremum("fmax", "greater")
_extremum("fmin", "less")


@_rule("clip")
def clip(x: Any, low: Any = None, high: Any = None, **bounds: Any) -> Any:
    """x limited to [low, high]."""
    low, high = bounds.get("min", low), bounds.get("max", high)
    if low is not None:
        x = apply("maximum", x, low)
    return x if high is None else apply("minimum", x, high)


@_rule("astype", "cast")
def cast(x: Dual, dtype: Any, **_: Any) -> Any:
    """x stored in `dtype`: the gradient passes and may be stored so itself."""
    primal = apply("cast", x.primal, dtype)
    if not isinstance(primal, Bounded):
        return primal
    if primal is x.primal:
        return x
    steps = format_of(dtype).unit / x.context.unit
    return combine(x.tape, primal, [(x, _number(x.tape, 1.0), steps)])


def _on_primals(name: str) -> None:
    """Register an operation whose result has no tangent."""

    def call(*operands: Any, **options: Any) -> Any:
        plain = [x.primal if isinstance(x, Dual) else x for x in operands]
        return apply(name, *plain, **options)

    Dual.rules[name] = call


for _name in [
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "isnan",
    "isfinite",
    "isinf",
    "argmax",
    "argmin",
    "argsort",
    "searchsorted",
    "shape",
    "ndim",
    "size",
]:
    _on_primals(_name)


# Reductions -------------------------------------------------------------------------------------


def _shifted(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis + 1 for axis in axes)


@_rule("sum", "nansum")
def total(
    x: Dual, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Dual:
    """The sum over `axis`."""
    if where is not None:
        x = apply("where", where, x, 0.0)
    axes = axes_of(len(x.shape), axis)
    primal = apply("sum", x.primal, axis=axes, keepdims=keepdims)
    result = linear(x.tape, primal, x, lambda t: t.sum(_shifted(axes), keepdims=keepdims), 1.0)
    return result if initial is None else add(result, initial)


@_rule("mean", "nanmean")
def mean(x: Dual, axis: Any = None, keepdims: bool = False) -> Dual:
    """The mean over `axis`."""
    axes = axes_of(len(x.shape), axis)
    primal = apply("mean", x.primal, axis=axes, keepdims=keepdims)
    return linear(
        x.tape, primal, x, lambda t: t.mean(_shifted(axes), keepdims=keepdims), 1.0, _STEPS
    )


@_rule("cumsum")
def running_sum(x: Dual, axis: int | None = None) -> Dual:
    """Sums of all prefixes: element i is used by all later ones."""
    if axis is None:
        x, axis = apply("ravel", x), 0
    (axis,) = axes_of(len(x.shape), axis)
    later = np.arange(x.shape[axis], 0, -1.0)
    uses = later.reshape((-1,) + (1,) * (len(x.shape) - 1 - axis))
    primal = apply("cumsum", x.primal, axis=axis)
    return linear(x.tape, primal, x, lambda t: t.cumsum(axis + 1), uses)


@_rule("prod", "cumprod")
def product(x: Dual, *_: Any, **__: Any) -> Dual:
    """Products have no rule in dual numbers."""
    raise OracleError("prod and cumprod have no rule in dual numbers", "prod")


def _peak(name: str, position: str) -> None:
    """Register a reduction to the largest or smallest element: only that one has a tangent."""

    def call(x: Dual, axis: Any = None, keepdims: bool = False, **options: Any) -> Dual:
        primal = apply(name, x.primal, axis=axis, keepdims=keepdims, **options)
        x.tape.extrema = True
        if x.tape.constant_extrema:
            return combine(x.tape, primal, [])
        axes = axes_of(len(x.shape), axis)
        kept = [i for i in range(len(x.shape)) if i not in axes]
        rows = apply("transpose", x, (*kept, *axes))
        rows = apply("reshape", rows, (*(x.shape[i] for i in kept), -1))
        index, doubt = parts(apply(position, rows.primal, axis=-1))
        best = rows.primal.value == np.expand_dims(rows.primal.value.max(-1), -1)
        if name == "min":
            best = rows.primal.value == np.expand_dims(rows.primal.value.min(-1), -1)
        doubt = doubt | (best.sum(-1) > 1)
        chosen = apply("take_along_axis", rows, np.expand_dims(index, -1), -1)
        chosen = apply("reshape", chosen, primal.shape)
        doubt = np.reshape(doubt, primal.shape)
        slip = np.where(doubt, np.inf, chosen.slip)
        reach = np.where(doubt, np.maximum(chosen.reach, 1e-300), chosen.reach)
        return Dual(x.tape, primal, chosen.tangent, reach, slip)

    Dual.rules[name] = call


_peak("max", "argmax")
_peak("min", "argmin")


@_rule("sort")
def sort(x: Dual, axis: int = -1, **_: Any) -> Dual:
    """Ascending order: tangents follow their elements; undecidable where order is in doubt."""
    order, doubt = parts(apply("argsort", x.primal, axis))
    result = apply("take_along_axis", x, order, axis)
    result.primal = apply("sort", x.primal, axis)
    result.slip = np.where(np.broadcast_to(doubt, result.shape), np.inf, result.slip)
    return result  # type: ignore[no-any-return]


@_rule("topk")
def topk(x: Dual, k: int, axis: int = -1, largest: bool = True) -> tuple[Dual, Any]:
    """The k largest (or smallest) elements, best first, and their indices."""
    order = apply("argsort", apply("negative", x.primal) if largest else x.primal, axis)
    (axis,) = axes_of(len(x.shape), axis)
    head = (slice(None),) * axis + (slice(0, k),)
    ordered = sort(x, axis)
    ordered = apply("flip", ordered, axis) if largest else ordered
    return ordered[head], order[head]


@_rule("logsumexp")
def log_sum_exp(x: Dual, axis: Any = None, keepdims: bool = False) -> Dual:
    """log(sum(exp(x))): the partials are the softmax weights."""
    axes = axes_of(len(x.shape), axis)
    kept = apply("logsumexp", x.primal, axis=axes, keepdims=True)
    weights = apply("exp", x.primal - kept)
    inner = combine(x.tape, weights, [(x, weights, _STEPS)])
    result = total(inner, axes, keepdims)
    result.primal = kept if keepdims else apply("squeeze", kept, axes)
    return result


# Products ---------------------------------------------------------------------------------------


@_rule("matmul", "dot")
def matmul(a: Any, b: Any) -> Dual:
    """a @ b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    primal = apply("matmul", x.primal, y.primal)
    if not x.shape or not y.shape:
        return multiply(x, y)
    x.uses += primal.size / max(math.prod(x.shape[:-1]), 1)
    y.uses += primal.size / max(y.size // y.shape[-2 if y.ndim > 1 else 0], 1)

    def left(part: Any, other: Any) -> Any:
        return part @ other if x.ndim > 1 else _vector(part, other)

    def right(part: Any, other: Any) -> Any:
        if y.ndim > 1:
            lead = (1,) * max(x.ndim - y.ndim, 0)
            return other @ part.reshape(tape.count, *lead, *y.shape)
        return np.einsum("...i,ki->k...", other, part)

    return _bilinear(tape, primal, x, y, left, right)


def _vector(part: Any, other: Any) -> Any:
    return np.einsum("ki,...ij->k...j", part, other) if other.ndim > 1 else part @ other


def _bilinear(tape: Tape, primal: Bounded, x: Dual, y: Dual, left: Rule, right: Rule) -> Dual:
    """A product of two arrays: `left` multiplies tangents of x by y, `right` those of y by x."""
    a, b = np.abs(x.primal.value), np.abs(y.primal.value)
    tangent = left(x.tangent, y.primal.value) + right(y.tangent, x.primal.value)
    reach = left(x.reach, b) + right(y.reach, a)
    slip = left(x.slip, b) + right(y.slip, a)
    slip = slip + left(x.reach + x.slip, y.primal.error) + right(y.reach + y.slip, x.primal.error)
    slip = np.where(np.isnan(slip), np.inf, slip)
    slip = slip + _STEPS * tape.context.unit * (reach + slip)
    shape = (tape.count, *primal.shape)
    return Dual(tape, primal, tangent.reshape(shape), reach.reshape(shape), slip.reshape(shape))


@_rule("einsum")
def einsum(subscripts: str, *operands: Any, **_: Any) -> Dual:
    """numpy.einsum of one or two operands, output letters given."""
    tape = tape_of(*operands)
    members = [dual(tape, operand) for operand in operands]
    primal = apply("einsum", subscripts, *(member.primal for member in members))
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    letters = inputs.split(",")
    if not arrow or len(members) > 2 or ("..." in subscripts and len(members) < 2):
        raise OracleError(f"einsum {subscripts!r} has no rule in dual numbers", "einsum")
    if len(members) == 1:
        x = members[0]
        return linear(tape, primal, x, lambda t: np.einsum(f"Z{inputs}->Z{output}", t), 1.0)
    x, y = members
    terms = _terms(subscripts, [x.primal.value, y.primal.value])
    x.uses += terms / max(x.size, 1)
    y.uses += terms / max(y.size, 1)
    first, second = letters

    def left(part: Any, other: Any) -> Any:
        return np.einsum(f"Z{first},{second}->Z{output}", part, other, optimize=True)

    def right(part: Any, other: Any) -> Any:
        return np.einsum(f"{first},Z{second}->Z{output}", other, part, optimize=True)

    return _bilinear(tape, primal, x, y, left, right)


def _terms(subscripts: str, values: list[Any]) -> float:
    """Number of products in an einsum."""
    sizes: dict[str, int] = {}
    for letters, value in zip(subscripts.partition("->")[0].split(","), values, strict=True):
        before, _, after = letters.partition("...")
        sizes.update(zip(reversed(after), reversed(value.shape), strict=False))
        sizes.update(zip(before, value.shape, strict=False))
    return float(math.prod(sizes.values()))


@_rule("linear_scan")
def linear_scan(a: Any, b: Any, initial: Any = None, axis: int = -1) -> Dual:
    """h_t = a_t h_(t-1) + b_t; any association adds at most t terms more than the loop does."""
    tape = tape_of(a, b, initial)
    x, y = dual(tape, a), dual(tape, b)
    shape = np.broadcast_shapes(x.shape, y.shape)
    (axis,) = axes_of(len(shape), axis)
    x = apply("moveaxis", apply("broadcast_to", x, shape), axis, 0)
    y = apply("moveaxis", apply("broadcast_to", y, shape), axis, 0)
    if not shape[axis]:
        return apply("moveaxis", y, 0, axis)  # type: ignore[no-any-return]
    state = apply("broadcast_to", dual(tape, 0.0 if initial is None else initial), y.shape[1:])
    states = []
    for step in range(shape[axis]):
        state = x[step] * state + y[step]
        states.append(state)
    result = apply("moveaxis", apply("stack", states), 0, axis)
    result.primal = apply(
        "linear_scan",
        *(z.primal if isinstance(z, Dual) else z for z in (a, b)),
        initial.primal if isinstance(initial, Dual) else initial,
        axis,
    )
    steps = tape.context.gamma(tape.context.depth(shape[axis] + 1))
    result.slip = result.slip + steps * (result.reach + result.slip)
    return result  # type: ignore[no-any-return]


@_rule("pad")
def pad(x: Dual, pad_width: Any, mode: str = "constant", **options: Any) -> Dual:
    """numpy.pad with constants."""
    if mode != "constant":
        raise OracleError(f"pad with mode={mode} has no rule in dual numbers", "pad")
    primal = apply("pad", x.primal, pad_width, **options)
    widths = np.broadcast_to(np.asarray(pad_width), (len(x.shape), 2))
    whole = [(0, 0), *((int(a), int(b)) for a, b in widths)]
    return linear(x.tape, primal, x, lambda t: np.pad(t, whole), 1.0)


def _constant(name: str) -> None:
    def call(x: Dual, *settings: Any, **options: Any) -> Dual:
        return combine(x.tape, apply(name, x.primal, *settings, **options), [])

    Dual.rules[name] = call


for _name in ("full_like", "ones_like", "zeros_like", "empty_like"):
    _constant(_name)


@_rule("broadcast_arrays")
def broadcast_arrays(*arrays: Any, **_: Any) -> Any:
    """All arrays in their common shape."""
    tape = tape_of(*arrays)
    members = [dual(tape, array) for array in arrays]
    shape = np.broadcast_shapes(*(member.shape for member in members))
    return tuple(apply("broadcast_to", member, shape) for member in members)


@_rule("put")
def put(x: Any, key: Any, values: Any) -> Dual:
    """A copy of x with x[key] = values."""
    result = positive(x) if isinstance(x, Dual) else dual(tape_of(values), np.array(x, float))
    result[key] = values
    return result
