"""Number systems of single numbers: an object array of them, and the rules made from an algebra.

The systems at 113 bits are such: `_multiprecision` (mpmath) and `_arb` (balls of python-flint).
What an algebra knows of one number, or of two, serves whole arrays here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trivet.oracles._bounded import Bounded
from trivet.oracles._context import Context
from trivet.oracles._dispatch import PLAIN, Rule
from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import Argument, Oracle, call_traced, outputs_of
from trivet.oracles._namespace import Namespace
from trivet.oracles._operators import Operators
from trivet.oracles._precision import Precision
from trivet.oracles._profile import profile_named
from trivet.oracles._reductions import axes_of
from trivet.oracles._structure import MANY, ONE

Objects = npt.NDArray[np.object_]

BITS = 113


@dataclass(frozen=True)
class Algebra:
    """What can be done with single numbers of one kind.

    `make` gives the number of a Python float or int, exactly; `less` and `equal` decide (False
    with a NaN) or raise Undecidable; `whole` is the integer nearest towards zero.
    """

    kind: type
    make: Callable[[Any], Any]
    one: Mapping[str, Callable[[Any], Any]]
    two: Mapping[str, Callable[[Any, Any], Any]]
    less: Callable[[Any, Any], bool]
    equal: Callable[[Any, Any], bool]
    is_nan: Callable[[Any], bool]
    is_finite: Callable[[Any], bool]
    whole: Callable[[Any], int]


class Numbers(Operators):
    """An array of single numbers: `value` is an object array of the algebra's kind."""

    __slots__ = ("value",)
    algebra: ClassVar[Algebra]

    def __init__(self, context: Context, value: Any) -> None:
        self.context = context
        self.value: Objects = np.asarray(value, object)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64: what the numbers stand for."""
        return np.dtype(np.float64)

    def __setitem__(self, key: Any, item: Any) -> None:
        self.value[key] = lifted(self.algebra, _plain(item))


def outputs(
    system: type[Numbers], oracle: Oracle, arguments: Mapping[str, Argument]
) -> list[Numbers | npt.NDArray[Any] | None]:
    """The outputs of `oracle` in a number system; floats arrive as exact numbers of it."""
    context = Context(profile_named("simulator"), Precision())

    def numbers(value: Any) -> Numbers:
        return system(context, lifted(system.algebra, value))

    namespace = Namespace(context, lambda number: numbers(number.value))
    traced = {
        name: numbers(value) if _is_float(value) else _copied(value)
        for name, value in arguments.items()
    }
    return outputs_of(call_traced(oracle, traced, namespace))


def _is_float(value: Any) -> bool:
    return value is not None and np.asarray(value).dtype.kind == "f"


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def lifted(algebra: Algebra, value: Any) -> Objects:
    """Plain numbers as the algebra's, exactly; what is of its kind stays."""
    array = np.asarray(value)
    exact = np.empty(array.shape, object)
    exact.ravel()[:] = [
        number if isinstance(number, algebra.kind) else algebra.make(number)
        for number in array.ravel().tolist()
    ]
    return exact


def _plain(operand: Any) -> Any:
    """An operand as an object array, or as it is where it is no number of ours."""
    if isinstance(operand, Numbers | Bounded):
        return operand.value
    if isinstance(operand, list | tuple):
        return type(operand)(map(_plain, operand))
    return operand


def _context(operands: Iterable[Any]) -> Context:
    for operand in operands:
        if isinstance(operand, Numbers):
            return operand.context
        if isinstance(operand, list | tuple) and any(isinstance(x, Numbers) for x in operand):
            return _context(operand)
    raise OracleError("no number of the system among the operands")


def install(system: type[Numbers]) -> None:
    """Fill the rules of a number system from its algebra."""
    algebra = system.algebra
    lift = _Lifting(algebra)
    for name, function in {**ONE, **MANY, **_MOVES}.items():
        _wrap(system, name, function)
    for name, single in algebra.one.items():
        _wrap(system, name, lift.each(single, 1))
    for name, pair in algebra.two.items():
        _wrap(system, name, lift.each(pair, 2))
    for name, function in _arithmetic(lift).items():
        _wrap(system, name, function)
    for name, function in {**_decisions(lift), **_orders(algebra)}.items():
        system.rules[name] = _bare(function)
    ordered = _orders(algebra)["argsort"]
    _wrap(system, "sort", lambda array, axis=-1, **_: _chosen(array, ordered(array, axis), axis))
    system.rules["topk"] = _topk(system, ordered)
    system.rules["astype"] = system.rules["cast"] = _cast(algebra)
    for name in ("shape", "ndim", "size"):
        system.rules[name] = Bounded.rules[name]


def _wrap(system: type[Numbers], name: str, function: Rule) -> None:
    """Register a function of object arrays that returns one, or several."""

    def wrapped(context: Context, result: Any) -> Any:
        if isinstance(result, list | tuple):
            return type(result)(wrapped(context, part) for part in result)
        return system(context, result)

    def call(*operands: Any, **options: Any) -> Any:
        context = _context((*operands, *options.values()))
        settings = {key: _plain(value) for key, value in options.items()}
        return wrapped(context, function(*map(_plain, operands), **settings))

    system.rules[name] = call


def _bare(function: Rule) -> Rule:
    """A function of object arrays whose result is no number of the system."""

    def call(*operands: Any, **options: Any) -> Any:
        return function(*map(_plain, operands), **options)

    return call


class _Lifting:
    """Functions of single numbers as functions of arrays, plain operands lifted."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra

    def __call__(self, value: Any) -> Objects:
        return lifted(self.algebra, value)

    def each(self, function: Callable[..., Any], count: int) -> Rule:
        """Elementwise, as a NumPy function."""
        spread = np.frompyfunc(function, count, 1)
        return lambda *operands, **_: spread(*map(self, operands))

    def folded(self, function: Callable[[Any, Any], Any]) -> Rule:
        """A function of two numbers over axes."""
        each = np.frompyfunc(function, 2, 1)

        def call(array: Objects, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
            for place in reversed(axes_of(array.ndim, axis)):
                folded = each.reduce(array, axis=place)
                array = np.expand_dims(np.asarray(folded, object), place) if keepdims else folded
            return np.asarray(array, object)

        return call

    def plain(self, name: str) -> Rule:
        """NumPy's own function of object arrays; an empty one gives Python's numbers."""
        return lambda array, *settings, **options: self(PLAIN[name](array, *settings, **options))


def _arithmetic(lift: _Lifting) -> dict[str, Rule]:
    """Rules that compute new numbers from arrays."""
    greater, smaller = (lift.algebra.two[name] for name in ("maximum", "minimum"))
    nearest = lift.each(lift.algebra.one["rint"], 1)

    def where(condition: Any, first: Any, second: Any) -> Any:
        return np.where(condition, lift(first), lift(second))

    def clip(array: Any, low: Any = None, high: Any = None, **options: Any) -> Any:
        low, high = options.get("min", low), options.get("max", high)
        array = array if low is None else lift.each(greater, 2)(array, low)
        return array if high is None else lift.each(smaller, 2)(array, high)

    def scatter_add(target: Any, key: Any, values: Any) -> Any:
        np.add.at(target, key, lift(values))
        return target

    def rounded(array: Any, decimals: int = 0) -> Any:
        scale = lift(10) ** lift(decimals)
        return nearest(array * scale) / scale if decimals else nearest(array)

    return {
        "where": where, "clip": clip, "round": rounded, "scatter_add": scatter_add,
        "put": lambda array, key, values: PLAIN["put"](array, key, lift(values)),
        "max": lift.folded(greater), "min": lift.folded(smaller),
        "cummax": lambda array, axis=0: np.frompyfunc(greater, 2, 1).accumulate(array, axis=axis),
        "cummin": lambda array, axis=0: np.frompyfunc(smaller, 2, 1).accumulate(array, axis=axis),
        **_sums(lift),
    }  # fmt: skip


def _sums(lift: _Lifting) -> dict[str, Rule]:
    """Sums, products, means and recurrences."""
    exp, log = (lift.each(lift.algebra.one[name], 1) for name in ("exp", "log"))

    def mean(array: Objects, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
        total = lift(np.sum(array, axis=axis, keepdims=keepdims))
        return total / (lift(array.size) / lift(max(np.size(total), 1)))

    def log_sum_exp(array: Objects, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
        return log(np.sum(exp(array), axis=axis, keepdims=keepdims))

    def linear_scan(a: Any, b: Any, initial: Any = None, axis: int = -1) -> Any:
        a, b = (np.moveaxis(part, axis, 0) for part in np.broadcast_arrays(lift(a), lift(b)))
        state = np.broadcast_to(lift(0.0 if initial is None else initial), b.shape[1:])
        states = np.empty(b.shape, object)
        for step in range(len(b)):
            state = states[step] = a[step] * state + b[step]
        return np.moveaxis(states, 0, axis)

    def product(left: Any, right: Any) -> Any:
        return lift(lift(left) @ lift(right))

    return {
        "mean": mean, "logsumexp": log_sum_exp, "linear_scan": linear_scan,
        "matmul": product, "dot": product,
        "einsum": lambda text, *parts, **_: np.einsum(text, *map(lift, parts), optimize=False),
        **{name: lift.plain(name) for name in ("sum", "prod", "cumsum", "cumprod")},
    }  # fmt: skip


def _decisions(lift: _Lifting) -> dict[str, Rule]:
    """Comparisons and questions: bool arrays."""
    algebra = lift.algebra
    less, equal, is_nan = algebra.less, algebra.equal, algebra.is_nan

    def known(a: Any, b: Any) -> bool:
        return not (is_nan(a) or is_nan(b))

    def infinite(x: Any) -> bool:
        return not (algebra.is_finite(x) or is_nan(x))

    def asked(function: Callable[..., bool], count: int) -> Rule:
        spread = lift.each(function, count)
        return lambda *operands, **_: np.asarray(spread(*operands), bool)

    return {
        "less": asked(less, 2),
        "greater": asked(lambda a, b: less(b, a), 2),
        "less_equal": asked(lambda a, b: known(a, b) and not less(b, a), 2),
        "greater_equal": asked(lambda a, b: known(a, b) and not less(a, b), 2),
        "equal": asked(equal, 2),
        "not_equal": asked(lambda a, b: not equal(a, b), 2),
        "isnan": asked(is_nan, 1),
        "isfinite": asked(algebra.is_finite, 1),
        "isinf": asked(infinite, 1),
    }


def _orders(algebra: Algebra) -> dict[str, Rule]:
    """Indices by size: ties by index, NaN after all others, as NumPy has it."""

    def compare(a: Any, b: Any) -> int:
        if algebra.is_nan(a) or algebra.is_nan(b):
            return algebra.is_nan(a) - algebra.is_nan(b)
        return algebra.less(b, a) - algebra.less(a, b)

    key = cmp_to_key(compare)

    def order(row: Objects) -> list[int]:
        return sorted(range(len(row)), key=lambda place: key(row[place]))

    def best(better: Callable[[Any, Any], bool]) -> Callable[[Objects], int]:
        def index(row: Objects) -> int:
            found = 0
            for place in range(1, len(row)):
                if algebra.is_nan(row[found]):
                    return found
                if algebra.is_nan(row[place]) or better(row[place], row[found]):
                    found = place
            return found

        return index

    def chosen(better: Callable[[Any, Any], bool]) -> Rule:
        index = best(better)

        def call(array: Any, axis: int | None = None, keepdims: bool = False) -> Any:
            array, place = (array.ravel(), 0) if axis is None else (array, axis)
            found = _by_row(lambda row: [index(row)], array, place, 1)
            return found if keepdims else np.squeeze(found, place)

        return call

    return {
        "argsort": lambda array, axis=-1, **_: _by_row(order, array, axis, array.shape[axis]),
        "argmax": chosen(lambda a, b: algebra.less(b, a)),
        "argmin": chosen(algebra.less),
    }


def _by_row(function: Callable[[Objects], list[int]], array: Any, axis: int, count: int) -> Any:
    """`count` indices for each row along `axis`."""
    rows = np.moveaxis(array, axis, -1)
    indices = np.empty((*rows.shape[:-1], count), np.int64)
    for place in np.ndindex(rows.shape[:-1]):
        indices[place] = function(rows[place])
    return np.moveaxis(indices, -1, axis)


def _chosen(array: Any, order: Any, axis: int) -> Any:
    return np.take_along_axis(array, order, axis)


def _topk(system: type[Numbers], ordered: Rule) -> Rule:
    def topk(array: Numbers, k: int, axis: int = -1, largest: bool = True) -> tuple[Any, Any]:
        order = ordered(-array.value if largest else array.value, axis)
        order = np.take(order, np.arange(k), axis)
        return system(array.context, _chosen(array.value, order, axis)), order

    return topk


def _cast(algebra: Algebra) -> Rule:
    def cast(array: Numbers, dtype: Any, **_: Any) -> Any:
        """Floats keep their exact value, as in float64; whole numbers are cut towards zero."""
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        if not name.startswith(("int", "uint", "bool")):
            return array
        whole = [algebra.whole(number) for number in array.value.ravel()]
        return np.asarray(whole, np.int64).reshape(array.shape).astype(name)

    return cast


_MOVES: dict[str, Rule] = {
    "copy": np.copy,
    "asarray": lambda array, *_, **__: np.asarray(array, object),
    "array": lambda array, *_, **__: np.array(array, object),
}
