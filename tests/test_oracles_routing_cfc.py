"""The oracles of routing and cfc: array form against scalar form, and against values by hand."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from trivet import Precision
from trivet.oracles import cfc, routing
from trivet.oracles._evaluate import evaluate, evaluate_float64
from trivet.oracles._gradient import gradient

Arguments = Mapping[str, Any]
NUMBERS = np.random.default_rng(7)
UNIT = 2.0**-24


def single(*shape: int, scale: float = 1.0) -> Any:
    return (scale * NUMBERS.standard_normal(shape)).astype(np.float32).astype(np.float64)


def seconds(count: int) -> Any:
    values = np.exp(NUMBERS.uniform(-6, 8, count)).astype(np.float32).astype(np.float64)
    values[count // 2 :] = values[: count - count // 2]  # ties
    return values


OWNERS = np.array([2, 0, 2, -1, 0, 2, 2, 4, 0, 2, 0])
TABLE = np.array([[1, 4, 8, 10, -1], [-1, -1, -1, -1, -1], [9, 6, -1, 2, 0], [7, -1, -1, -1, -1]])
B, D, H = 3, 4, 11
CELL = {
    "x": single(B, D),
    "h": single(B, H),
    "dt": np.array([0.0, 2.0**-20, 3.5]),
    "W_in": single(H, D, scale=0.5),
    "W_rec": single(H, H, scale=0.5),
    "b": single(H),
    "tau": seconds(H),
}
G = single(B, H)
GRADIENTS = ("dx", "dh", "dW_in", "dW_rec", "db", "dtau")
CASES: dict[str, tuple[Any, Any, Arguments, tuple[str, ...]]] = {
    "tau_sort": (routing.tau_sort, routing.tau_sort_scalar, {"tau": seconds(9)}, ("order",)),
    "bucket_assign": (
        routing.bucket_assign,
        routing.bucket_assign_scalar,
        {"order": np.array([4, 2, 0, 1, 5, 3, 6]), "N": 3},
        ("bucket_of", "size", "offset"),
    ),
    "bucket_assign_more_buckets": (
        routing.bucket_assign,
        routing.bucket_assign_scalar,
        {"order": np.array([1, 0]), "N": 5},
        ("bucket_of", "size", "offset"),
    ),
    "channels_in_bucket": (
        routing.channels_in_bucket,
        routing.channels_in_bucket_scalar,
        {"bucket_of": np.maximum(OWNERS, 0), "N": 5, "M": 6},
        ("table",),
    ),
    "bucket_iqr": (
        routing.bucket_iqr,
        routing.bucket_iqr_scalar,
        {"tau": seconds(11), "bucket_of": OWNERS, "N": 5},
        ("q1", "q3"),
    ),
    "iqr_widen": (
        routing.iqr_widen,
        routing.iqr_widen_scalar,
        {"q1": np.array([0.5, 0.0, 2.0]), "q3": np.array([0.75, np.inf, 2.0])},
        ("lo", "hi"),
    ),
    "iqr_double_widen": (
        routing.iqr_double_widen,
        routing.iqr_double_widen_scalar,
        {"lo": np.array([0.5, 0.0, 2.0]), "hi": np.array([0.75, np.inf, 3.0]), "k": 2},
        ("new_lo", "new_hi"),
    ),
    "tau_clamp": (
        routing.tau_clamp,
        routing.tau_clamp_scalar,
        {
            "tau": np.array([0.25, np.nan, 7.0, 1.0, np.inf, 2.0]),
            "bucket_of": np.array([0, 1, 1, 0, 2, 2]),
            "lo": np.array([0.5, 1.0, 0.0]),
            "hi": np.array([0.75, 4.0, np.inf]),
        },
        ("clamped",),
    ),
    "heads_compact": (
        routing.heads_compact,
        routing.heads_compact_scalar,
        {"w_skip": single(4, H), "table": TABLE},
        ("w_compact", "offset"),
    ),
    "mask_init": (
        routing.mask_init,
        routing.mask_init_scalar,
        {"bucket_of": OWNERS, "N": 5},
        ("mask",),
    ),
    "zero_off_bucket": (
        routing.zero_off_bucket,
        routing.zero_off_bucket_scalar,
        {"buffer": single(5, 11), "bucket_of": OWNERS},
        ("buffer",),
    ),
    "grad_mask_apply": (
        routing.grad_mask_apply,
        routing.grad_mask_apply_scalar,
        {"grad": single(2, 3), "mask": np.array([[1.0, 0, 1], [0, 0, 1]])},
        ("masked",),
    ),
    "step": (cfc.step, cfc.step_scalar, CELL, ("h_next",)),
    "step_per_branch": (
        cfc.step_per_branch,
        cfc.step_per_branch_scalar,
        {**CELL, "table": TABLE, "out": single(B, H)},
        ("out",),
    ),
    "step_backward": (cfc.step_backward, cfc.step_backward_scalar, {"g": G, **CELL}, GRADIENTS),
    "step_per_branch_backward": (
        cfc.step_per_branch_backward,
        cfc.step_per_branch_backward_scalar,
        {"g": G, **CELL, "table": TABLE},
        GRADIENTS,
    ),
}


def bounded(oracle: Callable[..., Any], given: Arguments) -> list[Any]:
    return list(evaluate(oracle, given, precision=Precision()))


def plain(oracle: Callable[..., Any], given: Arguments) -> list[Any]:
    return list(evaluate_float64(oracle, given))


def ask(oracle: Callable[..., Any], index: tuple[int, ...], output: str, given: Arguments) -> Any:
    takes = inspect.signature(oracle).parameters
    named = {name: value for name, value in {**given, "output": output}.items() if name in takes}
    return oracle(index, **named)


@pytest.mark.parametrize("case", CASES)
def test_both_forms_agree_within_the_bound(case: str) -> None:
    array_form, scalar_form, given, outputs = CASES[case]
    values = bounded(array_form, given)
    others = plain(array_form, given)
    assert len(values) == len(others) == len(outputs)
    for name, value, other in zip(outputs, values, others, strict=True):
        assert value.value.size
        np.testing.assert_array_equal(np.shape(value.value), np.shape(other))
        for index in np.ndindex(value.value.shape):
            exact = float(ask(scalar_form, index, name, given))
            got = float(value.value[index])
            error = 0.0 if value.error is None else float(value.error[index])
            nan = math.isnan(got) and math.isnan(exact)
            assert nan or got == exact or abs(got - exact) <= error


def test_ranks_of_ties_follow_the_channel() -> None:
    (order,) = plain(routing.tau_sort, {"tau": np.array([2.0, 1.0, 2.0, 1.0, 0.5])})
    assert order.tolist() == [4, 1, 3, 0, 2]


def test_first_buckets_hold_one_more() -> None:
    given = {"order": np.array([3, 0, 4, 2, 1]), "N": 3}
    bucket_of, size, offset = plain(routing.bucket_assign, given)
    assert size.tolist() == [2, 2, 1]
    assert offset.tolist() == [0, 2, 4]
    assert bucket_of.tolist() == [0, 2, 1, 0, 1]


def test_quartiles_lie_between_order_statistics() -> None:
    given: dict[str, Any] = {
        "tau": np.array([8.0, 1.0, 2.0, 4.0, 16.0, 3.0]),
        "bucket_of": np.array([0, 0, 0, 0, 0, 2]),
        "N": 3,
    }
    q1, q3 = plain(routing.bucket_iqr, given)
    assert q1.tolist() == [2.0, 0.0, 3.0]
    assert q3.tolist() == [8.0, math.inf, 3.0]
    given["bucket_of"] = np.array([0, 0, 1, 1, 0, 1])  # 1, 8, 16 and 2, 3, 4
    q1, q3 = plain(routing.bucket_iqr, {**given, "N": 2})
    assert q1.tolist() == [4.5, 2.5]
    assert q3.tolist() == [12.0, 3.5]


def test_widening_keeps_the_centre_in_the_logarithm() -> None:
    given = {"q1": np.array([1.0, 0.0]), "q3": np.array([4.0, math.inf])}
    lo, hi = plain(routing.iqr_widen, given)
    assert lo.tolist() == [0.5, 0.0]
    assert hi.tolist() == [8.0, math.inf]


def test_an_empty_bucket_is_exact_and_decided() -> None:
    given = {"tau": np.array([1.0]), "bucket_of": np.array([0]), "N": 2}
    for value in bounded(routing.bucket_iqr, given):
        assert value.error is not None
        assert value.error[1] == 0


def test_packing_skips_unused_slots() -> None:
    given = {"w_skip": np.arange(12.0).reshape(2, 6), "table": np.array([[4, -1], [5, 0]])}
    packed, offset = plain(routing.heads_compact, given)
    assert packed.tolist() == [4.0, 11.0, 6.0, 0.0, 0.0, 0.0]
    assert offset.tolist() == [0, 1]


def test_a_cell_of_one_channel_by_hand() -> None:
    given = {
        "x": np.array([[2.0]]),
        "h": np.array([[0.5]]),
        "dt": np.array([1.0]),
        "W_in": np.array([[0.25]]),
        "W_rec": np.array([[-1.0]]),
        "b": np.array([1.0]),
        "tau": np.array([2.0]),
    }
    decay = math.exp(-0.5)
    expected = 0.5 * decay + (1 - decay) * math.tanh(1.0)
    (value,) = bounded(cfc.step, given)
    assert abs(value.value[0, 0] - expected) <= value.error[0, 0]
    assert 0 < value.error[0, 0] <= 16 * UNIT
    _, dh, _, _, db, _ = plain(cfc.step_backward, {"g": np.array([[1.0]]), **given})
    slope = (1 - decay) * (1 - math.tanh(1.0) ** 2)
    assert abs(db[0] - slope) <= UNIT
    assert abs(dh[0, 0] - (decay - slope)) <= UNIT


def test_a_small_step_from_zero_is_relatively_accurate() -> None:
    tiny = {**CELL, "h": np.zeros((B, H)), "dt": np.full(B, 2.0**-40)}
    (value,) = bounded(cfc.step, tiny)
    pre = CELL["x"] @ CELL["W_in"].T + CELL["b"]
    small = np.abs(value.value) < 2.0**-20
    assert small.all()
    sure = np.abs(pre) > 0.25  # away from zero the error of pre is relative too
    assert (value.error[sure] <= 64 * UNIT * np.abs(value.value[sure])).all()


def test_a_channel_of_no_bucket_keeps_the_buffer() -> None:
    before = single(B, H)
    given = {**CELL, "table": TABLE, "out": before}
    (after,) = plain(cfc.step_per_branch, given)
    (dense,) = plain(cfc.step, CELL)
    outside = [3, 5]
    np.testing.assert_array_equal(after[:, outside], before[:, outside])
    inside = [channel for channel in range(H) if channel not in outside]
    np.testing.assert_array_equal(after[:, inside], dense[:, inside])


@pytest.mark.parametrize(
    "changes",
    [{}, {"h": np.zeros((B, H))}, {"dt": np.full(B, 1e3)}],
    ids=["ordinary", "from_zero", "long_steps"],
)
def test_backward_formulas_are_the_forward_oracles_derivative(changes: Arguments) -> None:
    given = {**CELL, **changes}
    wrt = [name.removeprefix("d") for name in GRADIENTS]
    derived: list[Any] = gradient(cfc.step, given, wrt, [G])
    written = bounded(cfc.step_backward, {"g": G, **given})
    for one, other in zip(derived, written, strict=True):
        assert (np.abs(one.value - other.value) <= one.error + other.error).all()
        assert np.isfinite(one.error).all()


def test_a_channel_of_no_bucket_has_no_gradient() -> None:
    wrt = [name.removeprefix("d") for name in GRADIENTS]
    branches = {**CELL, "table": TABLE, "out": single(B, H)}
    derived: list[Any] = gradient(cfc.step_per_branch, branches, wrt, [G])
    arguments = {"g": G, **CELL, "table": TABLE}
    written = bounded(cfc.step_per_branch_backward, arguments)
    for one, other in zip(derived, written, strict=True):
        assert (np.abs(one.value - other.value) <= one.error + other.error).all()
    assert (written[4].value[[3, 5]] == 0).all()
