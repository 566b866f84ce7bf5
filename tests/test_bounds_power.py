"""Wrong kernels lie outside the bound: what each fault needs to be seen."""

import ml_dtypes
import numpy as np
import pytest

from trivet.oracles._accept import accept
from trivet.oracles._evaluate import evaluate
from trivet.oracles._precision import Precision
from trivet.oracles._probes import exact_magnitude, odd_integers, signs

f32 = np.float32


def draws(*shape, seeds=20, scale=1.0):
    for seed in range(seeds):
        yield np.asarray(np.random.default_rng(seed).standard_normal(shape) * scale, f32)


def seen(oracle, actual, precision=None, **arguments):
    """Whether some element of `actual` is refused."""
    exact = {name: np.asarray(x, np.float64) for name, x in arguments.items()}
    (value,) = evaluate(oracle, exact, precision=precision)
    with np.errstate(all="ignore"):
        verdict = accept(np.asarray(actual), value)
    return bool((~verdict.ok).any())


def share(results):
    results = list(results)
    return sum(results) / len(results)


def once(function, x):
    with np.errstate(all="ignore"):
        return np.asarray(function(np.asarray(x, np.float64)), f32)


def fold(x, dtype=f32):
    with np.errstate(over="ignore"):
        return np.add.accumulate(x.astype(dtype), axis=-1, dtype=dtype)[..., -1].astype(f32)


def tf32(x):
    bits = np.asarray(x, f32).view(np.uint32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)).view(f32)


def bfloat16(x):
    return np.asarray(x).astype(ml_dtypes.bfloat16).astype(f32)


def softmax_oracle(m, x):
    return m.softmax(x, axis=-1)


def softmax(x, *, total=fold, shift=None, scale=1.0):
    peak = x.max(-1, keepdims=True) if shift is None else shift
    weights = once(np.exp, x - peak)
    with np.errstate(all="ignore"):
        return weights / total(weights)[..., None] * f32(scale)


SOFTMAX_FAULTS = {
    "float16 accumulator": lambda x: softmax(x, total=lambda e: fold(e, np.float16)),
    "bfloat16 weights": lambda x: softmax(x, total=lambda e: fold(bfloat16(e))),
    "dropped last term": lambda x: softmax(x, total=lambda e: fold(e[..., :-1])),
    "maximum of the first chunk": lambda x: softmax(x, shift=x[..., :16].max(-1, keepdims=True)),
    "factor 1.001": lambda x: softmax(x, scale=1.001),
}


def test_a_right_softmax_is_not_seen():
    assert not any(seen(softmax_oracle, softmax(x), x=x) for x in draws(8, 300))


@pytest.mark.parametrize("fault", [f for f in SOFTMAX_FAULTS if "chunk" not in f])
def test_softmax_faults_are_seen(fault):
    assert share(seen(softmax_oracle, SOFTMAX_FAULTS[fault](x), x=x) for x in draws(8, 300)) == 1


def test_a_factor_of_1_00001_is_seen_in_short_rows():
    for count in (1, 2, 5, 16):
        assert (
            share(seen(softmax_oracle, softmax(x, scale=1 + 1e-5), x=x) for x in draws(8, count))
            == 1
        )


def test_a_missing_or_partial_maximum_is_seen_at_1e4():
    for scale in (1e3, 1e4):
        missing = (
            seen(softmax_oracle, softmax(x, shift=0), x=x) for x in draws(8, 300, scale=scale)
        )
        assert share(missing) == 1
        fault = SOFTMAX_FAULTS["maximum of the first chunk"]
        assert share(seen(softmax_oracle, fault(x), x=x) for x in draws(8, 300, scale=scale)) == 1


@pytest.mark.parametrize("fault", SOFTMAX_FAULTS)
def test_softmax_faults_are_seen_in_bfloat16(fault):
    if "chunk" in fault:
        return
    faults = (
        seen(softmax_oracle, SOFTMAX_FAULTS[fault](x).astype(ml_dtypes.bfloat16), x=x)
        for x in (bfloat16(x) for x in draws(16, 300))
    )
    assert share(faults) >= (0.9 if fault != "factor 1.001" else 0.5)


def layer_norm_oracle(x):
    difference = x - x.mean(-1, keepdims=True)
    return difference / np.sqrt((difference**2).mean(-1, keepdims=True) + 1e-5)


def layer_norm(x, *, total=fold, eps=1e-5, lost=0, store=f32, scale=1.0, one_pass=False):
    count = f32(x.shape[-1])
    mean = store(fold(x) / count).astype(f32)[..., None]
    difference = x - mean
    variance = total(difference * difference) / f32(x.shape[-1] - lost)
    if one_pass:
        variance = fold(x * x) / count - mean[..., 0] ** 2
    with np.errstate(all="ignore"):
        return difference / np.sqrt(variance + f32(eps))[..., None] * f32(scale)


LAYER_NORM_FAULTS = {
    "float16 accumulator": {"total": lambda x: fold(x, np.float16)},
    "bfloat16 mean": {"store": bfloat16},
    "dropped last term": {"total": lambda x: fold(x[..., :-1])},
    "divisor n - 1": {"lost": 1},
    "factor 1.001": {"scale": 1.001},
}


@pytest.mark.parametrize("fault", LAYER_NORM_FAULTS)
def test_layer_norm_faults_are_seen(fault):
    results = (
        seen(layer_norm_oracle, layer_norm(x, **LAYER_NORM_FAULTS[fault]), x=x)
        for x in draws(8, 100)
    )
    assert share(results) >= 0.95


def test_a_missing_epsilon_is_seen_where_the_variance_is_small():
    results = (
        seen(layer_norm_oracle, layer_norm(x, eps=0.0), x=x) for x in draws(8, 100, scale=0.05)
    )
    assert share(results) == 1


def test_a_one_pass_variance_is_seen_on_offset_data_and_admitted_by_approx():
    faults = [(x + f32(3000.0)).astype(f32) for x in draws(8, 16, scale=0.1)]
    assert share(seen(layer_norm_oracle, layer_norm(x, one_pass=True), x=x) for x in faults) == 1
    admitted = Precision(approx=("variance",))
    seen_still = (
        seen(layer_norm_oracle, layer_norm(x, one_pass=True), admitted, x=x) for x in draws(8, 100)
    )
    assert share(seen_still) == 0


def dot_oracle(m, a, b):
    return m.sum(a * b, axis=-1)


DOT_FAULTS = {
    "float16 accumulator": lambda a, b: fold(a * b, np.float16),
    "bfloat16 products": lambda a, b: fold(bfloat16(a * b)),
    "tf32 operands": lambda a, b: fold(tf32(a) * tf32(b)),
    "dropped last term": lambda a, b: fold((a * b)[..., :-1]),
    "factor 1.00001": lambda a, b: fold(a * b) * f32(1 + 1e-5),
}


@pytest.mark.parametrize("fault", DOT_FAULTS)
@pytest.mark.parametrize("count", [64, 1024, 4096])
def test_exact_probes_show_every_fault_of_a_dot(fault, count):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a = odd_integers(rng, (8, count), count).astype(f32)
        b = signs(rng, (8, count)).astype(f32)
        assert not seen(dot_oracle, fold(a * b), a=a, b=b)
        actual = DOT_FAULTS[fault](a, b)
        assert seen(dot_oracle, actual, a=a, b=b) or np.array_equal(actual, fold(a * b))
        assert not np.array_equal(actual, fold(a * b)), "a probe must make the fault visible"


@pytest.mark.parametrize("fault", [f for f in DOT_FAULTS if f != "factor 1.00001"])
def test_declared_depth_shows_faults_of_a_dot_on_normal_data(fault):
    precision = Precision(depth=20)
    pairs = zip(draws(8, 256), draws(8, 256, scale=2.0), strict=True)
    assert (
        share(seen(dot_oracle, DOT_FAULTS[fault](a, b), precision, a=a, b=b) for a, b in pairs) == 1
    )


def test_tf32_and_narrow_accumulators_are_admitted_where_declared():
    for a, b in zip(draws(8, 64), draws(8, 64, scale=2.0), strict=True):
        admitted = Precision(approx=("tf32",))
        product = DOT_FAULTS["tf32 operands"](a, b)
        assert not seen(lambda m, a, b: m.einsum("ij,ij->i", a, b), product, admitted, a=a, b=b)
        narrow = Precision(accumulate="float16")
        assert not seen(dot_oracle, DOT_FAULTS["float16 accumulator"](a, b), narrow, a=a, b=b)


def test_one_minus_exp_is_seen_where_expm1_is_meant():
    def oracle(m, x):
        return -m.expm1(-x)

    for seed in range(20):
        x = f32(10.0 ** np.random.default_rng(seed).uniform(-6, 0, (4, 32)))
        wrong = f32(1) - once(np.exp, -x)
        assert seen(oracle, wrong, x=x)
        assert not seen(oracle, -once(np.expm1, -x), x=x)
        assert not seen(oracle, wrong, Precision(approx=("expm1",)), x=x)


@pytest.mark.parametrize(
    ("name", "right", "loose"),
    [
        ("log1p", np.log1p, lambda x: once(np.log, f32(1) + x)),
        (
            "softplus",
            lambda x: np.log1p(np.exp(x)),
            lambda x: once(np.log, f32(1) + once(np.exp, x)),
        ),
        ("tanh", np.tanh, lambda x: f32(2) / (f32(1) + once(np.exp, f32(-2) * x)) - f32(1)),
    ],
)
def test_loose_formulas_are_seen_unless_given_up(name, right, loose):
    for seed in range(10):
        x = f32(10.0 ** np.random.default_rng(seed).uniform(-6, 0.5, (4, 32)))
        x = -x * f32(4) if name == "softplus" else x
        oracle = lambda m, x: getattr(m, name)(x)  # noqa: E731
        assert seen(oracle, loose(x), x=x)
        assert not seen(oracle, once(right, x), x=x)
        assert not seen(oracle, loose(x), Precision(approx=(name,)), x=x)


def test_an_undeclared_storage_format_is_seen():
    def oracle(m, x):
        return m.store(x * 0.7, "scaled") + 1.0

    x = next(draws(8, 32))
    stored = bfloat16(x * f32(0.7)) + f32(1)
    assert seen(oracle, stored, x=x)
    assert not seen(oracle, stored, Precision(storage={"scaled": "bfloat16"}), x=x)


@pytest.mark.parametrize("terms", [1, 3, 64, 5000])
@pytest.mark.parametrize("factors", [1, 2])
def test_exact_magnitudes_are_exact_and_largest(terms, factors):
    most = exact_magnitude(terms, factors)
    assert terms * most**factors <= 2**24 < terms * (most + 1) ** factors
