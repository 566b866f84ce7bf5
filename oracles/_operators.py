"""Operators, methods and attributes of traced arrays: all of them end in `apply`."""

import operator
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from trivet.oracles._dispatch import Rule, Traced, apply
from trivet.oracles._errors import OracleError


def _binary(name: str) -> tuple[Rule, Rule]:
    def forward(self: Any, other: Any) -> Any:
        return NotImplemented if other is None else apply(name, self, other)

    def reflected(self: Any, other: Any) -> Any:
        return NotImplemented if other is None else apply(name, other, self)

    return forward, reflected


def _unary(name: str) -> Rule:
    def call(self: Any) -> Any:
        return apply(name, self)

    return call


def _method(name: str) -> Rule:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        options.pop("dtype", None)
        if options.pop("out", None) is not None:
            raise OracleError(f"{name} with out= has no rule", name)
        return apply(name, self, *arguments, **options)

    return call


class Operators(Traced):
    """The part of NumPy's array face that does not depend on the number system."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("subtract")
    __mul__, __rmul__ = _binary("multiply")
    __truediv__, __rtruediv__ = _binary("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide")
    __mod__, __rmod__ = _binary("remainder")
    __pow__, __rpow__ = _binary("power")
    __matmul__, __rmatmul__ = _binary("matmul")
    __and__, __rand__ = _binary("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor")
    __lt__, _ = _binary("less")
    __le__, _ = _binary("less_equal")
    __gt__, _ = _binary("greater")
    __ge__, _ = _binary("greater_equal")
    __eq__, _ = _binary("equal")
    __ne__, _ = _binary("not_equal")
    __neg__ = _unary("negative")
    __pos__ = _unary("positive")
    __abs__ = _unary("abs")
    __invert__ = _unary("invert")

    sum = _method("sum")
    prod = _method("prod")
    mean = _method("mean")
    var = _method("var")
    std = _method("std")
    max = _method("max")
    min = _method("min")
    any = _method("any")
    all = _method("all")
    argmax = _method("argmax")
    argmin = _method("argmin")
    argsort = _method("argsort")
    cumsum = _method("cumsum")
    cumprod = _method("cumprod")
    clip = _method("clip")
    round = _method("round")
    dot = _method("matmul")
    take = _method("take")
    repeat = _method("repeat")
    squeeze = _method("squeeze")
    swapaxes = _method("swapaxes")
    diagonal = _method("diagonal")
    ravel = _method("ravel")
    flatten = _method("ravel")
    copy = _method("copy")

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        raise OracleError(f"{type(self).__name__} has no shape", "shape")

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return apply("transpose", self)

    @property
    def mT(self) -> Any:
        """The array with its last two axes exchanged."""
        return apply("swapaxes", self, -1, -2)

    def reshape(self, *shape: Any) -> Any:
        """The array in another shape, of the same elements."""
        return apply("reshape", self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        """The array with its axes permuted (reversed without arguments)."""
        return apply("transpose", self, (axes[0] if len(axes) == 1 else axes) or None)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """The array converted to `dtype`, as by `m.cast`."""
        return apply("astype", self, dtype)

    def item(self) -> Self:
        """The only element, still traced."""
        result: Self = apply("reshape", self, ())
        return result

    def __getitem__(self, key: Any) -> Any:
        return apply("getitem", self, key)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a traced number without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __index__(self) -> int:
        return operator.index(self._single())

    def __int__(self) -> int:
        return int(self._single())

    def __float__(self) -> float:
        # A plain number would go on without its bound: exact it is, what follows would round.
        raise OracleError(
            "a traced number cannot become a Python float: use m or NumPy functions", "float"
        )

    def _single(self) -> Any:
        raise OracleError(f"{type(self).__name__} cannot become a Python number", "float")
