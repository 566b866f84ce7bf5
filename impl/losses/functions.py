"""The losses as autograd functions: the launches of their kernels, nothing else."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from trivet.impl.losses.cross_entropy import bce_multi_horizon, bce_multi_horizon_backward
from trivet.impl.losses.smoothness import output_smoothness, output_smoothness_backward


class BceMultiHorizon(torch.autograd.Function):
    """`BceMultiHorizon.apply(logits, labels)` is `bce_multi_horizon`, differentiable once."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Run `bce_multi_horizon` and keep its arguments."""
        ctx.save_for_backward(logits, labels)
        return bce_multi_horizon(logits, labels)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_loss: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient to the logits; labels have none."""
        gradients = bce_multi_horizon_backward(g_loss.contiguous(), *ctx.saved_tensors)
        return gradients["logits"], None


class OutputSmoothness(torch.autograd.Function):
    """`OutputSmoothness.apply(p, weight)` is `output_smoothness`, differentiable once."""

    @staticmethod
    def forward(
        ctx: Any, p: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run `output_smoothness` and keep its arguments."""
        ctx.save_for_backward(p, weight)
        return output_smoothness(p, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_loss: torch.Tensor, g_mean: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient to p; the weight, a controller's, has none."""
        g_loss, g_mean = g_loss.contiguous(), g_mean.contiguous()
        return output_smoothness_backward(g_loss, g_mean, *ctx.saved_tensors)["p"], None
