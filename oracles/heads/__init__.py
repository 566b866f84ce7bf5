"""The gated residual heads, written from their formulas twice, sharing nothing.

Shapes: s (B, H), W1 (N, E, H), W2 (N, E, E), b1, b2, w_gate and w_main (N, E), bg and bm (N,),
w_skip (N, H), w_compact (H,) packed in the order of table (N, M) with -1 in unused slots, g_logits
and g_p (B, N). The array forms take the math namespace ``m``, those that end in ``_scalar`` the
index of one output element.
"""

from trivet.oracles.heads.arrays import (
    heads,
    heads_backward,
    heads_block_diagonal,
    heads_block_diagonal_backward,
    heads_scatter,
)
from trivet.oracles.heads.elements import (
    heads_backward_scalar,
    heads_block_diagonal_backward_scalar,
    heads_block_diagonal_scalar,
    heads_scalar,
    heads_scatter_scalar,
)

__all__ = [
    "heads",
    "heads_backward",
    "heads_backward_scalar",
    "heads_block_diagonal",
    "heads_block_diagonal_backward",
    "heads_block_diagonal_backward_scalar",
    "heads_block_diagonal_scalar",
    "heads_scalar",
    "heads_scatter",
    "heads_scatter_scalar",
]
