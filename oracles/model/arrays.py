"""The model in array form: the math namespace ``m`` first, all rows and channels at once."""

import math
from typing import Any

import numpy as np

BLOCKS = ("W_x", "b_x", "W_delta", "b_delta", "W_B", "W_C", "A_log", "D_u")


def features(m: Any, x: Any, **weights: Any) -> Any:
    """The scan blocks' outputs (B, K, H)."""
    return _scanned(m, x, None, weights)[0]


def window_dense(m: Any, x: Any, dt: Any, **weights: Any) -> tuple[Any, Any, Any]:
    """Logits and p (K, B, N), states (K, B, H): dense cell, full skip weights."""
    states = _states(m, x, dt, weights, None)
    logits = _logits(m, states, weights["w_skip"], weights)
    return logits, m.sigmoid(logits), states


def window(m: Any, x: Any, dt: Any, **weights: Any) -> tuple[Any, Any, Any]:
    """As ``window_dense`` with each bucket's own skip weights; a channel in none stays 0."""
    states = _states(m, x, dt, weights, weights["table"])
    logits = _logits(m, states, _own_weights(m, weights), weights)
    return logits, m.sigmoid(logits), states


def step(m: Any, x: Any, dt: Any, state: Any, scan_states: Any, **weights: Any) -> tuple[Any, ...]:
    """Logits and p (B, N), state (B, H) and scan states (L, B, H, S) after one event."""
    u, after = _scanned(m, x[:, None], scan_states, weights)
    new = _cell(m, u[:, 0], state, dt, weights)
    new = m.where(_served(weights["table"], state.shape[1]), new, state)
    skip = _unpacked(m, weights["w_compact"], weights["table"])
    logits = _logits(m, new[None], skip, weights)[0]
    return logits, m.sigmoid(logits), new, after


def after_window(
    m: Any, x: Any, dt: Any, x_next: Any, dt_next: Any, **weights: Any
) -> tuple[Any, ...]:
    """Logits, p, state and scan states of the event after a window.

    The cell and the heads at the window's last state and the blocks' output at that event.
    """
    last = _states(m, x, dt, weights, weights["table"])[-1]
    u, after = _scanned(m, m.concatenate([x, x_next[:, None]], axis=1), None, weights)
    new = _cell(m, u[:, -1], last, dt_next, weights)
    new = m.where(_served(weights["table"], new.shape[1]), new, last)
    logits = _logits(m, new[None], _own_weights(m, weights), weights)[0]
    return logits, m.sigmoid(logits), new, after


def _affine(m: Any, x: Any, weights: Any, bias: Any) -> Any:
    """x W^T + b over the last axis: one sum of all terms, in whatever order."""
    terms = m.concatenate([np.ones((*x.shape[:-1], 1)), x], axis=-1)
    columns = m.concatenate([bias[..., None], weights], axis=-1)
    return m.matmul(terms, m.swapaxes(columns, -1, -2))


def _scanned(m: Any, x: Any, states: Any, weights: Any) -> tuple[Any, Any]:
    """The blocks' outputs (B, K, H) and terminal states (L, B, H, S), from states or from 0."""
    W_x, b_x, W_delta, b_delta, W_B, W_C, A_log, D_u = (weights[name] for name in BLOCKS)
    u = _affine(m, x, W_x, b_x)
    ends = []
    for block in range(W_delta.shape[0]):
        length = m.softplus(_affine(m, u, W_delta[block], b_delta[block]))
        decay = m.exp(-length * m.exp(A_log[block]))
        entering = m.matmul(u, W_B[block].T)[:, :, None, :]
        gained = (length * u)[..., None] * entering
        shape = (u.shape[0], u.shape[2], W_B.shape[1])
        start = m.zeros(shape) if states is None else states[block]
        run = m.linear_scan(
            m.broadcast_to(decay[..., None], gained.shape), gained, initial=start, axis=1
        )
        leaving = m.matmul(u, W_C[block].T)[:, :, None, :]
        terms = [run * leaving, (D_u[block] * u)[..., None]]
        ends.append(run[:, -1])
        u = u + m.sum(m.concatenate(terms, axis=3), axis=3)
    return u, m.stack(ends)


def _states(m: Any, x: Any, dt: Any, weights: Any, table: Any) -> Any:
    """The recurrent states (K, B, H), the first of them from the pool."""
    u = features(m, x, **weights)
    score = m.softmax(m.matmul(u, weights["q"]) / math.sqrt(u.shape[2]), axis=1)
    state = m.matmul(score[:, None, :], u)[:, 0]
    states = []
    for event in range(u.shape[1]):
        state = _cell(m, u[:, event], state, dt[:, event], weights)
        if table is not None:
            state = m.where(_served(table, u.shape[2]), state, 0.0)
        states.append(state)
    return m.stack(states)


def _cell(m: Any, u: Any, state: Any, dt: Any, weights: Any) -> Any:
    """The cell's next state (B, H) of all channels."""
    elapsed = dt[:, None] / weights["tau"][None, :]
    both = m.concatenate([weights["W_in"], weights["W_rec"]], axis=1)
    pre = _affine(m, m.concatenate([u, state], axis=1), both, weights["b"])
    return state * m.exp(-elapsed) - m.expm1(-elapsed) * m.tanh(pre)


def _logits(m: Any, states: Any, w_skip: Any, weights: Any) -> Any:
    """The heads' logits (K, B, N)."""
    columns = []
    for k in range(w_skip.shape[0]):
        z = _affine(m, states, weights["W1"][k], weights["b1"][k])
        activity = m.where(z > 0, z, m.expm1(m.minimum(z, 0.0)))
        e = _affine(m, activity, weights["W2"][k], weights["b2"][k])
        gate = _affine(m, e, weights["w_gate"][k][None], weights["bg"][k : k + 1])[..., 0]
        main = _affine(m, e, weights["w_main"][k][None], weights["bm"][k : k + 1])[..., 0]
        columns.append(m.matmul(states, w_skip[k]) + m.sigmoid(gate) * main)
    return m.stack(columns, axis=2)


def _served(table: Any, channels: int) -> Any:
    """Which channels are in some bucket, bool (H,)."""
    return np.isin(np.arange(channels), table)


def _own(table: Any, channels: int) -> Any:
    """Which channels are of which bucket, bool (N, H)."""
    return np.stack([_served(row, channels) for row in table])


def _own_weights(m: Any, weights: Any) -> Any:
    """The skip weights, 0 off bucket."""
    w_skip = weights["w_skip"]
    return m.where(_own(weights["table"], w_skip.shape[1]), w_skip, 0.0)


def _unpacked(m: Any, w_compact: Any, table: Any) -> Any:
    """Packed skip weights at their places in (N, H)."""
    full = m.zeros((len(table), w_compact.shape[0]))
    place = 0
    for k, row in enumerate(table):
        own = row[row >= 0]
        full = m.put(full, (k, own), w_compact[place : place + len(own)])
        place += len(own)
    return full
