"""The heads in array form: the math namespace ``m`` first, all horizons at once."""

from typing import Any

import numpy as np


def heads(
    m: Any,
    s: Any,
    W1: Any,
    b1: Any,
    W2: Any,
    b2: Any,
    w_gate: Any,
    bg: Any,
    w_main: Any,
    bm: Any,
    w_skip: Any,
) -> tuple[Any, Any]:
    """logits = w_skip . s + sigmoid(w_gate . e + bg) (w_main . e + bm), and p; both (B, N)."""
    layers = _Layers(m, s, W1, b1, W2, b2, w_gate, bg, w_main, bm)
    logits = m.matmul(s, w_skip.T) + layers.gated.T
    return logits, m.sigmoid(logits)


def heads_block_diagonal(
    m: Any,
    s: Any,
    W1: Any,
    b1: Any,
    W2: Any,
    b2: Any,
    w_gate: Any,
    bg: Any,
    w_main: Any,
    bm: Any,
    w_compact: Any,
    table: Any,
) -> tuple[Any, Any]:
    """As ``heads``, the skip term over each bucket's own channels."""
    layers = _Layers(m, s, W1, b1, W2, b2, w_gate, bg, w_main, bm)
    logits = _packed_skip(m, s, w_compact, table) + layers.gated.T
    return logits, m.sigmoid(logits)


def heads_backward(
    m: Any,
    g_logits: Any,
    g_p: Any,
    s: Any,
    W1: Any,
    b1: Any,
    W2: Any,
    b2: Any,
    w_gate: Any,
    bg: Any,
    w_main: Any,
    bm: Any,
    w_skip: Any,
) -> tuple[Any, ...]:
    """Gradients to s and the nine weights, in the order of the arguments."""
    layers = _Layers(m, s, W1, b1, W2, b2, w_gate, bg, w_main, bm)
    g = _to_logits(m, g_logits, g_p, m.matmul(s, w_skip.T) + layers.gated.T)
    return (*layers.gradients(g, w_skip), m.matmul(g.T, s))


def heads_block_diagonal_backward(
    m: Any,
    g_logits: Any,
    g_p: Any,
    s: Any,
    W1: Any,
    b1: Any,
    W2: Any,
    b2: Any,
    w_gate: Any,
    bg: Any,
    w_main: Any,
    bm: Any,
    w_compact: Any,
    table: Any,
) -> tuple[Any, ...]:
    """As ``heads_backward``; that of w_compact in table order, 0 where no bucket owns an entry."""
    layers = _Layers(m, s, W1, b1, W2, b2, w_gate, bg, w_main, bm)
    g = _to_logits(m, g_logits, g_p, _packed_skip(m, s, w_compact, table) + layers.gated.T)
    packed = m.zeros((s.shape[1],))
    for k in range(len(table)):
        own, place = _own(table, k)
        packed = m.put(packed, place, m.matmul(g[:, k], s[:, own]))
    return (*layers.gradients(g, heads_scatter(m, w_compact, table)), packed)


class _Layers:
    """Both layers and what follows, all horizons at once: z, e (N, B, E), gate, main (N, B)."""

    def __init__(
        self,
        m: Any,
        s: Any,
        W1: Any,
        b1: Any,
        W2: Any,
        b2: Any,
        w_gate: Any,
        bg: Any,
        w_main: Any,
        bm: Any,
    ) -> None:
        self._m, self._s, self._W1, self._W2 = m, s, W1, W2
        self._w_gate, self._w_main = w_gate, w_main
        self._z = self._affine(m.broadcast_to(s, (len(bg), *s.shape)), W1, b1)
        self._activity = m.where(self._z > 0, self._z, m.expm1(m.minimum(self._z, 0.0)))
        self._e = self._affine(self._activity, W2, b2)
        self._gate = self._affine(self._e, w_gate[:, None, :], bg[:, None])[:, :, 0]
        self._main = self._affine(self._e, w_main[:, None, :], bm[:, None])[:, :, 0]

    def _affine(self, x: Any, weights: Any, bias: Any) -> Any:
        """x W^T + b: one sum of all terms, in whatever order."""
        m = self._m
        terms = m.concatenate([np.ones((*x.shape[:2], 1)), x], axis=2)
        return m.matmul(terms, m.swapaxes(m.concatenate([bias[:, :, None], weights], axis=2), 1, 2))

    @property
    def gated(self) -> Any:
        """sigmoid(w_gate . e + bg) (w_main . e + bm), shape (N, B)."""
        return self._m.sigmoid(self._gate) * self._main

    def gradients(self, g: Any, w_skip: Any) -> tuple[Any, ...]:
        """Gradients to s and the eight weights of the layers; g is that to the logits (B, N)."""
        m = self._m
        dmain = g.T * m.sigmoid(self._gate)
        dgate = dmain * self._main * m.sigmoid(-self._gate)
        de = dmain[:, :, None] * self._w_main[:, None] + dgate[:, :, None] * self._w_gate[:, None]
        slope = m.where(self._z > 0, 1.0, m.exp(m.minimum(self._z, 0.0)))
        dz = m.matmul(de, self._W2) * slope
        through = dz[:, :, :, None] * self._W1[:, None]
        direct = g.T[:, :, None, None] * w_skip[:, None, None, :]
        return (
            m.sum(m.concatenate([through, direct], axis=2), axis=(0, 2)),
            m.matmul(m.swapaxes(dz, 1, 2), self._s),
            m.sum(dz, axis=1),
            m.matmul(m.swapaxes(de, 1, 2), self._activity),
            m.sum(de, axis=1),
            m.matmul(dgate[:, None], self._e)[:, 0],
            m.sum(dgate, axis=1),
            m.matmul(dmain[:, None], self._e)[:, 0],
            m.sum(dmain, axis=1),
        )


def _to_logits(m: Any, g_logits: Any, g_p: Any, logits: Any) -> Any:
    """The gradient to the logits through both outputs."""
    return g_logits + g_p * m.sigmoid(logits) * m.sigmoid(-logits)


def _own(table: Any, k: int) -> tuple[Any, Any]:
    """The channels of bucket k in table order, and the places of its packed weights."""
    channels = table[k][table[k] >= 0]
    return channels, int((table[:k] >= 0).sum()) + np.arange(len(channels))


def _packed_skip(m: Any, s: Any, w_compact: Any, table: Any) -> Any:
    """The skip terms (B, N): other channels than the bucket's own are not looked at."""
    columns = []
    for k in range(len(table)):
        own, place = _own(table, k)
        columns.append(m.matmul(s[:, own], w_compact[place]))
    return m.stack(columns, axis=1)


def heads_scatter(m: Any, packed: Any, table: Any) -> Any:
    """Packed values (H,) at each bucket's own channels of (N, H), 0 elsewhere."""
    full = m.zeros((len(table), packed.shape[0]))
    for k in range(len(table)):
        own, place = _own(table, k)
        full = m.put(full, (k, own), packed[place])
    return full
