"""The perception model, written from its formulas twice, sharing nothing.

Shapes: x (B, K, D), dt (B, K) seconds, W_x (H, D), b_x (H,), W_delta (L, H, H), b_delta, A_log and
D_u (L, H), W_B and W_C (L, S, H), q (H,), the cell's W_in and W_rec (H, H), b and tau (H,), the
heads' W1 (N, E, H), b1, b2, w_gate and w_main (N, E), W2 (N, E, E), bg and bm (N,), w_skip (N, H);
table (N, M) of channels with -1 in unused slots. The array forms take the math namespace ``m``,
those that end in ``_scalar`` the index of one output element and the output's name.
"""

from trivet.oracles.model.arrays import after_window, features, step, window, window_dense
from trivet.oracles.model.elements import (
    after_window_scalar,
    features_scalar,
    step_scalar,
    window_dense_scalar,
    window_scalar,
)

__all__ = [
    "after_window",
    "after_window_scalar",
    "features",
    "features_scalar",
    "step",
    "step_scalar",
    "window",
    "window_dense",
    "window_dense_scalar",
    "window_scalar",
]
