"""Gradients by dual numbers: right values, no right backward kernel refused, wrong ones seen."""

import ml_dtypes
import numpy as np
import pytest

from trivet.oracles._accept import accept
from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import evaluate_float64
from trivet.oracles._gradient import gradient
from trivet.oracles._namespace import Namespace

f32 = np.float32


def once(function, x):
    return np.asarray(function(np.asarray(x, np.float64)), f32)


def complex_step(oracle, arguments, cotangents):
    """The exact gradient of an analytic oracle, one element at a time."""
    result = {}
    for name, argument in arguments.items():
        result[name] = np.zeros(argument.shape)
        for index in np.ndindex(*argument.shape):
            moved = {key: value.astype(complex) for key, value in arguments.items()}
            moved[name][index] += 1e-30j
            outputs = oracle(Namespace(), **moved)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            pairs = zip(outputs, cotangents, strict=True)
            result[name][index] = sum((y.imag * g).sum() for y, g in pairs) / 1e-30
    return result


def cell(m, x, h, dt, W, U, b, tau):
    elapsed = dt[:, None] / tau[None, :]
    drive = x @ W.T + h @ U.T + b
    return h * m.exp(-elapsed) - m.expm1(-elapsed) * m.tanh(drive)


def cell_inputs(seed, hard=False):
    rng, rows, inner, hidden = np.random.default_rng(seed), 4, 5, 7
    low = -6 if hard else -2
    arguments = {
        "x": rng.standard_normal((rows, inner)),
        "h": rng.standard_normal((rows, hidden)),
        "dt": 10.0 ** rng.uniform(low, 1, rows),
        "W": rng.standard_normal((hidden, inner)) / inner**0.5,
        "U": rng.standard_normal((hidden, hidden)) / hidden**0.5,
        "b": rng.standard_normal(hidden),
        "tau": np.exp(rng.standard_normal(hidden)),
    }
    if hard:
        arguments["x"] *= 10.0 ** rng.uniform(-3, 1)
        arguments["h"] *= 10.0 ** rng.uniform(-4, 2, (rows, 1))
    g = rng.standard_normal((rows, hidden)) * (10.0 ** rng.uniform(-3, 3) if hard else 1)
    return {name: value.astype(f32) for name, value in arguments.items()}, g.astype(f32)


def wide(arguments):
    return {name: np.asarray(value, np.float64) for name, value in arguments.items()}


def cell_backward(
    g, x, h, dt, W, U, b, tau, *, rows=None, narrow=lambda t: t, slope=True, total=None
):
    """A backward kernel in float32."""
    total = total or (lambda t: t.sum(0, dtype=f32))
    activity = once(np.tanh, x @ W.T + h @ U.T + b)
    elapsed = dt[:, None] / tau[None, :]
    decay = once(np.exp, -elapsed)
    dpre = g * -once(np.expm1, -elapsed)
    dpre = narrow(dpre * (f32(1) - activity * activity) if slope else dpre)
    ddecay = g * (h - activity) * decay
    part = slice(rows)
    return {
        "x": dpre @ W,
        "h": g * decay + dpre @ U,
        "dt": (-ddecay / tau).sum(1, dtype=f32),
        "W": total((dpre[:, :, None] * x[:, None, :])[part]),
        "U": total((dpre[:, :, None] * h[:, None, :])[part]),
        "b": total(dpre[part]),
        "tau": total((ddecay * dt[:, None] / (tau * tau))[part]),
    }


def refused(values, actual):
    pairs = zip(values, actual.values(), strict=True)
    return any(not accept(np.asarray(y, f32), value).ok.all() for value, y in pairs)


def cell_gradient(arguments, g):
    return gradient(cell, wide(arguments), list(arguments), [g.astype(np.float64)])


def test_gradients_are_those_of_the_complex_step():
    arguments, g = cell_inputs(0)
    exact = complex_step(cell, wide(arguments), [g.astype(np.float64)])
    for name, value in zip(arguments, cell_gradient(arguments, g), strict=True):
        assert (np.abs(value.value - exact[name]) <= 2.0**-20 * value.error).all(), name


@pytest.mark.parametrize("hard", [False, True])
def test_a_right_backward_kernel_is_accepted(hard):
    for seed in range(10):
        arguments, g = cell_inputs(seed, hard)
        assert not refused(cell_gradient(arguments, g), cell_backward(g, **arguments))


FAULTS = {
    "dropped last row": {"rows": -1},
    "missing slope of tanh": {"slope": False},
    "bfloat16 adjoint": {"narrow": lambda t: t.astype(ml_dtypes.bfloat16).astype(f32)},
    "float16 sums": {"total": lambda t: t.astype(np.float16).sum(0, dtype=np.float16).astype(f32)},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_backward_kernels_are_seen(fault):
    seen = []
    for seed in range(10):
        arguments, g = cell_inputs(seed)
        seen.append(
            refused(cell_gradient(arguments, g), cell_backward(g, **arguments, **FAULTS[fault]))
        )
    assert all(seen)


def test_a_factor_of_1_00001_and_swapped_weights_are_seen():
    for seed in range(5):
        arguments, g = cell_inputs(seed)
        values, right = cell_gradient(arguments, g), cell_backward(g, **arguments)
        assert refused(values, {name: y * f32(1 + 1e-5) for name, y in right.items()})
        right["x"] = right["x"][::-1]
        assert refused(values, right)


def softmax(m, x):
    weights = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return weights / m.sum(weights, axis=-1, keepdims=True)


def softmax_backward(x, g):
    weights = once(np.exp, x - x.max(-1, keepdims=True))
    p = weights / weights.sum(-1, keepdims=True, dtype=f32)
    return p * (g - (p * g).sum(-1, keepdims=True, dtype=f32))


@pytest.mark.parametrize("kind", ["normal", "ties", "constant", "offset", "one-hot"])
def test_softmax_backward_has_no_kink_at_ties(kind):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 40))
    x = {
        "normal": x,
        "ties": np.rint(x),
        "constant": np.ones_like(x),
        "offset": x + 1e4,
        "one-hot": x * 1e4,
    }[kind].astype(f32)
    g = rng.standard_normal(x.shape).astype(f32)
    (value,) = gradient(softmax, wide({"x": x}), ["x"], [g.astype(np.float64)])
    assert np.isfinite(value.error).all()
    assert accept(softmax_backward(x, g), value).ok.all()
    if kind in ("normal", "ties", "constant"):
        assert not accept(softmax_backward(x, g) * f32(1.01), value).ok.all()


def layer_norm(x, w, b):
    difference = x - x.mean(-1, keepdims=True)
    return difference / np.sqrt((difference**2).mean(-1, keepdims=True) + 1e-5) * w + b


def test_layer_norm_backward():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, g = rng.standard_normal((2, 5, 40)).astype(f32)
        w, b = rng.standard_normal((2, 40)).astype(f32)
        values = gradient(layer_norm, wide({"x": x, "w": w, "b": b}), ["x", "w", "b"], [g])
        mean = x.mean(-1, keepdims=True, dtype=f32)
        root = f32(1) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True, dtype=f32) + f32(1e-5))
        hat = (x - mean) * root
        wg = w * g
        dx = root * (wg - wg.mean(-1, keepdims=True) - hat * (wg * hat).mean(-1, keepdims=True))
        right = {"x": dx, "w": (g * hat).sum(0, dtype=f32), "b": g.sum(0, dtype=f32)}
        assert not refused(values, right)
        assert refused(
            values, right | {"x": root * (wg - hat * (wg * hat).mean(-1, keepdims=True))}
        )
        assert refused(values, right | {"b": g[:-1].sum(0, dtype=f32)})


def test_a_factor_that_is_zero_but_inexact_keeps_its_doubt():
    x, g = np.full((3, 7), 0.1, f32), np.ones((3, 7), f32)
    (value,) = gradient(
        layer_norm, wide({"x": x, "w": x[0], "b": x[0]}), ["w"], [g.astype(np.float64)]
    )
    assert (value.value == 0).all()
    assert (value.error > 0).all()


def attention(m, q, k, v):
    return m.softmax(q @ k.T * 0.25, axis=-1) @ v


def recurrence(m, a, b, h):
    return m.linear_scan(a, b, h, axis=-1)


def mixture(m, x, y):
    joined = m.concatenate([x[:, ::-1] * y[1:2], x**3], axis=1)
    return (
        joined,
        m.einsum("ij,kj->ik", x, y),
        m.cumsum(x / y, axis=0),
        m.sqrt(y * y) * m.tanh(x),
    )


def statistics(m, x):
    moments = m.logsumexp(x, axis=-1), m.log_softmax(x), m.std(x, axis=0)
    return (*moments, m.gelu(x, "tanh"), m.softplus(m.sigmoid(x)), m.silu(x), m.rsqrt(x * x + 1))


def statistics_written(m, x):
    """The same, of analytic functions."""
    total = np.log(np.exp(x).sum(-1))
    deviation = np.sqrt(((x - x.mean(0)) ** 2).mean(0))
    sigmoid = 1 / (1 + np.exp(-x))
    bell = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    forms = bell, np.log(1 + np.exp(sigmoid)), x * sigmoid, 1 / np.sqrt(x * x + 1)
    return total, x - total[:, None], deviation, *forms


CASES = {
    "attention": (attention, {"q": (3, 4), "k": (5, 4), "v": (5, 2)}),
    "recurrence": (recurrence, {"a": (2, 6), "b": (2, 6), "h": (2,)}),
    "mixture": (mixture, {"x": (3, 4), "y": (3, 4)}),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_many_operations(name):
    oracle, shapes = CASES[name]
    rng = np.random.default_rng(0)
    arguments = {key: rng.standard_normal(shape) for key, shape in shapes.items()}
    outputs = evaluate_float64(oracle, arguments)
    cotangents = [rng.standard_normal(y.shape) for y in outputs]
    exact = complex_step(oracle, arguments, cotangents)
    for key, value in zip(
        shapes, gradient(oracle, arguments, list(shapes), cotangents), strict=True
    ):
        assert np.isfinite(value.error).all()
        assert (np.abs(value.value - exact[key]) <= 2.0**-20 * value.error).all()


def test_gradients_of_statistics_and_activations():
    x = np.random.default_rng(0).standard_normal((3, 4))
    outputs = evaluate_float64(statistics, {"x": x})
    cotangents = [np.random.default_rng(1).standard_normal(y.shape) for y in outputs]
    exact = complex_step(statistics_written, {"x": x}, cotangents)["x"]
    (value,) = gradient(statistics, {"x": x}, ["x"], cotangents)
    assert (np.abs(value.value - exact) <= 2.0**-20 * value.error).all()


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("erf", lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x)),
        ("exp2", lambda x: np.log(2) * np.exp2(x)),
        ("log2", lambda x: 1 / (x * np.log(2))),
        ("log1p", lambda x: 1 / (1 + x)),
        ("sin", np.cos),
        ("cos", lambda x: -np.sin(x)),
        ("abs", np.sign),
        ("floor", np.zeros_like),
        ("reciprocal", lambda x: -1 / x**2),
        ("arctan", lambda x: 1 / (1 + x * x)),
    ],
)
def test_slopes(name, slope):
    x = np.random.default_rng(0).uniform(0.1, 3, 20)
    (value,) = gradient(lambda m, x: getattr(m, name)(x), {"x": x}, ["x"], [np.ones(20)])
    assert (np.abs(value.value - slope(x)) <= 2.0**-20 * value.error).all()


@pytest.mark.parametrize("form", ["quotient first", "square last"])
def test_what_underflows_within_a_quotient_is_carried_on(form):
    a, b, g = (np.array([x], f32) for x in (1e-7, 1e-3, 3e-43))
    found = gradient(lambda a, b: a / b, wide({"a": a, "b": b}), ["b"], [g.astype(float)])
    actual = -(f32(g * (a / b)) / b) if form == "quotient first" else -(g * a / (b * b))
    assert found[0].value < -1e-44
    assert actual == 0, "what is lost in the subnormal range came before a division by 0.001"
    assert accept(actual, found[0]).ok.all()
    assert not accept(actual + f32(1e-37), found[0]).ok.any()


def test_kinks_are_undecidable_and_nothing_else():
    x = np.array([-1.0, 0.0, 2.0])
    (value,) = gradient(lambda m, x: m.maximum(x, 0.0), {"x": x}, ["x"], [np.ones(3)])
    np.testing.assert_array_equal(np.isinf(value.error), [False, True, False])
    np.testing.assert_array_equal(value.value[[0, 2]], [0.0, 1.0])
    x = np.array([1.0, 1.0, 0.0])
    (value,) = gradient(lambda m, x: m.max(x), {"x": x}, ["x"], [np.ones(())])
    assert np.isinf(value.error[:2]).all()
    (second,) = gradient(
        lambda m, x: m.max(x), {"x": x}, ["x"], [np.ones(())], elements={"x": np.array([1])}
    )
    assert np.isinf(second.error).all()


def test_chosen_elements_are_those_of_the_whole_gradient():
    arguments, g = cell_inputs(3)
    whole = cell_gradient(arguments, g)[3]
    (some,) = gradient(
        cell, wide(arguments), ["W"], [g.astype(np.float64)], elements={"W": np.array([0, 34, 11])}
    )
    np.testing.assert_array_equal(some.value, whole.value.ravel()[[0, 34, 11]])


def test_integer_arguments_and_absent_cotangents():
    def oracle(m, x, index):
        return x[index], x * 2.0

    values = gradient(
        oracle, {"x": np.arange(4.0), "index": np.array([0, 2, 2])}, ["x"], [np.ones(3), None]
    )
    np.testing.assert_array_equal(values[0].value, [1.0, 0.0, 2.0, 0.0])


def test_an_operation_without_a_derivative_is_named():
    with pytest.raises(OracleError, match="quantile"):
        gradient(lambda m, x: m.quantile(x, 0.5), {"x": np.ones(3)}, ["x"], [np.ones(())])


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_gradients_of_numbers_and_arrays_alike(shape):
    x, b = np.full((2, 3), 1.5), np.full(shape, 2.0)
    cotangent = np.ones((2, 3))

    (value,) = gradient(lambda m, x, b: x * b, {"x": x, "b": b}, ["b"], [cotangent])

    assert value.value.shape == shape
    assert (value.value == 9.0 / b.size).all()
