"""The closed-form continuous-time cell (CfC), dense and per branch, forward and backward.

step                      h' of all channels
step_per_branch           h' of each bucket's channels, into a given buffer
step_backward             gradients of step
step_per_branch_backward  gradients of step_per_branch
CfcStep                   step as an autograd function
CfcStepPerBranch          step_per_branch as an autograd function
"""

from trivet.impl.cfc.backward import step_backward, step_per_branch_backward
from trivet.impl.cfc.forward import step, step_per_branch
from trivet.impl.cfc.functions import CfcStep, CfcStepPerBranch

__all__ = [
    "CfcStep",
    "CfcStepPerBranch",
    "step",
    "step_backward",
    "step_per_branch",
    "step_per_branch_backward",
]
