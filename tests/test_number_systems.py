"""Every operation in every number system: float64, with bounds, at 113 bits, in balls, dual."""

import importlib.util
from functools import partial

import numpy as np
import pytest

from trivet.oracles import cfc, losses, pool
from trivet.oracles._arb import evaluate_arb
from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import evaluate, evaluate_float64
from trivet.oracles._exact import carried
from trivet.oracles._gradient import gradient
from trivet.oracles._multiprecision import evaluate_mpmath

X = np.array([[0.3, 1.1, 0.75, 0.9, 2.5], [-0.5, 3.25, -2.0, 0.0, 1.5]], np.float32).astype(float)
FUNCTIONS = [
    "exp",
    "exp2",
    "expm1",
    "tanh",
    "sigmoid",
    "erf",
    "sin",
    "cos",
    "abs",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "softplus",
    "silu",
    "gelu",
    "relu",
    "sort",
    "argmax",
    "argmin",
    "argsort",
    "cumsum",
    "cumprod",
    "softmax",
    "log_softmax",
    "logsumexp",
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "std",
    "square",
    "negative",
    "isnan",
    "isfinite",
    "isinf",
]
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"]
FORMATS = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "tf32"]
OTHERS = {
    "power": lambda m, x: m.abs(x) ** 1.5,
    "gelu_tanh": lambda m, x: m.gelu(x, approximate="tanh"),
    "matmul": lambda m, x: x @ x.T,
    "einsum": lambda m, x: m.einsum("ij,kj->ik", x, x),
    "topk": lambda m, x: m.topk(x, 2, axis=-1),
    "linear_scan": lambda m, x: m.linear_scan(m.exp(-m.abs(x)), x, axis=1),
    "where": lambda m, x: m.where(x > 0.7, x, 0.0),
    "clip": lambda m, x: m.clip(x, 0.5, 1.0),
    "gather": lambda m, x: m.take(x, np.array([2, 0]), axis=1),
    "scatter_add": lambda m, x: m.scatter_add(m.zeros(5), np.array([1, 1, 2, 0, 4]), x[0]),
    "layer_norm": lambda m, x: (
        (x - m.mean(x, axis=1, keepdims=True)) * m.rsqrt(m.var(x, axis=1, keepdims=True) + 1e-5)
    ),
    "rms_norm": lambda m, x: x * m.rsqrt(m.mean(x * x, axis=1, keepdims=True) + 1e-6),
    "compared": lambda m, x: (x < 1) | (x >= 2.5) & (x != 3.25),
    "int8": lambda m, x: m.cast(m.clip(m.round(x * 100), -128, 127), "int8"),
    "remainder": lambda m, x: x % 0.75,
    "argmax_of_all": lambda m, x: m.argmax(x),
    "cummax": lambda m, x: m.linear_scan(x, x, axis=1) + m.cumsum(x, axis=0),
}
NO_DERIVATIVE = ("argmax", "argmin", "argsort", "isnan", "isfinite", "isinf", "int8", "compared")
needs_flint = pytest.mark.skipif(
    importlib.util.find_spec("flint") is None,
    reason="python-flint is not installed: pip install 'trivet[flint]'",
)


def _unary(name, positive):
    def oracle(m, x):
        argument = m.abs(x) + 0.125 if positive else x
        reduces = name in ("cumsum", "cumprod", "softmax", "log_softmax")
        return getattr(m, name)(argument, axis=-1) if reduces else getattr(m, name)(argument)

    return oracle


ORACLES = {
    **{name: _unary(name, False) for name in FUNCTIONS},
    **{name: _unary(name, True) for name in POSITIVE},
    **{name: (lambda m, x, name=name: m.cast(x, name)) for name in FORMATS},
    **OTHERS,
}


@pytest.mark.parametrize("name", ORACLES)
def test_float64_bounds_and_113_bits_agree(name):
    arguments = {"x": X}
    exact = evaluate_mpmath(ORACLES[name], arguments)
    plain = evaluate_float64(ORACLES[name], arguments)
    for value, single, reference in zip(
        evaluate(ORACLES[name], arguments), plain, exact, strict=True
    ):
        assert single.dtype.kind == reference.dtype.kind
        if value.error is None:
            assert (value.value == reference).all()
            assert (single == reference).all()
            continue
        decided = np.isfinite(value.error)
        room = carried(reference, value.error)
        assert (np.abs(value.value - reference) <= room)[decided].all()
        assert (np.abs(single - reference) <= room)[decided].all()


@needs_flint
@pytest.mark.parametrize("name", ORACLES)
def test_balls_hold_the_value_at_113_bits(name):
    arguments = {"x": X}
    enclosed = evaluate_arb(ORACLES[name], arguments)
    for ball, exact in zip(enclosed, evaluate_mpmath(ORACLES[name], arguments), strict=True):
        assert (np.abs(ball.middle.astype(float) - exact) <= ball.radius).all()


@pytest.mark.parametrize("name", [name for name in ORACLES if name not in NO_DERIVATIVE])
def test_derivatives_are_difference_quotients_at_113_bits(name):
    oracle = ORACLES[name]
    x = X + 0.01  # at no jump, where a quotient means nothing
    outputs = evaluate_float64(oracle, {"x": x})
    cotangents = [np.cos(np.arange(part.size)).reshape(part.shape) for part in outputs]
    try:
        (value,) = gradient(oracle, {"x": x}, ["x"], cotangents)
    except OracleError as error:
        raise AssertionError(f"{name} has no derivative: {error}") from None

    def along(m, x, change):
        outputs = oracle(m, x + change)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        parts = [m.sum(part * weight) for part, weight in zip(outputs, cotangents, strict=True)]
        return sum(parts[1:], parts[0])

    step = 2.0**-40
    for index in np.ndindex(x.shape):
        if not np.isfinite(value.error[index]):
            continue
        change = np.zeros(x.shape)
        change[index] = step
        ahead, behind = (
            evaluate_mpmath(partial(along, change=side * change), {"x": x})[0] for side in (1, -1)
        )
        quotient = (ahead - behind) / (2 * step)
        assert abs(value.value[index] - quotient) <= 1e-3 * max(1.0, abs(quotient))


def test_numbers_outside_a_domain_are_nan_and_divisions_by_zero_infinite():
    def oracle(m, x):
        return m.stack([m.log(x), m.sqrt(x), 1 / m.abs(m.floor(x)), m.maximum(x, m.log(x))])

    (exact,) = evaluate_mpmath(oracle, {"x": np.array([-1.5, 0.5])})
    assert np.isnan(exact[[0, 1, 3], 0]).all()
    assert exact[2].tolist() == [0.5, np.inf]
    order = evaluate_mpmath(lambda m, x: (m.argsort(m.log(x)), m.argmax(m.log(x))), {"x": X[1]})
    assert order[0].tolist() == [3, 4, 1, 0, 2]
    assert order[1] == 0
    with pytest.raises(OracleError, match="no whole number"):
        evaluate_mpmath(lambda m, x: m.cast(1 / (x - x), "int32"), {"x": np.array([1.0])})


def test_a_number_no_float64_holds_stays_itself_until_the_end():
    (ratio,) = evaluate_mpmath(lambda m, x: m.exp(x + 1) / m.exp(x), {"x": np.array([1e5])})
    assert ratio == [np.e]


def test_more_bits_are_closer():
    def cancelled(m, x):
        return (1 + x * x) - 1

    x = np.array([2.0**-40])
    assert evaluate_mpmath(cancelled, {"x": x}, bits=53)[0] == 0.0
    assert evaluate_mpmath(cancelled, {"x": x})[0] == x**2


@pytest.mark.parametrize(
    ("oracle", "arguments"),
    [
        (
            cfc.step,
            {
                "x": X, "h": X[:, :3], "dt": np.array([0.5, 2.0]), "W_in": X[:, [0, 2, 1]].T @ X,
                "W_rec": X[:, :3].T @ X[:, 2:], "b": X[0, :3], "tau": X[0, :3],
            },
        ),
        (pool.attention_pool, {"q": X[0], "X": np.stack([X, X * 2 - 1])}),
        (losses.output_smoothness, {"p": np.stack([X, X * 0.5, X - 1]), "weight": np.abs(X[0])}),
    ],
)  # fmt: skip
def test_shipped_oracles_run_at_113_bits(oracle, arguments):
    for value, exact in zip(
        evaluate(oracle, arguments), evaluate_mpmath(oracle, arguments), strict=True
    ):
        assert (np.abs(value.value - exact) <= value.error * 2.0**-10).all()
