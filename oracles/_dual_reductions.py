"""Rules of dual numbers: reductions, order, products and recurrences."""

import math
from typing import Any

import numpy as np

from trivet.oracles._bounded import Bounded, lift
from trivet.oracles._discrete import parts
from trivet.oracles._dispatch import Rule, apply
from trivet.oracles._dual import (
    STEPS,
    Dual,
    Tape,
    broadcast,
    combine,
    dual,
    dual_rule,
    linear,
    lose,
    plain_key,
    tape_of,
)
from trivet.oracles._dual_rules import add, multiply, positive
from trivet.oracles._errors import OracleError
from trivet.oracles._reductions import axes_of


def _shifted(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis + 1 for axis in axes)


@dual_rule("sum")
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


@dual_rule("mean")
def mean(x: Dual, axis: Any = None, keepdims: bool = False) -> Dual:
    """The mean over `axis`."""
    axes = axes_of(len(x.shape), axis)
    primal = apply("mean", x.primal, axis=axes, keepdims=keepdims)
    return linear(
        x.tape, primal, x, lambda t: t.mean(_shifted(axes), keepdims=keepdims), 1.0, STEPS
    )


@dual_rule("cumsum")
def running_sum(x: Dual, axis: int | None = None) -> Dual:
    """Sums of all prefixes: element i is used by all later ones."""
    if axis is None:
        x, axis = apply("ravel", x), 0
    (axis,) = axes_of(len(x.shape), axis)
    later = np.arange(x.shape[axis], 0, -1.0)
    uses = later.reshape((-1,) + (1,) * (len(x.shape) - 1 - axis))
    primal = apply("cumsum", x.primal, axis=axis)
    return linear(x.tape, primal, x, lambda t: t.cumsum(axis + 1), uses)


@dual_rule("prod")
def product(x: Dual, axis: Any = None, keepdims: bool = False) -> Dual:
    """The product over `axis`: the partials are products of the others, or quotients of it."""
    axes = axes_of(len(x.shape), axis)
    others = _products_of_others(x.primal, axes)
    size = np.abs(x.primal.value) + x.primal.error
    reached = np.prod(np.maximum(size, 1.0), axis=axes, keepdims=True)
    lose(x, np.broadcast_to(reached * math.prod(x.shape[i] for i in axes), x.shape))
    inner = combine(x.tape, others, [(x, others, STEPS + 1)])
    result = total(inner, axes, keepdims)
    result.primal = apply("prod", x.primal, axis=axes, keepdims=keepdims)
    return result


def _products_of_others(number: Bounded, axes: tuple[int, ...]) -> Bounded:
    """For each element the product of all others over `axes`."""
    kept = [i for i in range(len(number.shape)) if i not in axes]
    moved = apply("transpose", number, (*kept, *axes))
    rows = apply("reshape", moved, (*(number.shape[i] for i in kept), -1))
    one = apply("ones_like", rows[..., :1])
    before = apply("concatenate", [one, apply("cumprod", rows[..., :-1], axis=-1)], axis=-1)
    later = apply("flip", rows, -1)[..., :-1]
    after = apply("concatenate", [one, apply("cumprod", later, axis=-1)], axis=-1)
    result = apply("reshape", before * apply("flip", after, -1), moved.shape)
    return lift(number.context, apply("transpose", result, np.argsort((*kept, *axes))))


@dual_rule("cumprod")
def running_product(x: Dual, axis: int | None = None) -> Dual:
    """Products of all prefixes: element i is used by all later ones."""
    if axis is None:
        x, axis = apply("ravel", x), 0
    (axis,) = axes_of(len(x.shape), axis)
    moved = apply("moveaxis", x, axis, 0)
    if not len(moved):
        return x
    # A chain passes each contribution on once; a sum of them all has as many terms as uses.
    moved.uses += np.arange(len(moved) - 1, -1, -1.0).reshape((-1,) + (1,) * (moved.ndim - 1))
    states = [moved[0]]
    for step in range(1, len(moved)):
        states.append(multiply(states[-1], moved[step]))
    result = apply("moveaxis", apply("stack", states), 0, axis)
    result.primal = apply("cumprod", x.primal, axis=axis)
    return result  # type: ignore[no-any-return]


@dual_rule("add_at", "scatter_add")
def scatter_add(target: Any, key: Any, values: Any) -> Dual:
    """target[key] += values, repeated indices added, in place where `target` is dual."""
    tape = tape_of(target, values)
    x, y = dual(tape, target), dual(tape, values)
    apply("scatter_add", x.primal, key, y.primal)
    index = np.arange(x.size).reshape(x.shape)[plain_key(key)]
    y.uses += index.size / max(y.size, 1)
    for name in ("tangent", "reach", "slip"):
        flat = getattr(x, name).reshape(tape.count, x.size)
        moved = broadcast(getattr(y, name), np.shape(index))
        for row, share in zip(flat, moved, strict=True):
            np.add.at(row, index, share)
    return x


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
        alive = rows.reach.any(-1).reshape(chosen.reach.shape)
        slip = np.where(doubt & alive, np.inf, chosen.slip)
        return Dual(x.tape, primal, chosen.tangent, chosen.reach, slip)

    Dual.rules[name] = call


_peak("max", "argmax")
_peak("min", "argmin")


@dual_rule("sort")
def sort(x: Dual, axis: int = -1, **_: Any) -> Dual:
    """Ascending order: tangents follow their elements; undecidable where order is in doubt."""
    order, doubt = parts(apply("argsort", x.primal, axis))
    result = apply("take_along_axis", x, order, axis)
    result.primal = apply("sort", x.primal, axis)
    result.slip = np.where(np.broadcast_to(doubt, result.shape), np.inf, result.slip)
    return result  # type: ignore[no-any-return]


@dual_rule("topk")
def topk(x: Dual, k: int, axis: int = -1, largest: bool = True) -> tuple[Dual, Any]:
    """The k largest (or smallest) elements, best first, and their indices."""
    order = apply("argsort", apply("negative", x.primal) if largest else x.primal, axis)
    (axis,) = axes_of(len(x.shape), axis)
    head = (slice(None),) * axis + (slice(0, k),)
    ordered = sort(x, axis)
    ordered = apply("flip", ordered, axis) if largest else ordered
    return ordered[head], order[head]


@dual_rule("logsumexp")
def log_sum_exp(x: Dual, axis: Any = None, keepdims: bool = False) -> Dual:
    """log(sum(exp(x))): the partials are the softmax weights."""
    axes = axes_of(len(x.shape), axis)
    kept = apply("logsumexp", x.primal, axis=axes, keepdims=True)
    weights = apply("exp", x.primal - kept)
    inner = combine(x.tape, weights, [(x, weights, STEPS)])
    result = total(inner, axes, keepdims)
    result.primal = kept if keepdims else apply("squeeze", kept, axes)
    return result


# Products ---------------------------------------------------------------------------------------


@dual_rule("matmul", "dot")
def matmul(a: Any, b: Any) -> Dual:
    """a @ b."""
    tape = tape_of(a, b)
    x, y = dual(tape, a), dual(tape, b)
    primal = apply("matmul", x.primal, y.primal)
    if not x.shape or not y.shape:
        return multiply(x, y)
    x.uses += primal.size / max(math.prod(x.shape[:-1]), 1)
    y.uses += primal.size / max(y.size // max(y.shape[-2 if y.ndim > 1 else 0], 1), 1)

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
    slip = slip + STEPS * tape.context.unit * (reach + slip)
    shape = (tape.count, *primal.shape)
    return Dual(tape, primal, tangent.reshape(shape), reach.reshape(shape), slip.reshape(shape))


@dual_rule("einsum")
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


@dual_rule("linear_scan")
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


@dual_rule("pad")
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


@dual_rule("broadcast_arrays")
def broadcast_arrays(*arrays: Any, **_: Any) -> Any:
    """All arrays in their common shape."""
    tape = tape_of(*arrays)
    members = [dual(tape, array) for array in arrays]
    shape = np.broadcast_shapes(*(member.shape for member in members))
    return tuple(apply("broadcast_to", member, shape) for member in members)


@dual_rule("put")
def put(x: Any, key: Any, values: Any) -> Dual:
    """A copy of x with x[key] = values."""
    result = positive(x) if isinstance(x, Dual) else dual(tape_of(values), np.array(x, float))
    result[key] = values
    return result
