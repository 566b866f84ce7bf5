"""The float64 value of a bounded number against 113-bit arithmetic."""

import mpmath
import numpy as np
import pytest

from trivet.oracles._evaluate import evaluate
from trivet.oracles._exact import chosen_indices, exact_dot, exact_elements

# The bound is widened by 2^-10 at each operation for the value's own rounding.
ALLOWED = 2.0**-10


def gap(value, exact, indices):
    """The largest |value - exact| over the bound."""
    error = np.array([value.error[index] for index in indices])
    distance = np.abs(np.array([value.value[index] for index in indices]) - exact)
    finite = np.isfinite(error)
    return float(
        np.max(np.where(error > 0, distance / np.where(error > 0, error, 1), distance)[finite])
    )


def inputs(kind, shape, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape)
    if kind == "offset":
        x = x + 1e4
    elif kind == "wide":
        x = x * 10.0 ** np.random.default_rng(seed + 1).uniform(-12, 4, shape)
    elif kind == "cancelling":
        x[..., 1::2] = -x[..., 0::2] * (1 + 1e-7)
    return x.astype(np.float32).astype(np.float64)


KINDS = ["normal", "offset", "wide", "cancelling"]


@pytest.mark.parametrize("kind", KINDS)
def test_dot_products(kind):
    a, b = inputs(kind, (6, 128)), inputs("normal", (128, 4), 5)

    def scalar(index, a, b):
        return exact_dot(a[index[0]], [row[index[1]] for row in b])

    (value,) = evaluate(lambda m, a, b: a @ b, {"a": a, "b": b})
    indices = chosen_indices((6, 4), 32, np.random.default_rng(0))
    assert gap(value, exact_elements(scalar, indices, {"a": a, "b": b}), indices) < ALLOWED


@pytest.mark.parametrize("kind", KINDS)
def test_softmax_and_log_sum_exp(kind):
    x = inputs(kind, (4, 64))
    x = np.clip(x, -1e4, 2e4)

    def weight(index, x):
        row = x[index[0]]
        peak = max(row)
        terms = [mpmath.exp(value - peak) for value in row]
        return terms[index[1]] / mpmath.fsum(terms)

    def total(index, x):
        peak = max(x[index[0]])
        return peak + mpmath.log(mpmath.fsum(mpmath.exp(value - peak) for value in x[index[0]]))

    indices = chosen_indices(x.shape, 32, np.random.default_rng(1))
    (value,) = evaluate(lambda m, x: m.softmax(x, axis=-1), {"x": x})
    assert gap(value, exact_elements(weight, indices, {"x": x}), indices) < ALLOWED
    (value,) = evaluate(lambda m, x: m.logsumexp(x, axis=-1), {"x": x})
    indices = [(row,) for row in range(4)]
    assert gap(value, exact_elements(total, indices, {"x": x}), indices) < ALLOWED


@pytest.mark.parametrize("kind", KINDS)
def test_layer_norm(kind):
    x = inputs(kind, (4, 64))
    eps = float(np.float32(1e-5))

    def scalar(index, x):
        row = x[index[0]]
        mean = mpmath.fsum(row) / len(row)
        variance = mpmath.fsum((value - mean) ** 2 for value in row) / len(row)
        return (row[index[1]] - mean) / mpmath.sqrt(variance + mpmath.mpf(eps))

    def oracle(x, eps):
        difference = x - x.mean(-1, keepdims=True)
        return difference / np.sqrt((difference**2).mean(-1, keepdims=True) + eps)

    indices = chosen_indices(x.shape, 32, np.random.default_rng(2))
    (value,) = evaluate(oracle, {"x": x, "eps": eps})
    assert gap(value, exact_elements(scalar, indices, {"x": x}), indices) < ALLOWED


FUNCTIONS = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log1p": mpmath.log1p,
    "tanh": mpmath.tanh,
    "erf": mpmath.erf,
    "sin": mpmath.sin,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "gelu": lambda x: x * (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2,
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    x = np.random.default_rng(3).standard_normal(64) * 10.0 ** np.linspace(-8, 1.2, 64)
    x = np.maximum(x, -0.9) if name == "log1p" else x
    x = x.astype(np.float32).astype(np.float64)

    def scalar(index, x):
        return FUNCTIONS[name](x[index[0]])

    (value,) = evaluate(lambda m, x: getattr(m, name)(x), {"x": x})
    indices = [(i,) for i in range(64)]
    assert gap(value, exact_elements(scalar, indices, {"x": x}), indices) < ALLOWED


def test_chosen_indices_are_corners_then_others_without_repeats():
    chosen = chosen_indices((40, 300), 32, np.random.default_rng(0))
    assert len(set(chosen)) == 32
    assert {(0, 0), (0, 299), (39, 0), (39, 299)} <= set(chosen)
    assert len(chosen_indices((2, 3), 32, np.random.default_rng(0))) == 6
    assert chosen_indices((0, 3), 32, np.random.default_rng(0)) == []
