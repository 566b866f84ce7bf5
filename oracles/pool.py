"""The attention pool, written from its formula twice, sharing nothing.

Shapes: q (H,), X (B, K, H), g (B, H). The array forms take the math namespace ``m``, those that
end in ``_scalar`` the index of one output element.
"""

import math
from collections.abc import Sequence
from typing import Any

import mpmath

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
Matrix = Sequence[Sequence[float]]
Cube = Sequence[Matrix]


def attention_pool(m: Any, q: Any, X: Any) -> Any:
    """sum_t softmax(q . X_t / sqrt(H))_t X_t, shape (B, H)."""
    weight = _weights(m, q, X)
    return m.matmul(weight[:, None, :], X)[:, 0]


def _weights(m: Any, q: Any, X: Any) -> Any:
    """softmax over events of the scores, (B, K)."""
    return m.softmax(m.matmul(X, q) / math.sqrt(len(q)), axis=1)


def attention_pool_backward(m: Any, g: Any, q: Any, X: Any) -> tuple[Any, Any]:
    """dq and dX: p_t g, and through the scores p_t g . (X_t - out) times q or X_t, over sqrt(H)."""
    weight = _weights(m, q, X)
    out = m.matmul(weight[:, None, :], X)
    pull = m.sum((X - out) * g[:, None, :], axis=2)
    to_score = weight * pull / math.sqrt(len(q))
    dq = m.sum(to_score[:, :, None] * X, axis=(0, 1))
    return dq, weight[:, :, None] * g[:, None, :] + to_score[:, :, None] * q


def attention_pool_scalar(index: tuple[int, ...], q: Sequence[float], X: Cube) -> Any:
    """One component of one row's pooled state."""
    b, c = index
    with mpmath.workprec(_BITS):
        return _pooled(_softmax(q, X[b]), X[b], c)


def _softmax(q: Sequence[float], states: Matrix) -> list[Any]:
    """The weights of one row's events; products of float32 numbers are exact, fsum rounds once."""
    root = mpmath.sqrt(len(q))
    scores = [
        mpmath.mpf(math.fsum(float(a) * float(b) for a, b in zip(q, state, strict=True))) / root
        for state in states
    ]
    largest = max(scores)
    terms = [mpmath.exp(score - largest) for score in scores]
    total = mpmath.fsum(terms)
    return [term / total for term in terms]


def _pooled(weights: Sequence[Any], states: Matrix, c: int) -> Any:
    return mpmath.fsum(
        weight * mpmath.mpf(float(state[c])) for weight, state in zip(weights, states, strict=True)
    )


def attention_pool_backward_scalar(
    index: tuple[int, ...], output: str, g: Matrix, q: Sequence[float], X: Cube
) -> Any:
    """One element of dq or dX."""
    with mpmath.workprec(_BITS):
        if output == "dq":
            (c,) = index
            return mpmath.fsum(
                to_score * mpmath.mpf(float(state[c]))
                for row, states in zip(g, X, strict=True)
                for to_score, state in zip(_to_scores(row, q, states), states, strict=True)
            )
        b, t, c = index
        direct = _softmax(q, X[b])[t] * mpmath.mpf(float(g[b][c]))
        return direct + _to_scores(g[b], q, X[b])[t] * mpmath.mpf(float(q[c]))


def _to_scores(g: Sequence[float], q: Sequence[float], states: Matrix) -> list[Any]:
    """The gradient to each event's q . X_t."""
    weights = _softmax(q, states)
    along = [
        mpmath.mpf(math.fsum(float(a) * float(b) for a, b in zip(g, state, strict=True)))
        for state in states
    ]
    mean = mpmath.fsum(weight * each for weight, each in zip(weights, along, strict=True))
    root = mpmath.sqrt(len(q))
    return [w * (each - mean) / root for w, each in zip(weights, along, strict=True)]
