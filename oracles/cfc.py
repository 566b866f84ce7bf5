"""The closed-form continuous-time cell, written from its formulas twice, sharing nothing.

Shapes: x (B, D), h and g (B, H), dt (B,) in seconds and not negative, W_in (H, D), W_rec (H, H),
b and tau (H,), tau in seconds and positive, table (N, M) of channels with -1 in unused slots, out
(B, H). ``g`` is the loss's gradient to the new state; dt has none. The array forms take the math
namespace ``m``, those that end in ``_scalar`` the index of one output element.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import mpmath
import numpy as np

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
Matrix = Sequence[Sequence[float]]


def step(m: Any, x: Any, h: Any, dt: Any, W_in: Any, W_rec: Any, b: Any, tau: Any) -> Any:
    """h' = h exp(-dt/tau) + (1 - exp(-dt/tau)) tanh(b + W_in x + W_rec h), shape (B, H)."""
    decay, fresh = _decay(m, dt, tau)
    return h * decay + fresh * m.tanh(_drive(m, x, h, W_in, W_rec, b))


def step_per_branch(
    m: Any,
    x: Any,
    h: Any,
    dt: Any,
    W_in: Any,
    W_rec: Any,
    b: Any,
    tau: Any,
    table: Any,
    out: Any,
) -> Any:
    """The cell at the channels of some bucket, what ``out`` held before at the others."""
    return m.where(_served(table, tau), step(m, x, h, dt, W_in, W_rec, b, tau), out)


def step_backward(
    m: Any, g: Any, x: Any, h: Any, dt: Any, W_in: Any, W_rec: Any, b: Any, tau: Any
) -> tuple[Any, ...]:
    """dx, dh, dW_in, dW_rec, db and dtau, in this order."""
    decay, fresh = _decay(m, dt, tau)
    activity = m.tanh(_drive(m, x, h, W_in, W_rec, b))
    dpre = g * fresh * (1.0 - activity * activity)
    ddecay = g * (h - activity)
    # One sum for each state: where the direct term is added is the kernel's own choice.
    through_weights = dpre[:, :, None] * W_rec[None, :, :]
    dh = m.sum(m.concatenate([through_weights, (g * decay)[:, None, :]], axis=1), axis=1)
    dtau = m.sum(ddecay * decay * dt[:, None] / (tau * tau)[None, :], axis=0)
    return (
        m.matmul(dpre, W_in),
        dh,
        m.matmul(dpre.T, x),
        m.matmul(dpre.T, h),
        m.sum(dpre, axis=0),
        dtau,
    )


def step_per_branch_backward(
    m: Any,
    g: Any,
    x: Any,
    h: Any,
    dt: Any,
    W_in: Any,
    W_rec: Any,
    b: Any,
    tau: Any,
    table: Any,
) -> tuple[Any, ...]:
    """As ``step_backward``; a channel outside every bucket counts as g = 0."""
    own = m.where(_served(table, tau), g, 0.0)
    return step_backward(m, own, x, h, dt, W_in, W_rec, b, tau)


def _drive(m: Any, x: Any, h: Any, W_in: Any, W_rec: Any, b: Any) -> Any:
    """b + W_in x + W_rec h (B, H): one sum of 1 + D + H terms, in whatever order."""
    ones = np.ones((x.shape[0], 1))
    terms = m.concatenate([ones, x, h], axis=1)
    return m.matmul(terms, m.concatenate([b[:, None], W_in, W_rec], axis=1).T)


def _decay(m: Any, dt: Any, tau: Any) -> tuple[Any, Any]:
    """exp(-dt/tau) and its complement, the latter accurate for dt << tau; both (B, H)."""
    elapsed = dt[:, None] / tau[None, :]
    return m.exp(-elapsed), -m.expm1(-elapsed)


def _served(table: Any, tau: Any) -> Any:
    """Which channels are in some bucket, bool (H,)."""
    served = np.zeros(tau.shape[0], bool)
    served[table[table >= 0]] = True
    return served


def step_scalar(
    index: tuple[int, ...],
    x: Matrix,
    h: Matrix,
    dt: Sequence[float],
    W_in: Matrix,
    W_rec: Matrix,
    b: Sequence[float],
    tau: Sequence[float],
) -> Any:
    """One channel of one row's new state."""
    row, channel = index
    with mpmath.workprec(_BITS):
        pre = _pre_activation(row, channel, x, h, W_in, W_rec, b)
        age = mpmath.mpf(float(dt[row])) / mpmath.mpf(float(tau[channel]))
        kept = mpmath.exp(-age) * mpmath.mpf(float(h[row][channel]))
        return kept - mpmath.expm1(-age) * mpmath.tanh(pre)


def step_per_branch_scalar(
    index: tuple[int, ...],
    x: Matrix,
    h: Matrix,
    dt: Sequence[float],
    W_in: Matrix,
    W_rec: Matrix,
    b: Sequence[float],
    tau: Sequence[float],
    table: Sequence[Sequence[int]],
    out: Matrix,
) -> Any:
    """One channel of one row of the buffer afterwards."""
    row, channel = index
    if not _has_bucket(channel, table):
        return mpmath.mpf(float(out[row][channel]))
    return step_scalar(index, x, h, dt, W_in, W_rec, b, tau)


def step_backward_scalar(
    index: tuple[int, ...],
    output: str,
    g: Matrix,
    x: Matrix,
    h: Matrix,
    dt: Sequence[float],
    W_in: Matrix,
    W_rec: Matrix,
    b: Sequence[float],
    tau: Sequence[float],
) -> Any:
    """One element of the gradient that ``output`` names: dx, dh, dW_in, dW_rec, db or dtau."""
    with mpmath.workprec(_BITS):
        cell = _Cell(g, x, h, dt, W_in, W_rec, b, tau)
        match output, index:
            case "dx", (row, feature):
                return _total(cell.dpre(row, c) * W_in[c][feature] for c in range(len(b)))
            case "dh", (row, j):
                through = _total(cell.dpre(row, c) * W_rec[c][j] for c in range(len(b)))
                return through + cell.g(row, j) * mpmath.exp(-cell.age(row, j))
            case "dW_in", (channel, feature):
                return _total(cell.dpre(r, channel) * x[r][feature] for r in range(len(dt)))
            case "dW_rec", (channel, j):
                return _total(cell.dpre(r, channel) * h[r][j] for r in range(len(dt)))
            case "db", (channel,):
                return _total(cell.dpre(r, channel) for r in range(len(dt)))
            case "dtau", (channel,):
                return _total(cell.dtau(r, channel) for r in range(len(dt)))
    return None


def step_per_branch_backward_scalar(
    index: tuple[int, ...],
    output: str,
    g: Matrix,
    x: Matrix,
    h: Matrix,
    dt: Sequence[float],
    W_in: Matrix,
    W_rec: Matrix,
    b: Sequence[float],
    tau: Sequence[float],
    table: Sequence[Sequence[int]],
) -> Any:
    """As ``step_backward_scalar``, with g = 0 at channels outside every bucket."""
    inside = [_has_bucket(channel, table) for channel in range(len(b))]
    own = [[v if kept else 0.0 for v, kept in zip(row, inside, strict=True)] for row in g]
    return step_backward_scalar(index, output, own, x, h, dt, W_in, W_rec, b, tau)


class _Cell:
    """The inner quantities of the backward formulas at one row and channel."""

    def __init__(
        self,
        g: Matrix,
        x: Matrix,
        h: Matrix,
        dt: Sequence[float],
        W_in: Matrix,
        W_rec: Matrix,
        b: Sequence[float],
        tau: Sequence[float],
    ) -> None:
        self._g, self._x, self._h, self._dt, self._tau = g, x, h, dt, tau
        self._weights = (W_in, W_rec, b)

    def g(self, row: int, channel: int) -> Any:
        return mpmath.mpf(float(self._g[row][channel]))

    def age(self, row: int, channel: int) -> Any:
        return mpmath.mpf(float(self._dt[row])) / mpmath.mpf(float(self._tau[channel]))

    def _activity(self, row: int, channel: int) -> Any:
        return mpmath.tanh(_pre_activation(row, channel, self._x, self._h, *self._weights))

    def dpre(self, row: int, channel: int) -> Any:
        if self._g[row][channel] == 0:
            return mpmath.mpf(0)
        pre = _pre_activation(row, channel, self._x, self._h, *self._weights)
        return -self.g(row, channel) * mpmath.expm1(-self.age(row, channel)) / mpmath.cosh(pre) ** 2

    def dtau(self, row: int, channel: int) -> Any:
        held = mpmath.mpf(float(self._h[row][channel])) - self._activity(row, channel)
        age = self.age(row, channel)
        slope = mpmath.exp(-age) * age / mpmath.mpf(float(self._tau[channel]))
        return self.g(row, channel) * held * slope


def _pre_activation(
    row: int, channel: int, x: Matrix, h: Matrix, W_in: Matrix, W_rec: Matrix, b: Sequence[float]
) -> Any:
    """The argument of tanh: products of float32 numbers are exact, and fsum rounds once."""
    from_input = (float(w) * float(v) for w, v in zip(W_in[channel], x[row], strict=True))
    from_state = (float(w) * float(v) for w, v in zip(W_rec[channel], h[row], strict=True))
    return mpmath.mpf(math.fsum(itertools.chain([float(b[channel])], from_input, from_state)))


def _total(terms: Iterable[Any]) -> Any:
    return mpmath.fsum(terms)


def _has_bucket(channel: int, table: Sequence[Sequence[int]]) -> bool:
    return any(channel == int(slot) for row in table for slot in row)
