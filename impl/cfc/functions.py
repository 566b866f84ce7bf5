"""The CfC cell as autograd functions: the launches of `forward` and `backward`, nothing else."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from trivet.impl.cfc.backward import step_backward, step_per_branch_backward
from trivet.impl.cfc.forward import step, step_per_branch
from trivet.impl.routing import RoutingRecord

_DIFFERENTIABLE = ("x", "h", None, "W_in", "W_rec", "b", "tau")


class CfcStep(torch.autograd.Function):
    """`CfcStep.apply(x, h, dt, W_in, W_rec, b, tau)` is `step`, differentiable once."""

    @staticmethod
    def forward(ctx: Any, *cell: torch.Tensor) -> torch.Tensor:
        """Run `step` and keep its arguments, from which the backward recomputes the rest."""
        ctx.save_for_backward(*cell)
        return step(*cell)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients in the order of the arguments; dt has none."""
        gradients = step_backward(g.contiguous(), *ctx.saved_tensors)
        return tuple(gradients[name] if name else None for name in _DIFFERENTIABLE)


class CfcStepPerBranch(torch.autograd.Function):
    """`step_per_branch`, differentiable once.

    `CfcStepPerBranch.apply(x, h, dt, W_in, W_rec, b, tau, table, out)` writes into out and
    returns it; a channel in no bucket hands its gradient on to what out held before.
    """

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> torch.Tensor:
        """Run `step_per_branch` and keep its arguments, but for out."""
        x, h, dt, W_in, W_rec, b, tau, table, out = arguments
        step_per_branch(x, h, dt, W_in, W_rec, b, tau, table, out)
        slots = table.table if isinstance(table, RoutingRecord) else table
        ctx.save_for_backward(x, h, dt, W_in, W_rec, b, tau, slots)
        ctx.mark_dirty(out)
        result: torch.Tensor = out
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients in the order of the arguments; dt and the table have none."""
        slots = ctx.saved_tensors[-1]
        gradients = step_per_branch_backward(g.contiguous(), *ctx.saved_tensors)
        passed = None
        if ctx.needs_input_grad[-1]:
            passed = g.clone()
            passed[:, slots[slots >= 0].long()] = 0.0
        return (*(gradients[name] if name else None for name in _DIFFERENTIABLE), None, passed)
