"""Gradients of products in the forms of backward kernels, and of paths that overflow."""

import warnings

import numpy as np
import pytest

from trivet.oracles._accept import accept
from trivet.oracles._evaluate import Value
from trivet.oracles._gradient import gradient

f32 = np.float32


def random(*shape):
    return np.random.default_rng(23).standard_normal(shape).astype(f32)


def _prefixed(x, g):
    before = np.cumprod(np.concatenate([np.ones_like(x[:, :1]), x[:, :-1]], 1), 1, f32)
    after = np.concatenate([np.ones_like(x[:, :1]), x[:, :0:-1]], 1)
    after = np.cumprod(after, 1, f32)[:, ::-1]
    return g * before * after


def _quotient(x, g):
    return g * np.prod(x, 1, keepdims=True, dtype=f32) / x


@pytest.mark.parametrize("form", [_prefixed, _quotient])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e-9])
def test_gradients_of_products(form, scale):
    x, g = random(40, 9), random(40, 1)
    x = (np.where(np.abs(x) < 0.1, 0.5, x) * scale).astype(f32)
    wide = {"x": x.astype(np.float64)}
    (value,) = gradient(lambda m, x: m.prod(x, 1), wide, ["x"], [g[:, 0].astype(np.float64)])
    assert accept(form(x, g), value).ok.all()
    assert not accept(form(x, g) * f32(1 + 1e-5), value).ok.all() or scale < 1e-5


def test_gradients_of_running_products_in_two_orders():
    x, g = random(40, 9), random(40, 9)
    products = np.cumprod(x, 1, dtype=f32)
    shares = (g * products)[:, ::-1]
    direct = np.cumsum(shares, 1, dtype=f32)[:, ::-1] / x
    wide = x.astype(np.float64)
    (value,) = gradient(lambda m, x: m.cumprod(x, axis=1), {"x": wide}, ["x"], [g.astype(float)])
    assert accept(direct, value).ok.all()
    wrong = np.cumsum(shares[:, :-1], 1, dtype=f32)[:, ::-1] / x[:, 1:]
    assert not accept(wrong, _part(value, np.s_[:, :-1])).ok.all()


def _part(value, key):
    return Value(value.value[key], value.error[key], value.blame)


def test_overflowing_paths_are_undecided_without_a_warning():
    x = {"x": np.array([200.0, 160.0])}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (value,) = gradient(
            lambda m, x: m.exp(x) * m.exp(x) * m.exp(x) * m.exp(x),
            x,
            ["x"],
            [np.array([0.0, 1e300])],
        )
    assert value.value[0] == 0
    assert np.isinf(value.error[1])
