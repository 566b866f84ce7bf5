"""Mutations of an oracle's plan: what a kernel that gets one step wrong would compute.

A mutation changes the value of one operation, in float64, and leaves the bound of the right plan
alone. Where no generated input moves the result out of its bound, no gate can see the mistake.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivet.oracles import _special
from trivet.oracles._bounded import Bounded, context_of, lift
from trivet.oracles._formats import Array
from trivet.oracles._reductions import axes_of, centred, count_of

# A positive number up to this, added or as a lower end, is taken for an epsilon.
_EPSILON = 1e-3
# Products that a matrix unit adds at once before it rounds its accumulator.
_BLOCK = 16
# The bits of a float32 that tf32 has not.
_BEYOND_TF32 = np.uint32(0xFFFFE000)


@dataclass(frozen=True)
class Call:
    """One operation of an oracle that is being evaluated in bounded numbers."""

    name: str
    rule: Callable[..., Any]
    operands: tuple[Any, ...]
    options: Mapping[str, Any]

    def run(self, *operands: Any) -> Any:
        """What the rule makes of other operands; the result does not remember how it was made."""
        return forgetful(self.rule(*operands, **self.options))

    def with_value(self, value: Any) -> Any:
        """The rule's own result with another value."""
        result = self.rule(*self.operands, **self.options)
        return Bounded(result.context, np.reshape(value, result.shape), result.error)

    def setting(self, name: str, position: int, default: Any = None) -> Any:
        """An argument that may be given by position or by name."""
        if position < len(self.operands):
            return self.operands[position]
        return self.options.get(name, default)


Change = Callable[[Call], Any]


@dataclass(frozen=True)
class Mutation:
    """`change` returns the mutated result of an operation, or None where there is none."""

    name: str
    operations: tuple[str, ...]
    change: Change


MUTATIONS: dict[str, Mutation] = {}


def mutation(name: str, *operations: str) -> Callable[[Change], Change]:
    """Register a function as the mutation `name` of these operations."""

    def register(change: Change) -> Change:
        MUTATIONS[name] = Mutation(name, operations, change)
        return change

    return register


def forgetful(result: Any) -> Any:
    """A number without its origin, so that no rule recomputes it from what it was made of."""
    if isinstance(result, Bounded):
        result.origin = None
    return result


def replaced(number: Bounded, value: Array) -> Bounded:
    """`number` with another value."""
    return Bounded(number.context, value, number.error, number.facts, number.origin)


def _single(array: Any) -> Array:
    """Rounded to float32, and what passes its largest number infinite."""
    return np.asarray(array).astype(np.float32).astype(np.float64)


def _half(array: Any) -> Array:
    return np.asarray(array).astype(np.float16).astype(np.float64)


@mutation("drops the last term", "sum", "mean", "matmul", "dot", "einsum", "cumsum", "linear_scan")
def drop_last_term(call: Call) -> Any:
    """The last term of a sum is missing, as when a mask ends one too early."""
    position, axis = _last_axis(call)
    number = call.operands[position] if axis is not None else None
    if axis is None or not isinstance(number, Bounded) or number.shape[axis] < 2:
        return None
    value = number.value.copy()
    value[(slice(None),) * (axis % value.ndim) + (-1,)] = 0.0
    operands = list(call.operands)
    operands[position] = replaced(number, value)
    return call.run(*operands)


def _last_axis(call: Call) -> tuple[int, int | None]:
    """Which operand holds the terms, and along which axis."""
    if call.name == "einsum":
        axes = _contracted_axes(call)
        return next(((n + 1, axis) for n, axis in enumerate(axes) if axis is not None), (0, None))
    if call.name == "linear_scan":
        return 1, call.setting("axis", 3, -1)
    number = call.operands[0]
    if not isinstance(number, Bounded) or not number.shape:
        return 0, None
    if call.name in ("matmul", "dot"):
        return 0, len(number.shape) - 1
    summed = axes_of(len(number.shape), call.setting("axis", 1))
    return 0, summed[-1] if summed else None


def _contracted_axes(call: Call) -> list[int | None]:
    """The axis of each operand of an einsum that its first contracted letter stands for."""
    left, _, right = str(call.operands[0]).replace(" ", "").partition("->")
    parts = left.split(",")
    letters = [x for x in left if x.isalpha() and x not in right]
    if not right and "->" not in str(call.operands[0]):
        letters = [x for x in letters if left.count(x) > 1]
    if not letters:
        return [None] * len(parts)
    return [_axis_in(part, letters[0]) for part in parts]


def _axis_in(part: str, letter: str) -> int | None:
    before, _, after = part.partition("...")
    if letter in before:
        return before.index(letter)
    return after.index(letter) - len(after) if letter in after else None


@mutation(
    "accumulates in half precision", "sum", "mean", "matmul", "dot", "einsum", "cumsum",
    "linear_scan",
)  # fmt: skip
def accumulate_in_half(call: Call) -> Any:
    """Partial sums are rounded to float16, by a tree (the kindest order) or a block at a time."""
    operands = call.operands[1:] if call.name == "einsum" else call.operands
    context = context_of(*operands)
    if context.accumulate.name not in ("float32", "float64"):
        return None
    if call.name in ("sum", "mean"):
        return _half_tree(call)
    if call.name == "cumsum":
        return _half_running(call)
    if call.name == "linear_scan":
        return call.with_value(scanned(call, narrow=_half))
    return _half_blocks(call)


def _half_tree(call: Call) -> Any:
    number = call.operands[0]
    if not isinstance(number, Bounded) or call.setting("where", 4) is not None:
        return None
    axes = axes_of(len(number.shape), call.setting("axis", 1))
    count = count_of(number, axes)
    if count < 2:
        return None
    ends = range(-len(axes), 0)
    terms = np.moveaxis(number.value, axes, ends)
    terms = _half(terms.reshape((*terms.shape[: terms.ndim - len(axes)], count)))
    while terms.shape[-1] > 1:
        odd = terms[..., -1:] if terms.shape[-1] % 2 else terms[..., :0]
        halves = _half(terms[..., 0:-1:2] + terms[..., 1::2])
        terms = np.concatenate([halves, odd], axis=-1)
    return call.with_value(terms / count if call.name == "mean" else terms)


def _half_running(call: Call) -> Any:
    number, axis = call.operands[0], call.setting("axis", 1)
    if axis is None or number.shape[axis] < 2:
        return None
    return call.with_value(np.cumsum(number.value.astype(np.float16), axis, dtype=np.float16))


def _half_blocks(call: Call) -> Any:
    """A product of matrices, `_BLOCK` terms at a time."""
    if call.name == "einsum":
        subscripts, *factors = call.operands
        axes = _contracted_axes(call)
    else:
        subscripts, factors = "", list(call.operands)
        axes = [-1, -2 if len(np.shape(factors[1])) > 1 else 0]
    values = [lift(context_of(*factors), factor).value for factor in factors]
    sizes = [v.shape[a] for v, a in zip(values, axes, strict=True) if a is not None and v.ndim]
    if not sizes or sizes[0] < 2:
        return None
    total: Any = 0.0
    for start in range(0, sizes[0], _BLOCK):
        parts = [_part(v, a, start) for v, a in zip(values, axes, strict=True)]
        block = np.einsum(subscripts, *parts) if subscripts else parts[0] @ parts[1]
        total = _half(total + block)
    return call.with_value(total)


def _part(value: Array, axis: int | None, start: int) -> Array:
    if axis is None:
        return value
    return value[(slice(None),) * (axis % value.ndim) + (slice(start, start + _BLOCK),)]


@mutation("takes tf32 inputs", "matmul", "dot", "einsum")
def take_tf32(call: Call) -> Any:
    """The operands of a dot product lose all but 11 bits."""
    first = 1 if call.name == "einsum" else 0
    factors = call.operands[first:]
    context = context_of(*factors)
    if context.allows("tf32"):
        return None
    numbers = [lift(context, factor) for factor in factors]
    narrow = [_tf32(number.value) for number in numbers]
    if all(
        np.array_equal(n.value, v, equal_nan=True) for n, v in zip(numbers, narrow, strict=True)
    ):
        return None
    changed = [replaced(n, v) for n, v in zip(numbers, narrow, strict=True)]
    return call.run(*call.operands[:first], *changed)


def _tf32(value: Array) -> Array:
    bits = value.astype(np.float32).view(np.uint32) & _BEYOND_TF32
    return bits.view(np.float32).astype(np.float64)


@mutation("drops eps", "add", "maximum")
def drop_epsilon(call: Call) -> Any:
    """A small positive constant is not added, or not taken as the lower end."""
    context = context_of(*call.operands)
    for epsilon, other in (call.operands, call.operands[::-1]):
        small = np.asarray(epsilon.value if isinstance(epsilon, Bounded) else epsilon)
        if small.ndim or small.dtype.kind != "f" or not 0 < float(small) <= _EPSILON:
            continue
        number = lift(context, other)
        return Bounded(context, number.value.copy(), number.error.copy())
    return None


@mutation("carries a stale state", "linear_scan", "cumsum", "getitem")
def carry_stale_state(call: Call) -> Any:
    """One step in the middle continues from the state before last, or reads the row before."""
    if call.name == "getitem":
        return _row_before(call)
    if call.name == "linear_scan":
        size = np.shape(call.operands[0])[call.setting("axis", 3, -1)]
        return call.with_value(scanned(call, stale=size // 2)) if size > 2 else None
    number, axis = call.operands[0], call.setting("axis", 1)
    if axis is None or number.shape[axis] < 3:
        return None
    terms = np.moveaxis(number.value.copy(), axis, 0)
    terms[len(terms) // 2 - 1] = 0.0
    later = np.moveaxis(np.cumsum(terms, 0), 0, axis)
    right = np.cumsum(number.value, axis)
    place = np.arange(number.shape[axis]) < number.shape[axis] // 2
    shape = (-1,) + (1,) * (number.value.ndim - 1 - axis % number.value.ndim)
    return call.with_value(np.where(place.reshape(shape), right, later))


def _row_before(call: Call) -> Any:
    array, key = call.operands
    keys = list(key) if isinstance(key, tuple) else [key]
    for position, index in enumerate(keys):
        if isinstance(index, (int, np.integer)) and not isinstance(index, bool) and index > 0:
            keys[position] = index - 1
            return call.run(array, tuple(keys))
    return None


def scanned(
    call: Call, narrow: Callable[[Any], Array] = np.asarray, stale: int | None = None
) -> Array:
    """A linear recurrence in sequence; `narrow` rounds its state, step `stale` uses an old one."""
    context = context_of(*call.operands)
    a, b = (lift(context, operand).value for operand in call.operands[:2])
    axis = call.setting("axis", 3, -1)
    a, b = (np.moveaxis(part, axis, 0) for part in np.broadcast_arrays(a, b))
    initial = call.setting("initial", 2)
    state = np.zeros(b.shape[1:]) if initial is None else lift(context, initial).value
    before = state = np.broadcast_to(state, b.shape[1:])
    states = np.empty(b.shape)
    for step in range(len(b)):
        used = before if step == stale else state
        before, state = state, narrow(a[step] * used + b[step])
        states[step] = state
    return np.moveaxis(states, 0, axis)


@mutation("computes expm1 as exp(x) - 1", "expm1")
def subtract_one(call: Call) -> Any:
    """exp(x) - 1, which cancels near 0."""
    return _elementwise(call, "expm1", lambda x: _single(_single(np.exp(x)) - 1.0))


@mutation("computes log1p as log(1 + x)", "log1p")
def add_one(call: Call) -> Any:
    """log(1 + x), which loses small x."""
    return _elementwise(call, "log1p", lambda x: _single(np.log(_single(1.0 + x))))


@mutation("computes softplus as log(1 + exp(x))", "softplus")
def add_one_to_exponential(call: Call) -> Any:
    """log(1 + exp(x)), which overflows and loses small results."""
    return _elementwise(
        call, "softplus", lambda x: _single(np.log(_single(1.0 + _single(np.exp(x)))))
    )


@mutation("computes tanh as 2 sigmoid(2x) - 1", "tanh")
def scale_sigmoid(call: Call) -> Any:
    """2 sigmoid(2x) - 1, which cancels near 0."""
    return _elementwise(call, "tanh", lambda x: _single(2 * _single(_special.sigmoid(2 * x)) - 1.0))


def _elementwise(call: Call, name: str, function: Callable[[Array], Array]) -> Any:
    number = call.operands[0]
    if not isinstance(number, Bounded) or number.context.allows(name):
        return None
    return call.with_value(function(number.value))


@mutation("computes the variance in one pass", "sum", "mean")
def one_pass_variance(call: Call) -> Any:
    """E[x^2] - E[x]^2, which cancels where the mean is large beside the spread."""
    number = call.operands[0]
    if not isinstance(number, Bounded) or number.context.allows("variance"):
        return None
    axes = axes_of(len(number.shape), call.setting("axis", 1))
    deviations = centred(number, axes)
    count = count_of(number, axes)
    if deviations is None or count < 2:
        return None
    x = deviations[1].value
    average = _single(x.sum(axes) / count)
    variance = _single(_single((x * x).sum(axes) / count) - _single(average * average))
    return call.with_value(variance * count if call.name == "sum" else variance)


@mutation("does not subtract the maximum", "exp")
def keep_maximum(call: Call) -> Any:
    """Weights relative to a row's maximum as exp(x) / exp(maximum): right until it overflows."""
    number = call.operands[0]
    if not isinstance(number, Bounded) or number.origin is None:
        return None
    if number.origin.kind != "difference":
        return None
    x, shared = number.origin.operands
    if not 0 < shared.size < x.size == number.size:
        return None
    return call.with_value(_single(np.exp(x.value)) / _single(np.exp(shared.value)))


def scaled(value: Array, error: Array | None) -> tuple[Array, Array | None]:
    """An output a hundred-thousandth too large, and its bound."""
    factor = 1 + 1e-5
    return value * factor, None if error is None else error * factor


def operations() -> dict[str, list[Mutation]]:
    """Return the mutations of each operation."""
    table: dict[str, list[Mutation]] = {}
    for known in MUTATIONS.values():
        for name in known.operations:
            table.setdefault(name, []).append(known)
    return table
