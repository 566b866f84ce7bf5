"""Rules of bounded numbers: dot products, running sums and products, linear recurrences."""

import math
from typing import Any

import numpy as np

from trivet.oracles._bounded import (
    SLACK,
    Bounded,
    Facts,
    context_of,
    doubtful,
    lift,
    quantum_of,
    rule,
    settle,
    spread,
)
from trivet.oracles._context import Context
from trivet.oracles._dispatch import apply
from trivet.oracles._errors import OracleError
from trivet.oracles._formats import Array
from trivet.oracles._reductions import axes_of, roundings

# Tensor cores may truncate float32 operands to the 11 bits of tf32: 2^-10 each.
_TF32 = 2 * 2.0**-10 + 2.0**-20


def _quantum(value: Array, axis: int | None) -> Any:
    """The largest power of two that divides every number along `axis`."""
    return quantum_of(value).min(axis, initial=np.inf)


def _product_error(
    context: Context,
    magnitude: Array,
    reach: Array,
    count: int,
    factors: int,
    rescaled: bool,
    quantum: Any,
) -> Array:
    """Bound of sums of `count` products; `reach` is the sum of the operands' largest products."""
    inherited = reach - magnitude
    steps = roundings(context, count, rescaled) + factors - 1
    own = reach * context.gamma(steps)
    own = own + count * max(context.profile.underflow, context.accumulate.subnormal / 2)
    if context.allows("tf32"):
        own = own + reach * _TF32
    elif not rescaled:
        format = context.accumulate if context.accumulate.name != "float64" else context.compute
        bits = min(format.significand, context.compute.significand)
        whole = magnitude <= np.ldexp(quantum, bits)
        own = np.where((inherited == 0) & whole & (quantum >= format.subnormal), 0.0, own)
    error = (inherited + context.own("dot", own)) * SLACK
    largest = min(context.compute.largest, context.accumulate.largest)
    return np.where((reach > largest) & np.isfinite(magnitude), np.inf, error)


@rule("matmul", "dot")
def matmul(first: Any, second: Any) -> Bounded:
    """a @ b as numpy.matmul: sums of products in any order, fused or not."""
    context = context_of(first, second)
    a, b = lift(context, first), lift(context, second)
    if not a.shape or not b.shape:
        return apply("multiply", a, b)  # type: ignore[no-any-return]
    value = a.value @ b.value
    ea, eb = spread(a), spread(b)
    big_a, big_b = np.abs(a.value), np.abs(b.value)
    magnitude = np.asarray(big_a @ big_b)
    inexact = bool(ea.any() or eb.any())
    reach = np.maximum((big_a + ea) @ (big_b + eb), magnitude) if inexact else magnitude
    quantum: Any = 0.0
    if not inexact:
        right = _quantum(b.value, -2 if b.ndim > 1 else 0)
        left = _quantum(a.value, -1)
        quantum = (
            left[..., None] * right[..., None, :]
            if b.ndim > 1 and a.ndim > 1
            else (
                left * right
                if a.ndim == 1
                else left * np.expand_dims(right, -1)
                if b.ndim > 1
                else left * right
            )
        )
        quantum = np.where(np.isnan(quantum), np.inf, quantum)
    rescaled = a.facts.rescaled or b.facts.rescaled
    error = _product_error(context, magnitude, reach, a.shape[-1], 2, rescaled, quantum)
    doubt = _spoilt(ea, eb, np.matmul)
    floor = 0.0 if a.facts.floor >= 0 and b.facts.floor >= 0 else -math.inf
    return Bounded(context, value, settle(value, error, doubt), Facts(floor))


def _spoilt(ea: Array, eb: Array, product: Any) -> Any:
    """Which sums of products an undecidable operand reaches."""
    if not (np.isinf(ea).any() or np.isinf(eb).any()):
        return np.False_
    bad_a, bad_b = np.isinf(ea).astype(float), np.isinf(eb).astype(float)
    return (product(bad_a, np.ones_like(eb)) + product(np.ones_like(ea), bad_b)) > 0


@rule("einsum")
def einsum(subscripts: str, *operands: Any, **_: Any) -> Bounded:
    """numpy.einsum of any number of operands: sums of products in any order."""
    context = context_of(*operands)
    members = [lift(context, operand) for operand in operands]
    values = [member.value for member in members]
    errors = [spread(member) for member in members]

    def contract(parts: list[Array]) -> Array:
        return np.asarray(np.einsum(subscripts, *parts, optimize=len(parts) > 1))

    value = contract(values)
    sizes = [np.abs(part) for part in values]
    magnitude = contract(sizes)
    inexact = any(part.any() for part in errors)
    reach = magnitude
    if inexact:
        reach = contract([size + error for size, error in zip(sizes, errors, strict=True)])
        reach = np.maximum(reach, magnitude)
    quantum = math.prod(float(_quantum(part, None)) for part in values) if not inexact else 0.0
    quantum = math.inf if math.isnan(quantum) else quantum
    count = _contracted(subscripts, values)
    rescaled = any(member.facts.rescaled for member in members)
    error = _product_error(context, magnitude, reach, count, len(members), rescaled, quantum)
    floor = 0.0 if all(member.facts.floor >= 0 for member in members) else -math.inf
    doubt = np.isinf(reach) & any(np.isinf(part).any() for part in errors)
    return Bounded(context, value, settle(value, error, doubt | np.isnan(reach)), Facts(floor))


def _contracted(subscripts: str, values: list[Array]) -> int:
    """Number of products in each sum of an einsum."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        right = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    sizes: dict[str, int] = {}
    for part, value in zip(left.split(","), values, strict=True):
        before, _, after = part.partition("...")
        if after:
            sizes.update(zip(reversed(after), reversed(value.shape), strict=False))
        sizes.update(zip(before, value.shape, strict=False))
    return math.prod(size for letter, size in sizes.items() if letter not in right)


@rule("cumsum")
def running_sum(number: Bounded, axis: int | None = None) -> Bounded:
    """Sums of all prefixes along `axis`, each in any order.

    With "cumsum" in the contract's approx, those of a part x[c:] also as differences of prefixes of
    the whole: two sums of at most all that stands before, and the difference rounds.
    """
    if axis is None:
        number, axis = apply("ravel", number), 0
    (axis,) = axes_of(len(number.shape), axis)
    context = number.context
    error = spread(number)
    magnitude = np.abs(number.value).cumsum(axis)
    inherited = error.cumsum(axis)
    depths = np.minimum(np.arange(number.shape[axis]), context.depth(number.shape[axis]))
    steps = depths.reshape((-1,) + (1,) * (len(number.shape) - 1 - axis))
    own = context.gamma(steps * (3.02 if number.facts.rescaled else 1.0)) * (magnitude + inherited)
    value = number.value.cumsum(axis)
    whole = _whole_of(number, axis)
    if whole is not None:
        number, before = whole
        depth = context.depth(number.shape[axis])
        own = own + 2 * context.gamma(depth) * before + context.unit * (np.abs(value) + inherited)
        magnitude = np.maximum(magnitude, before)
    if not error.any() and not number.facts.rescaled and number.size:
        quantum = np.expand_dims(_quantum(number.value, axis), axis)
        own = np.where(magnitude <= np.ldexp(quantum, context.accumulate.significand), 0.0, own)
    result = (inherited + context.own("cumsum", own)) * SLACK
    over = (magnitude + inherited > context.compute.largest) & np.isfinite(magnitude)
    doubt = np.isinf(error).cumsum(axis) > 0
    floor = 0.0 if number.facts.floor >= 0 and whole is None else -math.inf
    settled = settle(value, np.where(over, np.inf, result), doubt)
    return Bounded(context, value, settled, Facts(floor))


def _whole_of(part: Bounded, axis: int) -> tuple[Bounded, Array] | None:
    """What `part` is a part of, and the sum of sizes there up to each element of the part."""
    if part.origin is None or part.origin.kind != "part":
        return None
    (whole,) = part.origin.operands
    if whole.ndim != part.ndim:
        return None
    before = (np.abs(whole.value) + spread(whole)).cumsum(axis)[part.origin.key]
    return (whole, before) if before.shape == part.shape else None


@rule("cumprod")
def running_product(number: Bounded, axis: int | None = None) -> Bounded:
    """Products of all prefixes along `axis`, in any tree."""
    if axis is None:
        number, axis = apply("ravel", number), 0
    (axis,) = axes_of(len(number.shape), axis)
    context = number.context
    error = spread(number)
    size = np.abs(number.value)
    value = number.value.cumprod(axis)
    reach = (size + error).cumprod(axis)
    steps = np.arange(number.shape[axis]).reshape((-1,) + (1,) * (len(number.shape) - 1 - axis))
    own = context.gamma(steps, context.unit) * reach
    most = np.maximum(size + error, 1.0).cumprod(axis)
    own = own + most * steps * context.profile.underflow
    whole = (np.rint(number.value) == number.value).all(axis, keepdims=True) & ~error.any()
    own = np.where(whole & (most <= 2.0**context.compute.significand), 0.0, own)
    result = (reach - np.abs(value) + context.own("cumprod", own)) * SLACK
    over = (most > context.compute.largest) & np.isfinite(size).all(axis, keepdims=True)
    doubt = np.isinf(error).cumsum(axis) > 0
    floor = 0.0 if number.facts.floor >= 0 else -math.inf
    settled = settle(value, np.where(over, np.inf, result), doubt)
    return Bounded(context, value, settled, Facts(floor))


@rule("prod")
def product(number: Bounded, axis: Any = None, keepdims: bool = False) -> Bounded:
    """The product over `axis`, in any tree."""
    axes = axes_of(len(number.shape), axis)
    kept = [index for index in range(len(number.shape)) if index not in axes]
    flat = apply("transpose", number, (*kept, *axes))
    flat = apply("reshape", flat, (*(number.shape[index] for index in kept), -1))
    if flat.shape[-1] == 0:
        result = lift(number.context, np.ones(flat.shape[:-1]))
    else:
        result = apply("getitem", running_product(flat, -1), (..., -1))
    return apply("expand_dims", result, axes) if keepdims else result


@rule("linear_scan")
def linear_scan(a: Any, b: Any, initial: Any = None, axis: int = -1) -> Bounded:
    """h_t = a_t h_(t-1) + b_t along `axis`, in any association; a and b broadcast.

    With S_t = |a| S + |b| the sum of all paths, M_t = |a| (M + S) the paths weighted with their
    numbers of products, and at most D additions on a path, the error is u (M + (D + 2) S); D is t
    (or the declared depth), which holds for sequential, chunked and tree scans alike.
    """
    context = context_of(a, b, initial)
    a, b = lift(context, a), lift(context, b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    (axis,) = axes_of(len(shape), axis)
    a = apply("moveaxis", apply("broadcast_to", a, shape), axis, 0)
    b = apply("moveaxis", apply("broadcast_to", b, shape), axis, 0)
    start = lift(context, 0.0 if initial is None else initial)
    if initial is not None and start.shape != b.shape[1:]:
        start = apply("broadcast_to", start, b.shape[1:])
    state = _ScanState(start, b.shape[1:])
    values, errors = np.empty(b.shape), np.empty(b.shape)
    for step in range(b.shape[0]):
        state.advance(a.value[step], spread(a)[step], b.value[step], spread(b)[step])
        values[step] = state.value
        errors[step] = state.bound(context, step + 1)
    result = Bounded(context, values, errors)
    return apply("moveaxis", result, 0, axis)  # type: ignore[no-any-return]


class _ScanState:
    """State, inherited error, sum of paths, weighted paths, and growth of exact products."""

    def __init__(self, start: Bounded, shape: tuple[int, ...]) -> None:
        self.value: Array = np.broadcast_to(start.value, shape)
        self.inherited: Array = np.broadcast_to(spread(start), shape)
        self.paths: Array = np.abs(self.value) + self.inherited
        self.weighted: Array = np.zeros(shape)
        self.products: Array = np.ones(shape)
        self.whole: Any = self.inherited == 0
        self.quantum: Any = np.broadcast_to(
            np.vectorize(_single_quantum, otypes=[float])(start.value), shape
        )
        self.most: Array = self.paths

    def advance(self, a: Array, ea: Array, b: Array, eb: Array) -> None:
        """Take one step."""
        size = np.abs(a) + ea
        before = np.abs(self.value) + self.inherited
        self.inherited = np.abs(a) * self.inherited + ea * before + eb
        self.weighted = size * (self.weighted + self.paths)
        self.paths = size * self.paths + np.abs(b) + eb
        self.products = np.maximum(np.abs(a), 1.0) * self.products
        self.whole = self.whole & (ea == 0) & (eb == 0) & (np.rint(a) == a)
        self.quantum = np.minimum(self.quantum, _quantum(b[None], 0))
        self.value = a * self.value + b
        self.most = np.maximum(self.most, self.paths)

    def bound(self, context: Context, additions: int) -> Any:
        """Bound of the present state after `additions` steps."""
        depth = min(additions, context.depth(additions + 1))
        unit = context.gamma(1)
        own = unit * (self.weighted + (depth + 2) * self.paths) * (1 + 2 * additions * unit)
        own = own + 2 * additions * context.profile.underflow * self.products
        limit = 2.0**context.accumulate.significand
        fits = (self.most * self.products <= self.quantum * limit) & (self.products <= limit)
        own = np.where(self.whole & fits, 0.0, own)
        error = (self.inherited + context.own("linear_scan", own)) * SLACK
        error = np.where(
            (self.most > context.compute.largest) & np.isfinite(self.most), np.inf, error
        )
        return settle(self.value, error, doubtful(self.inherited) | np.isnan(self.inherited))


def _single_quantum(value: float) -> float:
    return float(_quantum(np.asarray([value]), 0))


@rule("linalg_norm")
def norm(number: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The Euclidean norm over `axis`."""
    if ord not in (None, 2, "fro"):
        raise OracleError(f"linalg.norm with ord={ord} has no rule", "linalg_norm")
    return apply("sqrt", apply("sum", apply("square", number), axis=axis, keepdims=keepdims))
