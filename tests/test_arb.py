"""Float64 values of oracles against enclosures at 113 bits, where python-flint is installed."""

import builtins
import importlib.util

import numpy as np
import pytest

from trivet.oracles import _arb
from trivet.oracles import cfc as cfc_oracles
from trivet.oracles._arb import MissingExtraError, evaluate_arb
from trivet.oracles._errors import OracleError, Undecidable
from trivet.oracles._evaluate import evaluate

needs_flint = pytest.mark.skipif(
    importlib.util.find_spec("flint") is None,
    reason="python-flint is not installed: pip install 'trivet[flint]'",
)


def normal(*shape, scale=1.0):
    drawn = np.random.default_rng(11).normal(size=shape) * scale
    return drawn.astype(np.float32).astype(np.float64)


def softmax(m, x):
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def layer_norm(m, x):
    centred = x - m.mean(x, axis=-1, keepdims=True)
    return centred * m.rsqrt(m.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def scan(m, x):
    return m.linear_scan(m.sigmoid(x), x * x, axis=0)


def clamped(m, x):
    return m.where(x > 0, m.minimum(x, 2.0), m.abs(x) ** 3)


def projected(x):
    return np.tanh(x) @ x.T - np.einsum("ij,kj->ik", x, x)


def stepped(m, x):
    out = m.zeros((4, x.shape[1]))
    state = x[0]
    for row in range(4):
        state = 0.5 * state + m.softplus(x[row])
        out[row] = state
    return m.concatenate([out, m.cumsum(x, axis=0)]), m.logsumexp(x, axis=-1)


def functions(m, x):
    y = m.abs(x) + 0.125
    return m.stack([
        m.exp2(x), m.expm1(x), m.log(y), m.log2(y), m.log10(y), m.log1p(y), m.sqrt(y), m.sin(x),
        m.cos(x), m.erf(x), m.silu(x), m.gelu(x), m.gelu(x, approximate="tanh"), y**0.25,
    ])  # fmt: skip


@needs_flint
@pytest.mark.parametrize(
    "oracle", [softmax, layer_norm, scan, clamped, projected, stepped, functions]
)
def test_float64_values_lie_in_the_enclosure(oracle):
    x = normal(5, 24, scale=3.0)
    for value, ball in zip(evaluate(oracle, {"x": x}), evaluate_arb(oracle, {"x": x}), strict=True):
        assert (ball.radius <= 2.0**-50 * np.maximum(np.abs(ball.middle), 1)).all()
        # a bound has room of a thousandth for the rounding of its own float64 value
        slack = ball.radius + value.error * 2.0**-10
        assert (np.abs(value.value - ball.middle) <= slack).all()


@needs_flint
def test_a_shipped_oracle_is_enclosed():
    size, rows = 8, 3
    arguments = {
        "x": normal(rows, size), "h": normal(rows, size), "dt": np.abs(normal(rows)),
        "W_in": normal(size, size), "W_rec": normal(size, size), "b": normal(size),
        "tau": np.abs(normal(size)) + 0.5,
    }  # fmt: skip
    [value] = evaluate(cfc_oracles.step, arguments)
    [ball] = evaluate_arb(cfc_oracles.step, arguments)
    assert (np.abs(value.value - ball.middle) <= ball.radius + value.error * 2.0**-10).all()


@needs_flint
def test_more_bits_make_smaller_balls():
    narrow, wide = (evaluate_arb(softmax, {"x": normal(2, 9)}, bits=bits)[0] for bits in (24, 113))
    assert (narrow.radius > 1e3 * wide.radius).all()


@needs_flint
def test_integers_scalars_and_none_pass_through():
    def oracle(m, x, n, scale):
        return x * scale, np.asarray(n), None

    scaled, whole, nothing = evaluate_arb(oracle, {"x": normal(3), "n": 4, "scale": 0.5})
    assert np.array_equal(scaled.middle, normal(3) * 0.5)
    assert (whole.middle, whole.radius, nothing) == (4, 0.0, None)


@needs_flint
def test_what_a_ball_does_not_decide_is_said():
    with pytest.raises(Undecidable):
        evaluate_arb(lambda m, x: m.where(m.exp(m.log(x)) > x, x, 0.0), {"x": np.asarray([3.0])})
    thirds = {"x": np.asarray([1.0, 3.0])}
    with pytest.raises(Undecidable, match="less"):
        evaluate_arb(lambda m, x: m.argsort(m.exp(m.log(x - x + 3))), thirds)
    with pytest.raises(Undecidable, match="whole"):
        evaluate_arb(lambda m, x: m.cast(m.exp(m.log(x)), "int8"), thirds)
    with pytest.raises(OracleError, match="quantile"):
        evaluate_arb(lambda m, x: m.quantile(x, 0.5), thirds)


def test_a_missing_python_flint_names_the_extra(monkeypatch):
    def missing(name):
        raise builtins.ImportError(name)

    monkeypatch.setattr(_arb, "import_module", missing)
    _arb._flint.cache_clear()
    with pytest.raises(MissingExtraError, match=r"pip install 'trivet\[flint\]'"):
        evaluate_arb(softmax, {"x": normal(2, 3)})
    _arb._flint.cache_clear()
