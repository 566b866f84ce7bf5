"""Scalars of any precision, for oracles written from the definition with plain loops."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

# As IEEE binary128.
BITS = 113


def exact(value: Any) -> Any:
    """A float, exactly, as an mpmath number."""
    return mpmath.mpf(float(value))


def exact_elements(
    oracle: Callable[..., Any],
    indices: Iterable[tuple[int, ...]],
    arguments: dict[str, Any],
    bits: int = BITS,
) -> npt.NDArray[np.float64]:
    """`oracle(index, **arguments)` for each output index, in `bits` of precision, as float64.

    Arrays reach the oracle as nested lists of mpmath numbers, integers and bools as Python's.
    """
    with mpmath.workprec(bits):
        plain = {name: _nested(value) for name, value in arguments.items()}
        return np.array([float(oracle(index, **plain)) for index in indices])


def _nested(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _nested(value.tolist())
    if isinstance(value, list):
        return [_nested(part) for part in value]
    return exact(value) if isinstance(value, float) else value


def carried(value: npt.NDArray[Any], error: Any) -> npt.NDArray[np.float64]:
    """How far a float64 value with a bound may lie from the answer of a scalar oracle.

    The bound charges every rounding with the unit of float32, so that the same roundings in float64
    come to 2^-29 of it. Where it is zero the value is exact, or the correctly rounded float64 of
    one; the scalar's answer is rounded to float64 once, too: together one spacing.
    """
    spacing = np.where(np.isfinite(value), np.spacing(np.abs(value)), 0.0)
    known = np.where(np.isfinite(error), error, 0.0)
    return np.asarray(spacing + 2.0**-29 * known)


def exact_dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    """Sum of products, rounded once."""
    return mpmath.fdot(zip(left, right, strict=True))


def chosen_indices(
    shape: tuple[int, ...], limit: int, generator: np.random.Generator
) -> list[tuple[int, ...]]:
    """At most `limit` output indices: the corners first, then random ones, without repeats."""
    size = int(np.prod(shape))
    if size <= limit:
        return [tuple(map(int, index)) for index in np.ndindex(*shape)]
    corners = {tuple(0 if bit else n - 1 for bit, n in zip(corner, shape, strict=True))
               for corner in np.ndindex(*(2 for _ in shape))}  # fmt: skip
    chosen = dict.fromkeys(sorted(corners)[:limit])
    while len(chosen) < limit:
        chosen[tuple(int(generator.integers(n)) for n in shape)] = None
    return list(chosen)
