"""Packing the skip weights as an autograd function."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from trivet.impl.heads import heads_scatter
from trivet.impl.routing import RoutingRecord, heads_compact


class PackedSkip(torch.autograd.Function):
    """`PackedSkip.apply(w_skip, table)`: the packed weights (H,); off bucket the gradient is 0."""

    @staticmethod
    def forward(
        ctx: Any, w_skip: torch.Tensor, table: torch.Tensor | RoutingRecord
    ) -> torch.Tensor:
        """Run `routing.heads_compact` and keep the table."""
        slots = table.table if isinstance(table, RoutingRecord) else table
        ctx.save_for_backward(slots)
        return heads_compact(w_skip, table)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient to w_skip, scattered to the buckets' own entries."""
        return heads_scatter(g.contiguous(), *ctx.saved_tensors), None
