"""References as people write them: NumPy traced unchanged, clear errors, doubt and blame."""

import math

import ml_dtypes
import numpy as np
import pytest

from trivet.oracles._accept import accept
from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import Value, evaluate, evaluate_float64
from trivet.oracles._precision import Precision

f32 = np.float32
X = np.random.default_rng(0).standard_normal((4, 6)).astype(f32).astype(np.float64)
W = np.random.default_rng(1).standard_normal((6, 5)).astype(f32).astype(np.float64)
I = np.random.default_rng(2).integers(0, 4, 7)  # noqa: E741


def _helper(x):
    out = np.zeros(x.shape, dtype=np.float32)
    for row in range(x.shape[0]):
        out[row] = x[row] * math.exp(row * 0.1)
    return out


REFERENCES = {
    "products": lambda x, w: (np.dot(x, w), x @ w, np.tensordot(x, w, 1), np.inner(x, x)),
    "einsum": lambda x, w: (np.einsum("ij,jk", x, w), np.einsum("...j,jk->...k", x, w)),
    "choice": lambda x: (np.where(x > 0, x, 0.1 * x), np.maximum(x, 0), x.clip(-1, 1), abs(x)),
    "indexing": lambda x, i: (x[:, ::-1], x[i], x[None], x[..., 1:], np.take(x, i, axis=0)),
    "shapes": lambda x: (x.T, x.reshape(2, 12), np.swapaxes(x, 0, 1), np.expand_dims(x, 1)),
    "moments": lambda x: (x.mean(), np.var(x, axis=0), x.std(1, ddof=1), np.median(x, axis=0)),
    "order": lambda x: (np.sort(x, 1), np.argmax(x, 1), np.quantile(x, 0.25, axis=1)),
    "joins": lambda x: (np.concatenate([x, x], 1), np.stack([x, x]), np.pad(x, ((0, 0), (1, 2)))),
    "powers": lambda x: (x**2, np.power(x, 3), 1 / (1 + np.exp(-x)), np.sqrt(np.square(x))),
    "ufunc methods": lambda x: (np.add.reduce(x), np.multiply.outer(x[0], x[1])),
    "running": lambda x: (np.cumsum(x, axis=1), np.add.accumulate(x, axis=0), np.cumprod(x, 1)),
    "norms": lambda x: (np.linalg.norm(x, axis=-1), np.hypot(x, x), np.logaddexp(x, x)),
    "lists": lambda x: (np.array([row.sum() for row in x]), sum(row for row in x)),
    "dtypes": lambda x: (x.astype(np.float64), np.float32(x), np.asarray(x) * 2, np.float32(2) * x),
    "masks": lambda x: (x[x > 0].sum(), (x > 0).sum(), (x > 0) & (x < 1), np.isnan(x)),
    "counting": lambda x: (np.count_nonzero(x), np.any(x > 0), np.all(x > 0, axis=1)),
    "scalars": lambda x: (max(x[0, 0], x[0, 1]), math.sqrt(abs(x[0, 0])), x.shape[0] * x),
    "made here": lambda x: (np.zeros((4, 6)) + x, np.arange(6) * x, np.eye(4) @ x),
    "limits": lambda x: (np.clip(x, a_min=0, a_max=1), np.clip(x, None, 0.5), np.max(x, initial=0)),
    "rounding": lambda x: (np.floor(x), np.round(x, 1), np.sign(x), x // 0.5),
    "triangles": lambda x: (np.tril(x), np.triu(x), np.diag(x[:, :4]), np.diff(x, axis=1)),
    "helper": lambda x: _helper(x),
    "likes": lambda x: (np.full_like(x, 1.5) * x, np.ones_like(x) + x, np.empty_like(x) * 0),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_numpy_references_are_traced_unchanged(name):
    arguments = {"x": X, "w": W, "i": I}
    bounded, plain = (
        evaluate(REFERENCES[name], arguments),
        evaluate_float64(REFERENCES[name], arguments),
    )
    assert len(bounded) == len(plain)
    for value, expected in zip(bounded, plain, strict=True):
        assert value.value.shape == expected.shape
        assert value.value.dtype.kind == expected.dtype.kind
        verdict = accept(np.asarray(expected), value)
        assert verdict.ok.all()
        assert not verdict.undecided.any()


def test_a_reference_may_fill_its_own_arrays():
    def reference(x):
        out = np.empty((4, 6), dtype=np.float32)
        for row in range(4):
            out[row] = np.exp(x[row] - x[row].max()) / np.exp(x[row] - x[row].max()).sum()
        return out

    (value,) = evaluate(reference, {"x": X})
    (whole,) = evaluate(lambda m, x: m.softmax(x), {"x": X})
    assert accept(whole.value, value).ok.all()
    assert (value.error > 0).all()


def test_arguments_reach_an_oracle_by_name_and_stay_as_they_were():
    def oracle(m, w, scale, flag, missing=None, own=3):
        w += 1.0
        assert missing is None
        assert flag is True
        return w * scale * own

    w, arguments = W.copy(), {"x": X, "w": W, "scale": 0.5, "flag": True, "missing": None}
    (value,) = evaluate(oracle, arguments)
    np.testing.assert_array_equal(value.value, (w + 1) * 0.5 * 3)
    np.testing.assert_array_equal(W, w)


def test_scalars_carry_their_roundings():
    def oracle(p, lr, decay):
        return p * (1 - lr * decay)

    lr, decay = f32(1e-3), f32(1e-2)
    arguments = {"p": X.astype(f32).astype(np.float64), "lr": float(lr), "decay": float(decay)}
    (value,) = evaluate(oracle, arguments)
    actual = X.astype(f32) * (f32(1) - lr * decay)
    assert accept(actual, value).ok.all()


def test_none_outputs_stay_none():
    assert evaluate(lambda m, x: (x, None), {"x": X})[1] is None
    assert evaluate_float64(lambda m, x: (None, x), {"x": X})[0] is None


def test_an_unknown_operation_is_named_with_its_function():
    def spectrum(x):
        return np.fft.fft(x)

    with pytest.raises(OracleError, match=r"oracle spectrum: fft has no rule") as caught:
        evaluate(spectrum, {"x": X})
    assert caught.value.operation == "fft"
    with pytest.raises(OracleError, match="the math namespace has no bessel"):
        evaluate(lambda m, x: m.bessel(x), {"x": X})


def test_an_oracle_that_fails_says_how():
    def broken(x, w):
        return x + w

    with pytest.raises(OracleError, match=r"oracle broken fails on traced arrays: ValueError: "):
        evaluate(broken, {"x": X, "w": W})


def test_a_branch_on_doubt_makes_everything_undecidable():
    def oracle(x):
        return x if (x * 0.3).sum() - (x * 0.3).sum() >= 0 else -x

    (value,) = evaluate(oracle, {"x": X})
    assert np.isinf(value.error).all()
    assert accept(np.zeros_like(X, f32), value).undecided.all()


def test_a_choice_in_doubt_is_the_hull_of_both():
    (value,) = evaluate(lambda m, x: m.where(x * 0.1 > 0.1, 1.0, 5.0), {"x": np.array([1.0, 9.0])})
    for actual in (1.0, 5.0):
        assert accept(np.array([actual, 1.0], f32), value).ok.all()
    assert not accept(np.array([1.0, 5.0], f32), value).ok.all()


def test_doubtful_truth_values_follow_logic():
    def oracle(m, x):
        doubt = x * 0.1 > 0.1
        return doubt, doubt & (x > 5), doubt | (x > 0), ~doubt, doubt.sum(), m.cast(doubt, "int32")

    doubt, both, either, negated, count, whole = evaluate(oracle, {"x": np.array([1.0, 9.0])})
    for value in (doubt, negated, whole):
        np.testing.assert_array_equal(np.isinf(value.error), [True, False])
    assert both.error is None
    assert either.error is None
    assert np.isinf(count.error)


def test_an_index_in_doubt_makes_the_element_undecidable():
    def oracle(m, x):
        return x[m.argmax(x * 0.1)]

    (value,) = evaluate(oracle, {"x": np.array([1.0, 1.0 + 2.0**-23, 0.0])})
    assert np.isinf(value.error)
    (value,) = evaluate(oracle, {"x": np.array([1.0, 2.0, 0.0])})
    assert value.error == 0


def test_an_order_in_doubt_spares_the_others():
    x = np.array([[1.0, 1.0 + 2.0**-23, 9.0], [3.0, 2.0, 1.0]])

    def oracle(m, x):
        order = m.argsort(x * 0.1, axis=-1)
        rows = m.argsort((x * 0.1)[0])
        return order, m.take_along_axis(x, order, axis=-1), x.T[rows], x[0][rows]

    order, sorted_, rows, single = evaluate(oracle, {"x": x})
    expected = [[True, True, False], [False, False, False]]
    np.testing.assert_array_equal(np.isinf(order.error), expected)
    np.testing.assert_array_equal(np.isinf(sorted_.error), expected)
    np.testing.assert_array_equal(np.isinf(rows.error), [[True] * 2, [True] * 2, [False] * 2])
    np.testing.assert_array_equal(np.isinf(single.error), expected[0])


def test_a_mask_in_doubt_makes_everything_undecidable():
    (value,) = evaluate(lambda m, x: x[x * 0.1 > 0.1], {"x": np.array([1.0, 9.0])})
    assert np.isinf(value.error).all()


def test_nonfinite_values_are_decided_where_they_follow():
    x = np.array([np.nan, np.inf, -np.inf, 1.0])

    def oracle(x):
        return x + 1, x - x, x * 0, 1 / x, np.exp(x), np.tanh(x), np.maximum(x, 0), x.sum()

    with np.errstate(all="ignore"):
        y = x.astype(f32)
        actual = (y + 1, y - y, y * 0, 1 / y, np.exp(y), np.tanh(y), np.maximum(y, 0), y.sum())
    for value, result in zip(evaluate(oracle, {"x": x}), actual, strict=True):
        assert not np.isinf(value.error).any()
        assert accept(np.asarray(result, f32), value).ok.all()
        wrong = np.where(np.isfinite(result), np.nan, 0).astype(f32)
        assert not accept(wrong, value).ok.any()


def test_masked_rows_of_attention_are_decided():
    def oracle(m, x, keep):
        return m.softmax(m.where(keep, x, -m.inf))

    keep = np.array([[True, False, True], [False, False, False]])
    (value,) = evaluate(oracle, {"x": np.ones((2, 3)), "keep": keep})
    actual = np.array([[0.5, 0.0, 0.5], [np.nan] * 3], f32)
    assert accept(actual, value).ok.all()
    assert not np.isinf(value.error).any()


def test_overflow_is_required_where_it_is_certain():
    (value,) = evaluate(lambda m, x: m.exp(x), {"x": np.array([100.0, 88.72284, 0.0])})
    assert accept(np.array([np.inf, np.inf, 1], f32), value).ok.all()
    assert accept(np.array([np.inf, 3.4028e38, 1], f32), value).ok.tolist() == [True, True, True]
    assert accept(np.array([3e38, 0, 1], f32), value).ok.tolist() == [False, False, True]


def test_blame_names_the_step_and_its_line():
    def oracle(m, x):
        weights = m.exp(x)
        return m.sum(weights, axis=-1)

    (value,) = evaluate(oracle, {"x": np.random.default_rng(0).standard_normal((3, 200))})
    text = value.blame((1,))
    assert text.startswith("sum at test_bounds_tracing.py:")
    assert "`return m.sum(weights, axis=-1)` gives 9" in text
    (value,) = evaluate(lambda m, x: x + x, {"x": np.ones(3)})
    assert value.blame((0,)) == "no step rounds"


def test_blame_follows_the_dominant_step():
    def oracle(x):
        y = x * 1e-6
        return np.tanh(y + 1000.0 - 1000.0)

    (value,) = evaluate(oracle, {"x": np.full(2, 0.3)})
    assert value.blame((0,)).startswith("add at ")


def test_acceptance_is_the_rounded_interval():
    value = Value(np.array([1.0, 1.0, np.nan, np.inf]), np.array([0.0, 2.0**-9, 0.0, 0.0]), str)
    one, above = 1.0, 1.0 + 2.0**-7
    right = np.array([one, one, np.nan, np.inf]).astype(ml_dtypes.bfloat16)
    assert accept(right, value).ok.all()
    wrong = np.array([above, above, 1.0, -np.inf]).astype(ml_dtypes.bfloat16)
    assert not accept(wrong, value).ok.any()
    assert np.isinf(accept(np.array([1, 1, 1, 1], f32), value).ratio[2:]).all()


def test_acceptance_of_integers_and_shapes():
    value = Value(np.array([1, 2, 3]), np.array([0.0, np.inf, 0.0]), str)
    verdict = accept(np.array([1, 9, 4], np.int32), value)
    assert verdict.ok.tolist() == [True, True, False]
    assert verdict.undecided.tolist() == [False, True, False]
    with pytest.raises(ValueError, match=r"shape \(2,\) where the oracle has \(3,\)"):
        accept(np.array([1, 2]), value)


def test_float8_without_infinities_saturates_or_is_nan():
    value = Value(np.array([1e4]), np.array([0.0]), str)
    for stored in (448.0, np.nan):
        assert accept(np.array([stored]).astype(ml_dtypes.float8_e4m3fn), value).ok.all()
    assert not accept(np.array([416.0]).astype(ml_dtypes.float8_e4m3fn), value).ok.any()


@pytest.mark.parametrize(
    "wrong",
    [
        {"accumulate": "float31"},
        {"order": "random"},
        {"approx": ("exp",)},
        {"depth": -1},
        {"storage": {"p": "int4"}},
    ],
)
def test_a_precision_that_means_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="Precision"):
        Precision(**wrong)


def test_a_precision_can_be_compared_and_hashed():
    assert Precision(storage={"p": "float16"}) == Precision(storage={"p": "float16"})
    assert hash(Precision(depth=3)) == hash(Precision(depth=3)) != hash(Precision())


def test_random_numbers_are_tritons():
    # What tl.rand(seed, arange(4)) stores in Triton's own interpreter.
    stored = {
        42: [0.7740801572799683, 0.024562695994973183, 0.3482663035392761, 0.5408014059066772],
        2**33 + 5: [0.560768723487854, 0.1260509490966797, 0.40696409344673157, 0.9953877329826355],
    }
    for seed, numbers in stored.items():
        (value,) = evaluate(lambda m, seed: m.rand(seed, np.arange(4)), {"seed": seed})
        assert accept(np.array(numbers, f32), value).ok.all()
        assert (value.error <= 2.0**-23).all()


def test_exact_integers_need_no_bound():
    x = np.random.default_rng(0).integers(-8, 9, (5, 40)).astype(np.float64)

    def oracle(m, x):
        return x.sum(-1), x @ x.T, m.cumsum(x, axis=-1), m.linear_scan(x * 0 + 1, x), x * x + x

    for value in evaluate(oracle, {"x": x}):
        assert not value.error.any()


def test_empty_arrays_pass_through():
    x = np.zeros((0, 5))

    def oracle(m, x):
        return m.softmax(x), x.sum(0), x @ x.T, m.cumsum(x, axis=0), m.linear_scan(x, x, axis=0)

    assert [v.value.shape for v in evaluate(oracle, {"x": x})] == [
        (0, 5),
        (5,),
        (0, 0),
        (0, 5),
        (0, 5),
    ]
