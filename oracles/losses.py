"""The training losses, written from their formulas twice, sharing nothing.

Shapes: logits and labels (K, B, N), a NaN label is absent; p (K, B, N); weight, g_loss and g_mean
(N,). The array forms take the math namespace ``m``, those that end in ``_scalar`` the index of
one output element.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
Cube = Sequence[Sequence[Sequence[float]]]


def bce_multi_horizon(m: Any, logits: Any, labels: Any) -> Any:
    """Mean over present labels of y softplus(-x) + (1 - y) softplus(x), shape (N,)."""
    present, label, count = _present(m, labels)
    entropy = label * m.softplus(-logits) + (1.0 - label) * m.softplus(logits)
    return m.sum(m.where(present, entropy, 0.0), axis=(0, 1)) / count


def bce_multi_horizon_backward(m: Any, g_loss: Any, logits: Any, labels: Any) -> Any:
    """g ((1 - y) sigmoid(x) - y sigmoid(-x)) / count at present labels, 0 at others."""
    present, label, count = _present(m, labels)
    slope = (1.0 - label) * m.sigmoid(logits) - label * m.sigmoid(-logits)
    return m.where(present, g_loss / count * slope, 0.0)


def _present(m: Any, labels: Any) -> tuple[Any, Any, Any]:
    """Which labels are there, the labels with 0 for the others, how many of a horizon, or 1."""
    present = ~m.isnan(labels)
    count = np.maximum(np.sum(present, axis=(0, 1)), 1).astype(float)
    return present, m.where(present, labels, 0.0), count


def output_smoothness(m: Any, p: Any, weight: Any) -> tuple[Any, Any]:
    """Weighted and plain mean over B and the K - 1 steps of (p_t - p_{t-1})^2, both (N,)."""
    K, B, N = p.shape
    if K <= 1 or B == 0:
        return m.zeros((N,)), m.zeros((N,))
    change = p[1:] - p[:-1]
    mean = m.sum(change * change, axis=(0, 1)) / float(B * (K - 1))
    return weight * mean, mean


def output_smoothness_backward(m: Any, g_loss: Any, g_mean: Any, p: Any, weight: Any) -> Any:
    """2 (g_loss weight + g_mean) / (B (K - 1)) times the changes from both neighbours."""
    K, B, N = p.shape
    if K <= 1 or B == 0:
        return m.zeros((K, B, N))
    edge = m.zeros((1, B, N))
    change = p[1:] - p[:-1]
    scale = 2.0 * (g_loss * weight + g_mean) / float(B * (K - 1))
    return scale * (m.concatenate([edge, change], axis=0) - m.concatenate([change, edge], axis=0))


def bce_multi_horizon_scalar(index: tuple[int, ...], logits: Cube, labels: Cube) -> Any:
    """One horizon's loss, with enough digits for sure and right predictions."""
    (k,) = index
    with mpmath.workprec(4 * _BITS):
        terms = [
            _entropy(row[k], wanted[k])
            for rows, targets in zip(logits, labels, strict=True)
            for row, wanted in zip(rows, targets, strict=True)
            if wanted[k] == wanted[k]
        ]
        return mpmath.fsum(terms) / max(len(terms), 1)


def _entropy(logit: float, label: float) -> Any:
    """-y log(p) - (1 - y) log(1 - p), by the logarithms of 1 + exp(+-x)."""
    x, y = mpmath.mpf(float(logit)), mpmath.mpf(float(label))
    rising = mpmath.log1p(mpmath.exp(x)) if x < 0 else x + mpmath.log1p(mpmath.exp(-x))
    return rising - y * x


def bce_multi_horizon_backward_scalar(
    index: tuple[int, ...], g_loss: Sequence[float], logits: Cube, labels: Cube
) -> Any:
    """The gradient to one logit: (p - y) g / count, with enough digits for p near y."""
    t, b, k = index
    label = float(labels[t][b][k])
    if label != label:
        return mpmath.mpf(0)
    count = sum(row[k] == row[k] for rows in labels for row in rows)
    with mpmath.workprec(4 * _BITS):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(float(logits[t][b][k]))))
        return mpmath.mpf(float(g_loss[k])) * (p - label) / int(count)


def output_smoothness_scalar(
    index: tuple[int, ...], output: str, p: Cube, weight: Sequence[float]
) -> Any:
    """One horizon's loss or mean."""
    (k,) = index
    with mpmath.workprec(_BITS):
        changes = [
            (mpmath.mpf(float(after[k])) - mpmath.mpf(float(before[k]))) ** 2
            for earlier, later in itertools.pairwise(p)
            for before, after in zip(earlier, later, strict=True)
        ]
        mean = mpmath.fsum(changes) / max(len(changes), 1)
        return mean * mpmath.mpf(float(weight[k])) if output == "loss" else mean


def output_smoothness_backward_scalar(
    index: tuple[int, ...],
    g_loss: Sequence[float],
    g_mean: Sequence[float],
    p: Cube,
    weight: Sequence[float],
) -> Any:
    """The gradient to one probability: the derivative of at most two squares."""
    t, b, k = index
    with mpmath.workprec(_BITS):
        here = mpmath.mpf(float(p[t][b][k]))
        neighbours = [float(p[s][b][k]) for s in (t - 1, t + 1) if 0 <= s < len(p)]
        if not neighbours:
            return mpmath.mpf(0)
        outer = mpmath.mpf(float(g_loss[k])) * mpmath.mpf(float(weight[k])) + float(g_mean[k])
        pull = mpmath.fsum(here - mpmath.mpf(each) for each in neighbours)
        return 2 * outer * pull / (len(p[0]) * (len(p) - 1))
