"""The closed-form continuous-time cell: what its forward and backward kernels promise."""

from trivet.properties.cfc.backward import cfc_step_backward, cfc_step_per_branch_backward
from trivet.properties.cfc.forward import cfc_step, cfc_step_per_branch

__all__ = [
    "cfc_step",
    "cfc_step_backward",
    "cfc_step_per_branch",
    "cfc_step_per_branch_backward",
]
