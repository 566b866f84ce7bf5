"""From events to features: the input projection and the scan blocks, by window and by event."""

import torch
from torch.nn.functional import linear

from trivet.impl.scan import ScanChunked, ScanGates, scan_gates, scan_step

# The names of the blocks' weights, in the order in which every function here takes them.
NAMES = ("W_x", "b_x", "W_delta", "b_delta", "W_B", "W_C", "A_log", "D_u")
# Steps of a window that one tile of the scan holds.
CHUNK = 16


def features(
    x: torch.Tensor,
    W_x: torch.Tensor,
    b_x: torch.Tensor,
    W_delta: torch.Tensor,
    b_delta: torch.Tensor,
    W_B: torch.Tensor,
    W_C: torch.Tensor,
    A_log: torch.Tensor,
    D_u: torch.Tensor,
) -> torch.Tensor:
    """Return the features u (B, K, H) of events x (B, K, D), differentiable in all weights.

    u = W_x x + b_x; then each of L blocks adds its scan: with delta = W_delta u + b_delta, inputs
    W_B u and outputs W_C u (S states a channel), u := u + scan(gates(delta, A_log), u), from
    states of zero. W_x (H, D), b_x (H,), W_delta (L, H, H), b_delta, A_log and D_u (L, H), W_B and
    W_C (L, S, H), all float32.
    """
    u = linear(x, W_x, b_x)
    start = u.new_zeros(u.shape[0], u.shape[2], W_B.shape[1])
    for block in range(W_delta.shape[0]):
        delta = linear(u, W_delta[block], b_delta[block])
        step, decay = ScanGates.apply(delta, A_log[block])  # type: ignore[no-untyped-call]
        entering, leaving = linear(u, W_B[block]), linear(u, W_C[block])
        scan = (decay, step, entering, leaving, D_u[block], u, start, None, CHUNK)
        y, _ = ScanChunked.apply(*scan)  # type: ignore[no-untyped-call]
        u = u + y
    return u


def next_features(
    x: torch.Tensor,
    scan_states: torch.Tensor,
    W_x: torch.Tensor,
    b_x: torch.Tensor,
    W_delta: torch.Tensor,
    b_delta: torch.Tensor,
    W_B: torch.Tensor,
    W_C: torch.Tensor,
    A_log: torch.Tensor,
    D_u: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return u (B, H) of one event x (B, D), and the scan states after it (L, B, H, S).

    scan_states (L, B, H, S) are the blocks' states before the event; weights as in `features`.
    """
    u = linear(x, W_x, b_x)
    after = torch.empty_like(scan_states)
    for block in range(W_delta.shape[0]):
        delta = linear(u, W_delta[block], b_delta[block])
        step, decay = scan_gates(delta[:, None], A_log[block])
        entering, leaving = linear(u, W_B[block]), linear(u, W_C[block])
        y, after[block] = scan_step(
            decay[:, 0], step[:, 0], entering, leaving, D_u[block], u, scan_states[block]
        )
        u = u + y
    return u, after
