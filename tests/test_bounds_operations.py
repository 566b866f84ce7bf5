"""Every elementary rule against float32 executions on random bit patterns."""

import math

import ml_dtypes
import numpy as np
import pytest

from trivet.oracles._accept import accept
from trivet.oracles._evaluate import evaluate
from trivet.oracles._formats import FORMATS, round_to
from trivet.oracles._special import erf

COUNT = 20_000


def patterns(seed, count):
    """float32 numbers of random bits: all exponents, subnormals, a few specials."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32).copy()
    x[np.isnan(x)] = np.nan  # quiet ones only: NumPy warns when it converts the others
    x[:8] = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0**-149]
    moderate = (rng.standard_normal(count) * 10.0 ** rng.uniform(-6, 2.3, count)).astype(np.float32)
    return np.where(rng.random(count) < 0.5, x, moderate)


def judge(oracle, actual, **arguments):
    """Accept `actual` and return (violations, largest ratio, undecided share)."""
    exact = {
        name: x.astype(np.float64) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
        for name, x in arguments.items()
    }
    (value,) = evaluate(oracle, exact)
    verdict = accept(np.asarray(actual), value)
    return int((~verdict.ok).sum()), float(verdict.ratio.max()), float(verdict.undecided.mean())


def once(function, *arguments):
    """A float32 function computed in float64 and rounded once."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*(x.astype(np.float64) for x in arguments)), np.float32)


def f32(x):
    return np.asarray(x, np.float32)


FUNCTIONS = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "erf": erf,
    "sin": np.sin,
    "cos": np.cos,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sign": np.sign,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "arctan": np.arctan,
    "cbrt": np.cbrt,
    "sinh": np.sinh,
    "arcsinh": np.arcsinh,
}


def run_functions(seed, count, name):
    x = patterns(seed, count)
    return judge(lambda m, x: getattr(m, name)(x), once(FUNCTIONS[name], x), x=x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_rounded_once_are_accepted(name):
    wrong, ratio, undecided = run_functions(1, COUNT, name)
    assert wrong == 0
    assert ratio <= 1.0
    assert undecided < 0.01


def other_forms(x):
    with np.errstate(all="ignore"):
        return list(_other_forms(x))


def _other_forms(x):
    """Stable float32 forms of functions, each step rounded."""
    log2e, ln2 = f32(math.log2(math.e)), f32(math.log(2))
    exponential = once(np.exp, -x)
    yield "exp", once(np.exp2, x * log2e)
    yield "log", once(np.log2, x) * ln2
    yield "rsqrt", f32(1) / np.sqrt(x)
    yield "sigmoid", f32(1) / (f32(1) + exponential)
    yield "sigmoid", f32(1) / (f32(1) + once(np.exp2, -x * log2e))
    small = once(np.exp, -np.abs(x))
    yield "sigmoid", np.where(x >= 0, f32(1), small) / (f32(1) + small)
    yield "softplus", np.maximum(x, f32(0)) + once(np.log1p, small)
    yield "softplus", np.where(x > 20, x, once(np.log1p, once(np.exp, x)))
    yield "silu", x / (f32(1) + exponential)
    yield "reciprocal", f32(1) / x


@pytest.mark.parametrize("kind", ["bits", "moderate"])
def test_stable_forms_are_accepted(kind):
    x = patterns(2, COUNT)
    if kind == "moderate":
        x = f32(np.random.default_rng(2).uniform(-80, 80, COUNT))
    for name, actual in other_forms(x):
        if name == "silu" and kind == "bits":
            actual = np.where(np.isneginf(x), f32(np.nan), actual)
        wrong, ratio, _ = judge(lambda m, x, name=name: getattr(m, name)(x), actual, x=x)
        assert wrong == 0, name
        assert ratio <= 1.0, name


@np.errstate(all="ignore")
def pairs(seed, count):
    a, b = patterns(seed, count), patterns(seed + 1, count)
    rng = np.random.default_rng(seed)
    near = f32(
        a * f32(1) + rng.integers(-3, 4, count) * np.spacing(np.nan_to_num(a, posinf=1, neginf=1))
    )
    return a, np.where(rng.random(count) < 0.5, b, near)


def run_arithmetic(seed, count):
    a, b = pairs(seed, count)
    with np.errstate(all="ignore"):
        yield "add", judge(lambda a, b: a + b, a + b, a=a, b=b)
        yield "subtract", judge(lambda a, b: a - b, a - b, a=a, b=b)
        yield "multiply", judge(lambda a, b: a * b, a * b, a=a, b=b)
        yield "divide", judge(lambda a, b: a / b, a / b, a=a, b=b)
        yield "maximum", judge(lambda a, b: np.maximum(a, b), np.maximum(a, b), a=a, b=b)
        yield "minimum", judge(lambda a, b: np.minimum(a, b), np.minimum(a, b), a=a, b=b)
        yield "less", judge(lambda a, b: a < b, a < b, a=a, b=b)
        yield "equal", judge(lambda a, b: a == b, a == b, a=a, b=b)
        yield "where", judge(lambda a, b: np.where(a < b, a, b), np.where(a < b, a, b), a=a, b=b)
        yield "clip", judge(lambda a: np.clip(a, -1.5, 2), np.clip(a, f32(-1.5), f32(2)), a=a)
        power = once(np.power, np.abs(a), np.full_like(b, 0.3))
        yield "power", judge(lambda a: np.abs(a) ** 0.3, power, a=a)
        cube = a * a * a
        yield "cube", judge(lambda a: a**3, cube, a=a)


def test_arithmetic_is_accepted():
    for name, (wrong, ratio, undecided) in run_arithmetic(3, COUNT):
        assert wrong == 0, name
        assert ratio <= 1.0, name
        assert undecided < 0.01, name


def run_chains(seed, count):
    """Chained operations, fused and not, on numbers of moderate and wild exponents."""
    a, b, c, d = (patterns(seed + k, count) for k in range(4))
    one = f32(1)
    wide = np.float64

    def fused(x, y, z):
        return f32(x.astype(wide) * y + z)

    def formula(a, b, c, d):
        return (a * b + c) / d

    with np.errstate(all="ignore"):
        yield "fma off", judge(formula, (a * b + c) / d, a=a, b=b, c=c, d=d)
        yield "fma on", judge(formula, fused(a, b, c) / d, a=a, b=b, c=c, d=d)
        difference = fused(a, b, -(c * d))
        yield "a*b-c*d", judge(lambda a, b, c, d: a * b - c * d, difference, a=a, b=b, c=c, d=d)
        divisor = np.where((np.abs(b) > 1e-30) & (np.abs(b) < 1e30), b, one)
        yield "reciprocal", judge(lambda a, b: a / b, a * (one / divisor), a=a, b=divisor)
        root = np.sqrt(a * a + b * b)
        yield "norm", judge(lambda a, b: np.sqrt(a * a + b * b), root, a=a, b=b)
        literal = f32(0.9) * a + f32(0.1) * b
        yield "literals", judge(lambda a, b: 0.9 * a + 0.1 * b, literal, a=a, b=b)
        ramp = np.where(a * b > c, a * b, c)
        yield "where", judge(lambda a, b, c: np.where(a * b > c, a * b, c), ramp, a=a, b=b, c=c)
        clamp = np.minimum(np.maximum(a * b, c), d)
        yield (
            "clamp",
            judge(
                lambda a, b, c, d: np.minimum(np.maximum(a * b, c), d), clamp, a=a, b=b, c=c, d=d
            ),
        )
        rounded = np.rint(np.clip(a * b, f32(-127), f32(127)))
        yield "quantise", judge(lambda a, b: np.rint(np.clip(a * b, -127, 127)), rounded, a=a, b=b)
        tanh = once(np.tanh, a * b)
        yield "tanh", judge(lambda a, b: np.tanh(a * b), tanh, a=a, b=b)
        log = once(np.log, a * a + one)
        yield "log", judge(lambda a: np.log(a * a + 1), log, a=a)


def test_chains_are_accepted():
    for name, (wrong, ratio, _) in run_chains(5, COUNT):
        assert wrong == 0, name
        assert ratio <= 1.0, name


STORAGE = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"]


@pytest.mark.parametrize("name", STORAGE)
def test_formats_round_as_ml_dtypes(name):
    x = patterns(7, COUNT)
    x[8:2008] = f32(np.linspace(-500, 500, 2000))
    dtype = np.dtype(getattr(ml_dtypes, name) if name != "float16" else np.float16)
    with np.errstate(all="ignore"):
        theirs = x.astype(dtype).astype(np.float64)
    ours = round_to(x.astype(np.float64), FORMATS[name])
    same = (theirs == ours) | (np.isnan(theirs) & np.isnan(ours))
    # A format without infinities stores NaN for them, and its largest number rounds alike.
    assert same.all(), (x[~same][:5], theirs[~same][:5], ours[~same][:5])


@pytest.mark.parametrize("name", STORAGE[:4])
def test_stored_outputs_are_accepted(name):
    rng = np.random.default_rng(8)
    a, b = f32(rng.standard_normal(COUNT)), f32(rng.standard_normal(COUNT) * 4)
    dtype = np.dtype(getattr(ml_dtypes, name) if name != "float16" else np.float16)
    wrong, ratio, _ = judge(lambda a, b: a * b + a, (a * b + a).astype(dtype), a=a, b=b)
    assert (wrong, ratio <= 1.0) == (0, True)


@pytest.mark.parametrize("name", STORAGE[:4])
def test_intermediate_casts_are_accepted(name):
    rng = np.random.default_rng(9)
    a, b = f32(rng.standard_normal(COUNT)), f32(rng.standard_normal(COUNT) * 4)
    dtype = np.dtype(getattr(ml_dtypes, name) if name != "float16" else np.float16)

    def oracle(m, a, b):
        return m.cast(a * b, name) + a

    for actual in (f32((a * b).astype(dtype)) + a, a * b + a):
        wrong, ratio, _ = judge(oracle, actual, a=a, b=b)
        assert (wrong, ratio <= 1.0) == (0, True)


def test_truncation_to_integers_is_decided_or_in_doubt():
    rng = np.random.default_rng(10)
    a, b = f32(rng.standard_normal(COUNT) * 3), f32(rng.integers(-5, 6, COUNT))
    actual = (a * b).astype(np.int32)
    wrong, _, undecided = judge(lambda m, a, b: m.cast(a * b, "int32"), actual, a=a, b=b)
    assert wrong == 0
    assert undecided < 0.2


@pytest.mark.night
def test_a_million_of_everything():
    for name in FUNCTIONS:
        assert run_functions(11, 10**6, name)[0] == 0, name
    for name, (wrong, _, _) in (*run_arithmetic(12, 10**6), *run_chains(13, 10**6)):
        assert wrong == 0, name
