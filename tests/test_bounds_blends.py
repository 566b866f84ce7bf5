"""m.lerp admits every form of a weighted mean of two numbers, and no wrong weight."""

import numpy as np
import pytest

from trivet.oracles._accept import accept
from trivet.oracles._evaluate import evaluate, evaluate_float64
from trivet.oracles._gradient import gradient

f32, f64 = np.float32, np.float64
COUNT = 20_000
WEIGHTS = (1 - 0.9, 1 - 0.999, 0.5, 0.7, 0.0, 1.0)


def fused(a, b, c):
    return (a.astype(f64) * f64(b) + c).astype(f32)


FORMS = {
    "terms": lambda a, b, w: f32(1 - w) * a + f32(w) * b,
    "terms, weight in float32": lambda a, b, w: (f32(1) - f32(w)) * a + f32(w) * b,
    "terms, fused": lambda a, b, w: fused(a, f32(1 - w), f32(w) * b),
    "from the nearer end": lambda a, b, w: (
        a + f32(w) * (b - a) if w < 0.5 else b - f32(1 - w) * (b - a)
    ),
    "from the nearer end, fused": lambda a, b, w: (
        fused(b - a, f32(w), a) if w < 0.5 else fused(a - b, f32(1 - w), b)
    ),
}


def pairs(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(COUNT) * 10.0 ** rng.uniform(-44, 37, COUNT)
    near = a * (1 + rng.standard_normal(COUNT) * 1e-6)
    far = rng.standard_normal(COUNT) * 10.0 ** rng.uniform(-44, 37, COUNT)
    b = np.choose(rng.integers(0, 4, COUNT), [near, far, -near, np.zeros(COUNT)])
    return a.astype(f32), b.astype(f32)


def judged(actual, a, b, weight):
    given = {"a": a.astype(f64), "b": b.astype(f64)}
    (value,) = evaluate(lambda m, a, b: m.lerp(a, b, weight), given)
    return accept(actual, value)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_within_the_bound(form, weight):
    for seed in range(5):
        a, b = pairs(seed)
        with np.errstate(all="ignore"):
            verdict = judged(FORMS[form](a, b, weight), a, b, weight)
        assert verdict.ok.all()
        assert verdict.undecided.mean() < 0.01


def test_the_bound_is_nearly_attained():
    a, b = pairs(0)
    ratios = [judged(form(a, b, 0.7), a, b, 0.7).ratio.max() for form in FORMS.values()]
    assert max(ratios) > 0.4


def test_a_wrong_weight_is_seen():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, COUNT)).astype(f32)
    wrong = FORMS["terms"](a, b, 0.1 * (1 + 1e-4))
    assert (~judged(wrong, a, b, 0.1).ok).mean() > 0.9
    assert (judged(FORMS["terms"](0 * a, 0 * b, 0.1), 0 * a, 0 * b, 0.1).ratio == 0).all()


def test_lerp_in_float64_and_under_differentiation():
    given = {"a": np.array([1.0, -2.0]), "b": np.array([3.0, 5.0])}

    def oracle(m, a, b):
        return m.lerp(a, b, 0.25)

    assert evaluate_float64(oracle, given)[0].tolist() == [1.5, -0.25]
    to_a, to_b = gradient(oracle, given, ["a", "b"], [np.ones(2)])
    assert to_a.value.tolist() == [0.75, 0.75]
    assert to_b.value.tolist() == [0.25, 0.25]
