"""Oracles in float32 whose order of operations is part of the definition: no bound, equal bits.

Where a rounding decides an integer, a right answer is one number, not an interval. Such an oracle
computes with float32 scalars in the order that its specification writes down.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from trivet.oracles._bounded import Bounded
from trivet.oracles._evaluate import outputs_of


def pinned(oracle: Callable[..., Any]) -> Callable[..., Any]:
    """`oracle`, which takes float32 arrays and scalars, as an oracle whose outputs are exact.

    Its arguments are the values stored, in float32 where they are floats; integers, booleans and
    None stay what they are. Float outputs have a bound of zero: a kernel must return their bits.
    """
    parameters = inspect.signature(oracle).parameters.values()
    first = inspect.Parameter("m", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    @functools.wraps(oracle)
    def exact(m: Any, **arguments: Any) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            outputs = oracle(**{name: stored(value) for name, value in arguments.items()})
        return tuple(map(_wide, outputs_of(outputs)))

    exact.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    return exact


def stored(value: Any) -> Any:
    """A value as the kernel holds it: floats in float32, whatever arithmetic traces them."""
    if isinstance(value, Bounded):
        value = value.value
    if isinstance(value, float | np.floating):
        return np.float32(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        single = np.asarray(value).astype(np.float32)
        return single[()] if single.ndim == 0 else single
    return value


def _wide(output: Any) -> Any:
    array = np.asarray(output)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
