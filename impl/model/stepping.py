"""Step inference: one event at a time, seeded from a finished window, always per branch."""

from typing import Any, NamedTuple

import torch

from trivet.impl import _checks
from trivet.impl.cfc import step_per_branch
from trivet.impl.heads import heads_block_diagonal
from trivet.impl.model.features import NAMES as BLOCKS
from trivet.impl.model.features import next_features
from trivet.impl.model.window import CELL, HEAD, check_names, window
from trivet.impl.routing import RoutingRecord, heads_compact


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
    *,
    w_compact: torch.Tensor,
    table: torch.Tensor | RoutingRecord,
    **weights: torch.Tensor,
) -> Step:
    """Advance by one event x (B, D), dt (B,) seconds after the last one.

    state (B, H) and scan_states (L, B, H, S) are those after the last event; they are not
    written. The next output of the scan blocks drives the cell, per branch, and the heads read
    the packed w_compact (H,) through table (N, M) or a routing record; a channel in no bucket
    keeps its state. weights are those of `features`, the cell's and the heads', by name: the pool
    has no part in it. Raises TypeError or ValueError naming the argument.
    """
    check_names(weights, (*BLOCKS, *CELL, *HEAD))
    check_step(x, state, scan_states, weights["W_x"])
    u, after = next_features(x, scan_states, *(weights[name] for name in BLOCKS))
    new = state.clone()
    cell: tuple[Any, ...] = (*(weights[name] for name in CELL), table, new)
    step_per_branch(u, state, dt, *cell)
    head: tuple[Any, ...] = (*(weights[name] for name in HEAD), w_compact, table)
    logits, p = heads_block_diagonal(new, *head)
    return Step(logits, p, new, after)


def after_window(
    x: torch.Tensor,
    dt: torch.Tensor,
    x_next: torch.Tensor,
    dt_next: torch.Tensor,
    *,
    table: torch.Tensor | RoutingRecord,
    **weights: torch.Tensor,
) -> Step:
    """Seed from windows x (B, K, D), dt (B, K), and advance by one event.

    That is x_next (B, D), dt_next (B,) seconds after the last. The recurrent state is the
    window's at event K - 1, the scan states are those of K single steps. weights as in `window`;
    raises as `window` and `step`.
    """
    state = window(x, dt, table=table, **weights).states[-1].clone()
    scan_states = seed(x, *(weights[name] for name in BLOCKS))
    own = {name: weights[name] for name in (*BLOCKS, *CELL, *HEAD)}
    w_compact = heads_compact(weights["w_skip"], table)[0]
    return step(x_next, dt_next, state, scan_states, w_compact=w_compact, table=table, **own)


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
