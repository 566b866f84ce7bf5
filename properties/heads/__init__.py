"""The gated residual heads: what their kernels promise, with full and packed skip weights."""

from trivet.properties.heads.backward import (
    heads_block_diagonal_backward,
    heads_dense_backward,
)
from trivet.properties.heads.forward import heads_block_diagonal, heads_dense
from trivet.properties.heads.packed import heads_scatter

__all__ = [
    "heads_block_diagonal",
    "heads_block_diagonal_backward",
    "heads_dense",
    "heads_dense_backward",
    "heads_scatter",
]
