"""The forward pass over windows: features, the pool's first state, the cell, the heads."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch

from trivet.impl import _checks
from trivet.impl.cfc import CfcStep, CfcStepPerBranch
from trivet.impl.heads import Heads, HeadsBlockDiagonal
from trivet.impl.model.features import NAMES as BLOCKS
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
    state = AttentionPool.apply(q, u)  # type: ignore[no-untyped-call]
    states = []
    for event in range(u.shape[1]):
        cell = (u[:, event].contiguous(), state, dt[:, event].contiguous(), W_in, W_rec, b, tau)
        if table is None:
            state = CfcStep.apply(*cell)  # type: ignore[no-untyped-call]
        else:
            out = torch.zeros_like(state)
            state = CfcStepPerBranch.apply(*cell, table, out)  # type: ignore[no-untyped-call]
        states.append(state)
    return torch.stack(states)


def window(
    x: torch.Tensor,
    dt: torch.Tensor,
    *,
    table: torch.Tensor | RoutingRecord | None = None,
    **weights: torch.Tensor,
) -> Window:
    """Return logits, p (K, B, N) and states (K, B, H) of windows x (B, K, D), dt (B, K) seconds.

    Without a table (phase 1) the cell is dense and the heads read all of w_skip (N, H); with one,
    or a routing record (phase 2), the cell runs per branch and the heads read each bucket's own
    weights, packed anew; a channel in no bucket stays 0. K >= 1. weights are those of `features`,
    q, the cell's (CELL), the heads' (HEAD) and w_skip, by name; differentiable in every one.
    Shapes as in `features`, `recurrent_states` and `heads.heads`; raises TypeError or ValueError
    naming the argument.
    """
    check_window(x, dt, weights)
    u = features(x, *(weights[name] for name in BLOCKS))
    cell: tuple[Any, ...] = (*(weights[name] for name in CELL), table)
    states = recurrent_states(u, weights["q"], dt, *cell)
    rows, w_skip = states.flatten(0, 1), weights["w_skip"]
    layers = [weights[name] for name in HEAD]
    if table is None:
        logits, p = Heads.apply(rows, *layers, w_skip)  # type: ignore[no-untyped-call]
    else:
        packed = PackedSkip.apply(w_skip, table)  # type: ignore[no-untyped-call]
        logits, p = HeadsBlockDiagonal.apply(rows, *layers, packed, table)  # type: ignore[no-untyped-call]
    shape = (*states.shape[:2], w_skip.shape[0])
    return Window(logits.view(shape), p.view(shape), states)


def check_window(x: torch.Tensor, dt: torch.Tensor, weights: Mapping[str, torch.Tensor]) -> None:
    """Raise TypeError or ValueError, naming what is wrong, unless they are windows of one model."""
    check_names(weights, (*BLOCKS, "q", *CELL, *HEAD, "w_skip"))
    arguments = _checks.Arguments()
    arguments.tensor("x", x, "B K D", torch.float32)
    arguments.tensor("dt", dt, "B K", torch.float32)
    arguments.tensor("W_x", weights["W_x"], "H D", torch.float32)
    if not x.shape[1]:
        raise ValueError("x must hold at least one event (K >= 1), got none")


def check_names(weights: Mapping[str, torch.Tensor], names: Iterable[str]) -> None:
    """Raise TypeError, naming the first, where a weight is missing or there is one too many."""
    for name in names:
        if name not in weights:
            raise TypeError(f"{name} is missing: the model needs {', '.join(names)}")
    for name in weights:
        if name not in names:
            raise TypeError(f"{name} is no weight of the model: it has {', '.join(names)}")
