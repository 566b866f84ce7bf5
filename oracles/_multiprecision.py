"""The value of an oracle at 113 bits, as IEEE binary128 has, in mpmath's numbers.

Every oracle of the math namespace runs in it unchanged; it needs nothing beyond trivet's own
requirements. Zero has one sign only, and exponents have no end, so that nothing underflows.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import mpmath
import numpy as np
import numpy.typing as npt

from trivet.oracles._dispatch import Rule
from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import Argument, Oracle
from trivet.oracles._numbers import BITS, Algebra, Numbers, install, outputs


def evaluate_mpmath(
    oracle: Oracle, arguments: Mapping[str, Argument], *, bits: int = BITS
) -> list[npt.NDArray[Any] | None]:
    """The outputs of `oracle` computed in `bits` bits and rounded to float64 once, in order.

    Float arguments are exact stored values. Integers and bools stay what they are; None where the
    oracle returns None. Raises OracleError for an operation without a rule.
    """
    with mpmath.workprec(bits):
        return [_rounded(output) for output in outputs(Multiprecision, oracle, arguments)]


def _rounded(output: Any) -> npt.NDArray[Any] | None:
    if not isinstance(output, Multiprecision):
        return None if output is None else np.asarray(output)
    numbers = [float(number) for number in output.value.ravel()]
    return np.array(numbers, np.float64).reshape(output.shape)


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with NaN outside its domain, as IEEE has it."""

    def call(*numbers: Any) -> Any:
        if any(map(mpmath.isnan, numbers)):
            return mpmath.nan
        result = function(*numbers)
        return mpmath.nan if isinstance(result, mpmath.mpc) else result

    return call


def _quotient(a: Any, b: Any) -> Any:
    if b != 0:
        return a / b
    return mpmath.nan if a == 0 or mpmath.isnan(a) else mpmath.sign(a) * mpmath.inf


def _power(a: Any, b: Any) -> Any:
    return _quotient(mpmath.mpf(1), a**-b) if a == 0 and b < 0 else a**b


def _whole(number: Any) -> int:
    if not mpmath.isfinite(number):
        raise OracleError(f"{number} has no whole number", "cast")
    return int(number)


_ONE: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp, "exp2": lambda x: mpmath.mpf(2) ** x, "expm1": mpmath.expm1,
    "log": mpmath.log, "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": mpmath.log10, "log1p": mpmath.log1p, "sqrt": mpmath.sqrt, "cbrt": mpmath.cbrt,
    "rsqrt": lambda x: _quotient(mpmath.mpf(1), mpmath.sqrt(x)), "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)), "sin": mpmath.sin, "cos": mpmath.cos,
    "erf": mpmath.erf, "sinh": mpmath.sinh, "arctan": mpmath.atan, "arcsin": mpmath.asin,
    "arccos": mpmath.acos, "arcsinh": mpmath.asinh, "arctanh": mpmath.atanh, "abs": abs,
    "negative": lambda x: -x, "positive": lambda x: +x, "square": lambda x: x * x,
    "reciprocal": lambda x: _quotient(mpmath.mpf(1), x), "sign": mpmath.sign,
    "floor": mpmath.floor, "ceil": mpmath.ceil, "rint": mpmath.nint,
    "trunc": lambda x: mpmath.sign(x) * mpmath.floor(abs(x)),
}  # fmt: skip
_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": _quotient, "power": _power, "maximum": max, "minimum": min,
}  # fmt: skip


class Multiprecision(Numbers):
    """An array of mpmath numbers of the working precision."""

    __slots__ = ()
    rules: ClassVar[dict[str, Rule]] = {}
    rank = 4
    algebra = Algebra(
        kind=mpmath.mpf,
        make=mpmath.mpf,
        one={name: _real(function) for name, function in _ONE.items()},
        two={name: _real(function) for name, function in _TWO.items()},
        less=lambda a, b: bool(a < b),
        equal=lambda a, b: bool(a == b),
        is_nan=lambda x: bool(mpmath.isnan(x)),
        is_finite=lambda x: bool(mpmath.isfinite(x)),
        whole=_whole,
    )


install(Multiprecision)
