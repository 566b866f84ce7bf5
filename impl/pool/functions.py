"""The pool as an autograd function: the launches of its kernels, nothing else."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from trivet.impl.pool.attention import attention_pool, attention_pool_backward


class AttentionPool(torch.autograd.Function):
    """`AttentionPool.apply(q, X)` is `attention_pool`, differentiable once."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
        """Run `attention_pool` and keep its arguments."""
        ctx.save_for_backward(q, X)
        return attention_pool(q, X)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients to q and X."""
        gradients = attention_pool_backward(g.contiguous(), *ctx.saved_tensors)
        return gradients["q"], gradients["X"]
