"""Judges the float64 shadow of a kernel: its logic, apart from rounding."""

from dataclasses import dataclass

import numpy as np

from trivet.oracles._accept import Acceptance
from trivet.oracles._evaluate import Value
from trivet.oracles._formats import Array

# The bound is the condition of the computation times the unit roundoff of float32. The logic of
# a kernel is judged at 1e-9 of that condition: far above what float64 rounds (1e-16), far below
# any term, factor or index that is wrong.
_LOGIC = 1e-9
_UNIT = 2.0**-24
# What float32 underflows, over its half ulp: a condition measured in float32 knows no less.
_UNDERFLOW = 2.0**-149 / _UNIT
# float64 rounds the reference as well, where the float32 bound knows the operation to be exact.
_SLACK = 2.0**-46


@dataclass
class Opaque(Value):
    """An output of a reference of which only the float64 value is known: its error is infinite.

    reason: the operation that has no rule. condition: the measured size, as an array of the
    output's shape, of the changes that relative changes of the inputs cause; it scales what the
    logic of a kernel is judged by, and nothing else. change: how far the float64 value moves when
    the inputs move by one ulp of float32.
    """

    reason: str = ""
    condition: Array | float = 0.0
    change: Array | float = 0.0


def logic_room(value: Value) -> Array:
    """How far the shadow of an output may lie from the oracle's value; 0 where undecided."""
    if isinstance(value, Opaque):
        condition = np.asarray(value.condition) + _UNDERFLOW
        return _LOGIC * (condition + np.abs(np.asarray(value.value, np.float64)))
    error = np.zeros(np.shape(value.value)) if value.error is None else value.error
    known = np.where(np.isfinite(error), error, 0.0)
    return known * (_LOGIC / _UNIT) + _SLACK * np.abs(np.asarray(value.value, np.float64))


def accept_logic(shadow: Array, value: Value, reach: Array | float = 0.0) -> Acceptance:
    """Judge ``shadow``, float64 of the output's shape, against 1e-9 of the oracle's condition.

    ``reach`` is how far constants may move it that hold fewer digits than were written.
    Elements whose bound is infinite are undecided; NaN and infinities must agree.
    """
    centre = np.asarray(value.value, np.float64)
    error = np.zeros(centre.shape) if value.error is None else value.error
    undecided = ~np.isfinite(value.condition if isinstance(value, Opaque) else error)
    with np.errstate(all="ignore"):
        room = logic_room(value) + reach
        distance = np.abs(shadow - centre)
        same = (shadow == centre) | (np.isnan(shadow) & np.isnan(centre))
        ok = same | (distance <= room) | undecided
        ratio = np.where(same | undecided, 0.0, distance / np.where(room > 0, room, 1.0))
    ratio = np.where(np.isnan(ratio) | (~ok & (room == 0)), np.inf, ratio)
    return Acceptance(ok, undecided, ratio)
