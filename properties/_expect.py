"""What laws compare with: intervals, and assertions that say index, got, wanted and bound."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.oracles._evaluate import evaluate
from trivet.oracles._precision import Precision

Array = NDArray[Any]


def interval(oracle: Callable[..., object], **arguments: Any) -> tuple[Array, Array]:
    """The oracle's value and error, float64, at other arguments than the law's own."""
    value = evaluate(oracle, arguments, precision=Precision())[0]
    assert value is not None
    assert value.error is not None
    return value.value, value.error


def same_bits(got: Array, wanted: Array, what: str) -> None:
    """AssertionError unless two arrays hold the same numbers, signs of zeros included.

    NaN equals NaN. ``what`` names the quantity.
    """
    got, wanted = np.broadcast_arrays(np.asarray(got), np.asarray(wanted))
    alike = (got == wanted) & (np.signbit(got) == np.signbit(wanted))
    _demand(alike | (np.isnan(got) & np.isnan(wanted)), got, wanted, None, what)


def same_values(got: Array, wanted: Array, what: str) -> None:
    """As ``same_bits``, but -0.0 equals +0.0."""
    got, wanted = np.broadcast_arrays(np.asarray(got), np.asarray(wanted))
    _demand((got == wanted) | (np.isnan(got) & np.isnan(wanted)), got, wanted, None, what)


def near(got: Array, wanted: Array, bound: Array, what: str) -> None:
    """AssertionError unless ``got`` lies within ``bound`` of ``wanted``; both NaN is equal."""
    got, wanted, bound = np.broadcast_arrays(got, wanted, bound)
    with np.errstate(invalid="ignore"):
        held = (np.abs(got - wanted) <= bound) | (got == wanted)
    _demand(held | (np.isnan(got) & np.isnan(wanted)), got, wanted, bound, what)


def at_most(got: Array, most: Array, what: str) -> None:
    """AssertionError unless ``got <= most`` everywhere; NaN fails."""
    got, most = np.broadcast_arrays(got, most)
    _demand(got <= most, got, most, None, what, relation="at most")


def _demand(
    held: Array, got: Array, wanted: Array, bound: Array | None, what: str, relation: str = "wanted"
) -> None:
    if held.all():
        return
    index = tuple(int(i) for i in np.argwhere(~held)[0])
    limit = f", bound {bound[index]:.4g}" if bound is not None else ""
    place = f"[{', '.join(map(str, index))}]" if index else ""
    raise AssertionError(
        f"{what}{place} = {got[index]!s}, {relation} {wanted[index]!s}{limit}; "
        f"{int((~held).sum())} of {held.size} elements are wrong"
    )
