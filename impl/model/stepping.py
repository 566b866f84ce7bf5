"""Step inference: one event at a time, seeded from a finished window, always per branch."""

from typing import NamedTuple

import torch

from trivet.impl import _checks
from trivet.impl.cfc import step_per_branch
from trivet.impl.heads import heads_block_diagonal
from trivet.impl.model.features import next_features
from trivet.impl.routing import RoutingRecord


class Step(NamedTuple):
    """What one event gives: logits, p (B, N), state (B, H), scan_states (L, B, H, S)."""

    logits: torch.Tensor
    p: torch.Tensor
    state: torch.Tensor
    scan_states: torch.Tensor


def step(
    x: torch.Tensor,
    dt: torch.Tensor,
    state: torch.Tensor,
    scan_states: torch.Tensor,
    W_x: torch.Tensor,
    b_x: torch.Tensor,
    W_delta: torch.Tensor,
    b_delta: torch.Tensor,
    W_B: torch.Tensor,
    W_C: torch.Tensor,
    A_log: torch.Tensor,
    D_u: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
    W1: torch.Tensor,
    b1: torch.Tensor,
    W2: torch.Tensor,
    b2: torch.Tensor,
    w_gate: torch.Tensor,
    bg: torch.Tensor,
    w_main: torch.Tensor,
    bm: torch.Tensor,
    w_compact: torch.Tensor,
    table: torch.Tensor | RoutingRecord,
) -> Step:
    """Advance by one event x (B, D), dt (B,) seconds after the last one.

    state (B, H) and scan_states (L, B, H, S) are those after the last event; they are not
    written. The next output of the scan blocks drives the cell, per branch, and the heads read
    the packed w_compact (H,) through table (N, M) or a routing record. The pool has no part in
    it. Weights as in `model.window`; raises as the kernels do, naming the argument.
    """
    check_step(x, state, scan_states, W_x)
    u, after = next_features(x, scan_states, W_x, b_x, W_delta, b_delta, W_B, W_C, A_log, D_u)
    new = state.clone()
    step_per_branch(u, state, dt, W_in, W_rec, b, tau, table, new)
    layers = (W1, b1, W2, b2, w_gate, bg, w_main, bm)
    logits, p = heads_block_diagonal(new, *layers, w_compact, table)
    return Step(logits, p, new, after)


def seed(
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
    """Return the scan states (L, B, H, S) after the events x (B, K, D), one step at a time.

    Shapes and errors as in `model.features`; K = 0 gives zeros.
    """
    states = x.new_zeros(W_B.shape[0], x.shape[0], W_B.shape[2], W_B.shape[1])
    for event in range(x.shape[1]):
        _, states = next_features(
            x[:, event].contiguous(), states, W_x, b_x, W_delta, b_delta, W_B, W_C, A_log, D_u
        )
    return states


def check_step(
    x: torch.Tensor, state: torch.Tensor, scan_states: torch.Tensor, W_x: torch.Tensor
) -> None:
    """Raise TypeError or ValueError, naming the argument, unless they are of one model."""
    arguments = _checks.Arguments()
    arguments.tensor("x", x, "B D", torch.float32)
    arguments.tensor("state", state, "B H", torch.float32)
    arguments.tensor("scan_states", scan_states, "L B H S", torch.float32)
    arguments.tensor("W_x", W_x, "H D", torch.float32)
