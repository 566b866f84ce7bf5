"""Dims: their legal sizes, and the integer arithmetic that ties one to another."""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Number = int | float
_MOST_POWER = 64


class DomainError(ValueError):
    """A domain that no value can meet: the text names the argument or dim and what to change."""


@dataclass(frozen=True, slots=True)
class Formula:
    """Arithmetic over named numbers, for instance ``"K//group"``; calling it gives its value."""

    text: str
    names: frozenset[str]
    tree: ast.expr = field(compare=False, repr=False)

    def __call__(self, values: Mapping[str, Number]) -> Number:
        """Its value; a DomainError where it divides by zero or its power is out of hand."""
        if isinstance(self.tree, ast.Name):
            return values[self.tree.id]
        try:
            return _evaluate(self.tree, values)
        except (ZeroDivisionError, OverflowError) as error:
            raise DomainError(f"{self.text!r} has no value here: {error}") from None

    def whole(self, values: Mapping[str, Number]) -> int:
        """Its value as an int."""
        return int(self(values))

    @property
    def constant(self) -> Number | None:
        """Its value where it uses no name, else None."""
        return None if self.names else self({})

    def __str__(self) -> str:
        return self.text


def _power(base: Number, exponent: Number) -> Number:
    if not 0 <= exponent <= _MOST_POWER:
        raise OverflowError(f"a power of {exponent}, not 0 to {_MOST_POWER}")
    result: Number = base**exponent
    return result


_OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: Mapping[str, Callable[..., Number]] = {"min": min, "max": max}


def _evaluate(node: ast.expr, values: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=sign, operand=inner):
            value = _evaluate(inner, values)
            return -value if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=sign, right=right):
            return _OPERATORS[type(sign)](_evaluate(left, values), _evaluate(right, values))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*(_evaluate(each, values) for each in arguments))
    raise AssertionError(f"{ast.dump(node)} passed the parser")


def _names(node: ast.expr, text: str, *, fractions: bool) -> frozenset[str]:
    """The names of an expression, or a ValueError that says which part is no arithmetic."""
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int()):
            return frozenset()
        case ast.Constant(value=float()) if fractions:
            return frozenset()
        case ast.Name(id=name):
            return frozenset({name})
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            return _names(inner, text, fractions=fractions)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            sides = (_names(each, text, fractions=fractions) for each in (left, right))
            return frozenset().union(*sides)
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, *_] as inner, keywords=[]):
            parts = (_names(each, text, fractions=fractions) for each in inner)
            return frozenset().union(*parts)
    raise ValueError(
        f"{ast.unparse(node)!r} in {text!r} is not integer arithmetic: "
        "use names, whole numbers, + - * // % **, min and max"
    )


def formula(value: object, *, fractions: bool = False) -> Formula:
    """A number or a string of arithmetic as a Formula.

    ``fractions`` admits floats (bounds of a domain). A ValueError says which part is wrong.
    """
    numbers = (int, float) if fractions else (int,)
    if isinstance(value, numbers) and not isinstance(value, bool):
        return Formula(str(value), frozenset(), ast.Constant(value=value))
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is neither a number nor a string of arithmetic")
    try:
        tree = ast.parse(value.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"{value!r} is not arithmetic: it does not parse") from None
    return Formula(value, _names(tree, value, fractions=fractions), tree)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Every size from lo to hi; at each of ``production`` by turns offsets must still fit."""

    lo: Formula
    hi: Formula
    production: tuple[int, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The dims that its ends use."""
        return self.lo.names | self.hi.names

    def options(self, values: Mapping[str, Number]) -> Sequence[int]:
        """The legal sizes, ascending, given the earlier dims."""
        return range(self.lo.whole(values), self.hi.whole(values) + 1)

    def __str__(self) -> str:
        return f"sizes({self.lo}, {self.hi})"


@dataclass(frozen=True, slots=True)
class Divisors:
    """Every divisor of another dim."""

    of: Formula

    @property
    def names(self) -> frozenset[str]:
        """The dims that it divides."""
        return self.of.names

    def options(self, values: Mapping[str, Number]) -> Sequence[int]:
        """The divisors, ascending, given the earlier dims; of 0 only 1."""
        whole = max(1, self.of.whole(values))
        low = [each for each in range(1, int(whole**0.5) + 1) if whole % each == 0]
        return sorted({*low, *(whole // each for each in low)})

    def __str__(self) -> str:
        return f"divisors({self.of})"


@dataclass(frozen=True, slots=True)
class Derived:
    """A dim that follows from the earlier ones."""

    formula: Formula

    @property
    def names(self) -> frozenset[str]:
        """The dims that it follows from."""
        return self.formula.names

    def options(self, values: Mapping[str, Number]) -> Sequence[int]:
        """Its one value, given the earlier dims; none where that is negative."""
        value = self.formula.whole(values)
        return (value,) if value >= 0 else ()

    def __str__(self) -> str:
        return repr(self.formula.text)


class Choice:
    """One of a few values.

    As a dim the values are whole numbers or arithmetic over earlier dims, ``Choice(1, "B")``; as an
    argument they are handed over as they are, ``Choice(True, False)``, each at least once a run.
    """

    __slots__ = ("values",)

    def __init__(self, *values: object) -> None:
        if not values:
            raise ValueError("Choice() has nothing to choose from: give it at least one value")
        self.values = values

    @property
    def names(self) -> frozenset[str]:
        """The dims that its values use, when it is a dim."""
        return frozenset().union(*(formula(each).names for each in self.values))

    @property
    def whole(self) -> bool:
        """Whether every value is an int, so that arithmetic may use it."""
        return all(isinstance(each, int) for each in self.values)

    def options(self, values: Mapping[str, Number]) -> Sequence[int]:
        """Its values as a dim, ascending, given the earlier dims."""
        return sorted({formula(each).whole(values) for each in self.values})

    def __repr__(self) -> str:
        return f"Choice({', '.join(map(repr, self.values))})"


Dim = Sizes | Divisors | Choice | Derived


def sizes(lo: int | str, hi: int | str, production: int | tuple[int, ...] | None = None) -> Sizes:
    """Every size from ``lo`` to ``hi``; the ends may be arithmetic over earlier dims.

    ``production`` is the size at which offsets must still fit; of several, a first case takes the
    first of every dim, a second one the second, and so on.

    A ValueError where an end is no arithmetic, negative, or lo is above hi.

    >>> sizes(1, "B").options({"B": 3})
    range(1, 4)
    """
    low, high = formula(lo), formula(hi)
    if low.constant is not None and low.constant < 0:
        raise ValueError(f"sizes({lo}, {hi}) starts below 0: no dim has a negative size")
    if low.constant is not None and high.constant is not None and low.constant > high.constant:
        raise ValueError(f"sizes({lo}, {hi}) holds no size: the first end is above the second")
    stated = () if production is None else production
    stated = stated if isinstance(stated, tuple) else (stated,)
    if not all(isinstance(each, int) and each >= 1 for each in stated):
        raise ValueError(f"sizes(production={production!r}): expected a whole number from 1 up")
    return Sizes(low, high, stated)


def divisors(of: int | str) -> Divisors:
    """Every divisor of an earlier dim (or of arithmetic over earlier dims).

    >>> divisors("C").options({"C": 12})
    [1, 2, 3, 4, 6, 12]
    """
    return Divisors(formula(of))


def as_dim(value: object) -> Dim:
    """A dim as it may be written in a contract: sizes, divisors, Choice, arithmetic or an int."""
    if isinstance(value, Sizes | Divisors):
        return value
    if isinstance(value, Choice):
        for each in value.values:
            formula(each)
        return value
    if isinstance(value, str | int):
        return Derived(formula(value))
    raise ValueError(
        f"{value!r} is no size: use sizes(lo, hi), divisors('C'), Choice(8, 16) or arithmetic "
        "over earlier dims such as 'S + NQ'"
    )
