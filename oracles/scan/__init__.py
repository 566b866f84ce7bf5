"""The gates and the selective scan, written from their formulas twice, sharing nothing.

Shapes: delta, a, step, u and g_y (R, T, H) for R rows of a batch, A_log and D (H,), B and C
(R, T, S), x_0 and g_x_T (R, H, S), reset (R, T) bool or None; an event has no T. The array forms
take the math namespace ``m``, those that end in ``_scalar`` the index of one output element.
"""

from trivet.oracles.scan.arrays import (
    scan_chunked,
    scan_chunked_backward,
    scan_gates,
    scan_gates_backward,
    scan_step,
    scan_step_backward,
)
from trivet.oracles.scan.elements import (
    scan_chunked_backward_scalar,
    scan_chunked_scalar,
    scan_gates_backward_scalar,
    scan_gates_scalar,
    scan_step_backward_scalar,
    scan_step_scalar,
)

__all__ = [
    "scan_chunked",
    "scan_chunked_backward",
    "scan_chunked_backward_scalar",
    "scan_chunked_scalar",
    "scan_gates",
    "scan_gates_backward",
    "scan_gates_backward_scalar",
    "scan_gates_scalar",
    "scan_step",
    "scan_step_backward",
    "scan_step_backward_scalar",
    "scan_step_scalar",
]
