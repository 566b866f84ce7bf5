"""The number systems: rounding, order of sums, functions, constants."""

from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np
import pytest

from trivet.simulator._rounding import (
    from_bits,
    round_bfloat16,
    round_tf32,
    saturate,
    to_bits,
    truncate_bfloat16,
    truncate_float16,
)
from trivet.simulator.arithmetic import AsInterpreter, Native, Shadow, fold_halves

NATIVE, SHADOW = Native(), Shadow()


def floats(count, seed=0):
    rng = np.random.default_rng(seed)
    scale = 2.0 ** rng.integers(-30, 30, count)
    return (rng.standard_normal(count) * scale).astype(np.float32)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def test_bfloat16_rounding_is_that_of_ml_dtypes():
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-40, 1.00390625], np.float32)
    x = np.concatenate([floats(20_000), special])
    wanted = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(round_bfloat16(x), wanted, equal_nan=True)


def test_truncation_goes_towards_zero():
    x = np.concatenate([floats(5_000), np.array([65519.0, -65519.0, 1e-7], np.float32)])
    for truncated in (truncate_bfloat16(x), truncate_float16(x).astype(np.float32)):
        assert (np.abs(truncated) <= np.abs(x)).all()
    assert np.isinf(x[np.abs(x) < 6e4].astype(np.float16)).sum() == 0
    near = np.abs(x) < 6e4
    step = np.spacing(np.abs(truncate_float16(x[near]))).astype(np.float32)
    assert (np.abs(x[near]) - np.abs(truncate_float16(x[near]).astype(np.float32)) < step).all()


def test_tf32_keeps_ten_bits_ties_away_from_zero():
    tie = np.float32(1 + 2**-11)
    assert round_tf32(np.array([tie, -tie]))[0] == np.float32(1 + 2**-10)
    x = floats(5_000)
    assert (np.abs(round_tf32(x) - x) <= np.abs(x) * 2.0**-11).all()
    special = np.array([np.inf, np.nan, 0], np.float32)
    assert np.array_equal(round_tf32(special), special, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32])
def test_integers_saturate(dtype):
    info = np.iinfo(dtype)
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -0.9, 100.5], np.float32)
    wanted = [0, info.max, info.min, info.max, info.min, 2, 0, 100]
    assert saturate(x, dtype).tolist() == wanted


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2"])
def test_bits_round_trip(element):
    value = NATIVE.cast("f32", element, "rtne")(np.array([1.5, -0.25, 0.0, -0.0], np.float32))
    patterns = to_bits(value, element)
    assert patterns.dtype.kind == "i"
    assert np.array_equal(to_bits(from_bits(patterns, element), element), patterns)
    assert patterns[3] < 0


def test_sums_fold_by_halves_in_float32():
    x = floats(64).reshape(1, 64)
    total = NATIVE.reduce("arith.addf", "f32")(x, 1)
    rest = x[0]
    while len(rest) > 1:
        rest = rest[: len(rest) // 2] + rest[len(rest) // 2 :]
    assert total.dtype == np.float32
    assert total[0] == rest[0]


@pytest.mark.parametrize("extent", [1, 2, 3, 5, 8, 13])
def test_every_extent_folds_every_element_once(extent):
    x = np.arange(2 * extent).reshape(2, extent)
    assert fold_halves(np.add, x, 1).tolist() == x.sum(1).tolist()


def test_scans_run_in_order():
    x = floats(50).reshape(1, 50)
    running, wanted = np.float32(0), []
    for value in x[0]:
        running = np.float32(running + value) if wanted else value
        wanted.append(running)
    assert NATIVE.scan("arith.addf", "f32")(x, 1)[0].tolist() == wanted


def test_dot_starts_from_the_accumulator_and_ascends():
    a, b, c = (floats(48, seed).reshape(3, 4, 4) for seed in range(3))
    result = NATIVE.dot(("f32", "f32"), "f32", "ieee")(a, b, c)
    wanted = c.copy()
    for k in range(4):
        wanted = wanted + a[:, :, k, None] * b[:, None, k, :]
    assert np.array_equal(result, wanted)


def test_dot_into_float16_rounds_at_every_step():
    a, b = np.random.default_rng(0).standard_normal((2, 1, 4, 4)).astype(np.float16)
    zero = np.zeros((1, 4, 4), np.float16)
    result = NATIVE.dot(("f16", "f16"), "f16", "ieee")(a, b, zero)
    wanted = zero
    for k in range(4):
        product = a[:, :, k, None].astype(np.float32) * b[:, None, k, :].astype(np.float32)
        wanted = (wanted.astype(np.float32) + product).astype(np.float16)
    assert result.dtype == np.float16
    assert np.array_equal(result, wanted)


@pytest.mark.parametrize(
    "name", ["exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "expm1", "log1p", "rsqrt"]
)
def test_float32_functions_are_correctly_rounded(name):
    x = np.random.default_rng(1).uniform(0.01, 20, 300).astype(np.float32)
    exact = {
        "exp2": lambda v: mpmath.mpf(2) ** v,
        "log2": lambda v: mpmath.log(v, 2),
        "rsqrt": lambda v: 1 / mpmath.sqrt(v),
        "log1p": mpmath.log1p,
    }.get(name) or getattr(mpmath, name)
    result = NATIVE.unary(name, "f32")(x)
    assert result.dtype == np.float32
    with mpmath.workdps(40):
        wanted = [np.float32(str(mpmath.nstr(exact(mpmath.mpf(float(v))), 30))) for v in x]
    assert result.tolist() == [float(value) for value in wanted]


def test_fused_multiply_add_rounds_once():
    a, b = floats(3_000, 1), floats(3_000, 2)
    c = np.where(np.arange(3_000) % 2 == 0, -a * b, floats(3_000, 3)).astype(np.float32)
    result = NATIVE.fma("f32")(a, b, c)
    for x, y, z, got in zip(a, b, c, result, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if got == 0:
            assert exact == 0
            continue
        below = Fraction(float(np.nextafter(got, np.float32(-np.inf))))
        above = Fraction(float(np.nextafter(got, np.float32(np.inf))))
        error = abs(Fraction(float(got)) - exact)
        assert error <= min(abs(above - exact), abs(below - exact))


@pytest.mark.parametrize("exponents", [(-3, 4), (-540, -500), (-1074, 1023)])
def test_fused_multiply_add_of_float64_rounds_once(exponents):
    rng, low = np.random.default_rng(3), float(np.finfo(np.float64).eps)
    a, b, c = rng.standard_normal((3, 500)) * 2.0 ** rng.integers(*exponents, (3, 500))
    near = -a * b * (1 + rng.integers(-2, 3, 500) * low)
    c = np.where((rng.random(500) < 0.5) & np.isfinite(near), near, c)
    result = NATIVE.fma("f64")(a, b, c)
    for x, y, z, got in zip(a, b, c, result, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if np.isfinite(got):
            assert float(exact) == got
        else:
            assert abs(exact) >= Fraction(np.finfo(np.float64).max)


def test_fused_multiply_add_of_float64_keeps_signs_of_zero_and_infinities():
    a = np.array([-0.0, 0.0, 3.0, np.inf, np.inf])
    b = np.array([0.0, 2.0, 0.0, 0.0, 2.0])
    c = np.array([-0.0, -0.0, -0.0, 1.0, -np.inf])
    result = NATIVE.fma("f64")(a, b, c)
    assert np.array_equal(result, a * b + c, equal_nan=True)
    assert np.signbit(result[:3]).tolist() == np.signbit((a * b + c)[:3]).tolist()


@pytest.mark.parametrize("count", [1, 7, 64])
def test_maximum_and_minimum_order_zeros_and_lose_nans(count):
    negative = np.full(count, -0.0, np.float32)
    positive, nothing = np.zeros(count, np.float32), np.full(count, np.nan, np.float32)
    for a, b in ((negative, positive), (positive, negative)):
        for name, sign in (("maxnumf", 0), ("maximumf", 0), ("minnumf", 1), ("minimumf", 1)):
            result = NATIVE.binary(f"arith.{name}", "f32")(a, b)
            assert np.signbit(result).sum() == sign * count
    assert not np.isnan(NATIVE.binary("arith.maxnumf", "f32")(nothing, positive)).any()
    assert np.isnan(NATIVE.binary("arith.maximumf", "f32")(nothing, positive)).all()


def test_float8_conversion_saturates():
    narrow = NATIVE.cast("f32", "f8E4M3FN", "rtne")
    assert narrow(np.array([1e9, -1e9, 0.3], np.float32)).tolist() == [448, -448, 0.3125]


def test_unordered_comparisons_are_true_for_nan():
    nan, one = np.array([np.nan]), np.array([1.0])
    predicates = {name: NATIVE.compare(name)(nan, one)[0] for name in ("oeq", "one", "olt", "ord")}
    assert not any(predicates.values())
    predicates = {name: NATIVE.compare(name)(nan, one)[0] for name in ("ueq", "une", "ult", "uno")}
    assert all(predicates.values())


def test_shadow_constants_are_those_of_the_source():
    assert SHADOW.constant(float(np.float32(0.1)), "f32") == 0.1
    assert SHADOW.constant(float(np.float32(1e-5)), "f32") == 1e-5
    assert SHADOW.constant(0.797884583, "f32") == 0.7978846  # as MLIR prints sqrt(2 / pi)
    assert SHADOW.constant(float("-inf"), "f32") == -np.inf


def test_a_nudge_moves_constants_that_float32_rounded():
    moved = [Shadow(nudge).constant(0.797884583, "f32") for nudge in (1, 2, 3, 4)]
    assert {np.sign(value - 0.7978846) for value in moved} == {-1.0, 1.0}
    assert all(abs(value - 0.7978845608028654) < 2.0**-23 for value in moved)
    assert Shadow(1).constant(0.5, "f32") == 0.5


def test_shadow_keeps_the_value_of_a_scalar_argument():
    value = float(np.float32(1.0000001e-06))
    assert SHADOW.argument(value, "f32") == value
    assert NATIVE.argument(0.1, "f32") == np.float32(0.1)


def test_shadow_never_rounds():
    third = SHADOW.binary("arith.divf", "f32")(np.array(1.0), np.array(3.0))
    assert SHADOW.store(SHADOW.cast("f32", "bf16", "rtne")(third), np.dtype(np.float64)) == 1 / 3


def test_interpreter_arithmetic_is_that_of_numpy():
    x = floats(1_000).reshape(10, 100)
    interpreter = AsInterpreter()
    assert np.array_equal(interpreter.reduce("arith.addf", "f32")(x, 1), np.sum(x, axis=1))
    assert np.array_equal(interpreter.unary("exp", "f32")(x), np.exp(x))
    assert interpreter.unary("tanh", "f32") is not None
