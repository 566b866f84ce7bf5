"""The gated residual heads, one per horizon, with the full or the packed skip weights.

heads                          logits and probabilities, w_skip (N, H)
heads_backward                 gradients of heads
heads_block_diagonal           the same, each bucket's own skip weights packed in (H,)
heads_block_diagonal_backward  gradients of heads_block_diagonal
heads_scatter                  packed values at their places in (N, H), +0.0 elsewhere
Heads, HeadsBlockDiagonal      both as autograd functions
"""

from trivet.impl.heads.backward import heads_backward, heads_block_diagonal_backward
from trivet.impl.heads.forward import heads, heads_block_diagonal
from trivet.impl.heads.functions import Heads, HeadsBlockDiagonal
from trivet.impl.heads.packed import heads_scatter

__all__ = [
    "Heads",
    "HeadsBlockDiagonal",
    "heads",
    "heads_backward",
    "heads_block_diagonal",
    "heads_block_diagonal_backward",
    "heads_scatter",
]
