"""The heads as autograd functions: the launches of forward and backward, nothing else."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from trivet.impl.heads.backward import heads_backward, heads_block_diagonal_backward
from trivet.impl.heads.forward import heads, heads_block_diagonal
from trivet.impl.routing import RoutingRecord

_NAMES = ("s", "W1", "b1", "W2", "b2", "w_gate", "bg", "w_main", "bm")


class Heads(torch.autograd.Function):
    """`Heads.apply(s, W1, ..., w_skip)` is `heads`: (logits, p), differentiable once."""

    @staticmethod
    def forward(ctx: Any, *arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Run `heads` and keep its arguments, from which the backward recomputes the rest."""
        ctx.save_for_backward(*arguments)
        return heads(*arguments)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, g_logits: torch.Tensor, g_p: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients in the order of the arguments."""
        gradients = heads_backward(g_logits.contiguous(), g_p.contiguous(), *ctx.saved_tensors)
        return tuple(gradients[name] for name in (*_NAMES, "w_skip"))


class HeadsBlockDiagonal(torch.autograd.Function):
    """`heads_block_diagonal` with its arguments in order; the table has no gradient."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Run `heads_block_diagonal` and keep its arguments."""
        table = arguments[-1]
        slots = table.table if isinstance(table, RoutingRecord) else table
        ctx.save_for_backward(*arguments[:-1], slots)
        return heads_block_diagonal(*arguments)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, g_logits: torch.Tensor, g_p: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients in the order of the arguments."""
        g_logits, g_p = g_logits.contiguous(), g_p.contiguous()
        gradients = heads_block_diagonal_backward(g_logits, g_p, *ctx.saved_tensors)
        return (*(gradients[name] for name in (*_NAMES, "w_compact")), None)
