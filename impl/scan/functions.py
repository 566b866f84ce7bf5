"""Gates and scan as autograd functions: the launches of their kernels, nothing else."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from trivet.impl.scan.backward import NAMES, scan_chunked_backward
from trivet.impl.scan.forward import scan_chunked
from trivet.impl.scan.gates import scan_gates, scan_gates_backward


class ScanGates(torch.autograd.Function):
    """`ScanGates.apply(delta, A_log)` is `scan_gates`, differentiable once."""

    @staticmethod
    def forward(
        ctx: Any, delta: torch.Tensor, A_log: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run `scan_gates` and keep its arguments."""
        ctx.save_for_backward(delta, A_log)
        return scan_gates(delta, A_log)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, g_step: torch.Tensor, g_a: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients to delta and A_log."""
        found = scan_gates_backward(g_step.contiguous(), g_a.contiguous(), *ctx.saved_tensors)
        return found["delta"], found["A_log"]


class ScanChunked(torch.autograd.Function):
    """`ScanChunked.apply(a, step, B, C, D, u, x_0, reset, chunk)` is `scan_chunked`.

    Differentiable once; reset is a tensor or None, chunk, of the forward alone, may be left out.
    """

    @staticmethod
    def forward(
        ctx: Any,
        a: torch.Tensor,
        step: torch.Tensor,
        B: torch.Tensor,
        C: torch.Tensor,
        D: torch.Tensor,
        u: torch.Tensor,
        x_0: torch.Tensor,
        reset: torch.Tensor | None,
        chunk: int = 16,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run `scan_chunked` and keep its arguments, from which the backward starts anew."""
        ctx.save_for_backward(a, step, B, C, D, u, x_0, reset)
        return scan_chunked(a, step, B, C, D, u, x_0, reset, chunk=chunk)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, g_y: torch.Tensor, g_x_T: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients in the order of the arguments; reset and chunk have none."""
        found = scan_chunked_backward(g_y.contiguous(), g_x_T.contiguous(), *ctx.saved_tensors)
        return (*(found[name] for name in NAMES), None, None)
