"""The forward pass over windows: features, the pool's first state, the cell, the heads."""

from typing import NamedTuple

import torch

from trivet.impl import _checks
from trivet.impl.cfc import CfcStep, CfcStepPerBranch
from trivet.impl.heads import Heads, HeadsBlockDiagonal
from trivet.impl.model.features import features
from trivet.impl.model.functions import PackedSkip
from trivet.impl.pool import AttentionPool
from trivet.impl.routing import RoutingRecord

CELL = ("W_in", "W_rec", "b", "tau")
HEAD = ("W1", "b1", "W2", "b2", "w_gate", "bg", "w_main", "bm")


class Window(NamedTuple):
    """What a window gives: logits and p (K, B, N), the recurrent states (K, B, H)."""

    logits: torch.Tensor
    p: torch.Tensor
    states: torch.Tensor


def recurrent_states(
    u: torch.Tensor,
    q: torch.Tensor,
    dt: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
    table: torch.Tensor | RoutingRecord | None,
) -> torch.Tensor:
    """Return the cell's states (K, B, H) after each event of features u (B, K, H).

    The first starts from the attention pool of all features under query q (H,); dt (B, K) are the
    seconds before each event. The dense cell without a table, else per branch.
    """
    state = AttentionPool.apply(q, u)
    states = []
    for event in range(u.shape[1]):
        cell = (u[:, event].contiguous(), state, dt[:, event].contiguous(), W_in, W_rec, b, tau)
        if table is None:
            state = CfcStep.apply(*cell)
        else:
            state = CfcStepPerBranch.apply(*cell, table, torch.zeros_like(state))
        states.append(state)
    return torch.stack(states)


def window(
    x: torch.Tensor,
    dt: torch.Tensor,
    W_x: torch.Tensor,
    b_x: torch.Tensor,
    W_delta: torch.Tensor,
    b_delta: torch.Tensor,
    W_B: torch.Tensor,
    W_C: torch.Tensor,
    A_log: torch.Tensor,
    D_u: torch.Tensor,
    q: torch.Tensor,
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
    w_skip: torch.Tensor,
    table: torch.Tensor | RoutingRecord | None = None,
) -> Window:
    """Return logits, p (K, B, N) and states (K, B, H) of windows x (B, K, D), dt (B, K) seconds.

    Without a table (phase 1) the cell is dense and the heads read all of w_skip (N, H); with one,
    or a routing record (phase 2), the cell runs per branch and the heads read each bucket's own
    weights, packed anew. K >= 1. Differentiable in every weight. Other shapes as in `features`,
    `recurrent_states` and `heads.heads`; raises as those, naming the argument.
    """
    check_window(x, dt, W_x)
    u = features(x, W_x, b_x, W_delta, b_delta, W_B, W_C, A_log, D_u)
    states = recurrent_states(u, q, dt, W_in, W_rec, b, tau, table)
    rows = states.flatten(0, 1)
    layers = (W1, b1, W2, b2, w_gate, bg, w_main, bm)
    if table is None:
        logits, p = Heads.apply(rows, *layers, w_skip)
    else:
        packed = PackedSkip.apply(w_skip, table)
        logits, p = HeadsBlockDiagonal.apply(rows, *layers, packed, table)
    shape = (*states.shape[:2], w_skip.shape[0])
    return Window(logits.view(shape), p.view(shape), states)


def check_window(x: torch.Tensor, dt: torch.Tensor, W_x: torch.Tensor) -> None:
    """Raise TypeError or ValueError, naming x, dt or W_x, unless they are windows of one model."""
    arguments = _checks.Arguments()
    arguments.tensor("x", x, "B K D", torch.float32)
    arguments.tensor("dt", dt, "B K", torch.float32)
    arguments.tensor("W_x", W_x, "H D", torch.float32)
    if not x.shape[1]:
        raise ValueError("x must hold at least one event (K >= 1), got none")
