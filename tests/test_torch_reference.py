"""References written in torch: their values, their bounds, and what happens without a rule."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from trivet import Contract, Precision, Tensor, sizes
from trivet.oracles._errors import OracleError
from trivet.oracles._logic import Opaque, accept_logic
from trivet.properties._engine import judge
from trivet.properties._torch_reference import call_torch, evaluate_reference, is_torch


def arguments():
    x = np.random.default_rng(0).standard_normal((4, 6))
    return {"x": x.astype(np.float32).astype(np.float64)}


def traced(reference, given, **options):
    options = {"precision": Precision(), "profile": "simulator"} | options
    return evaluate_reference(reference, given, **options)


def test_views_share_what_is_known_of_their_elements():
    def reference(x):
        y = x.double() * 0.1
        view = y.t()[2]
        view.zero_()
        return y, y.view(-1)[8:9]

    whole, part = traced(reference, arguments())
    assert (whole.value[:, 2] == 0).all()
    assert (whole.error[:, 2] == 0).all()
    assert (whole.error[:, 0] > 0).all()
    assert part.value == 0


def test_what_was_computed_before_a_write_keeps_its_value():
    def reference(x):
        total = x.sum(-1)
        x.zero_()
        return total / 6, x

    given = arguments()
    mean, zeros = traced(reference, given)
    assert accept_logic(given["x"].mean(-1), mean).ok.all()
    assert not zeros.value.any()


def test_a_layer_norm_written_out_stands_for_its_stable_forms():
    def written(x):
        d = x - x.mean(-1, keepdim=True)
        return d / (d.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()

    def in_the_namespace(m, x):
        d = x - m.mean(x, axis=-1, keepdims=True)
        return d / m.sqrt(m.mean(m.square(d), axis=-1, keepdims=True) + 1e-5)

    given = {"x": arguments()["x"] + 1000.0}
    (one,), (two,) = traced(written, given), traced(in_the_namespace, given)
    np.testing.assert_array_equal(one.error, two.error)


def test_float_arguments_carry_the_roundings_of_what_is_made_of_them():
    def reference(x, lr):
        return x * (1 - lr * 0.1)

    (value,) = traced(reference, {"x": np.ones(3), "lr": float(np.float32(1e-3))})
    assert (value.error > 2.0**-24).all()
    with_torch = traced(lambda x, lr: torch.mul(x, 1 - lr * 0.1), {"x": np.ones(3), "lr": 0.5})
    assert (with_torch[0].error > 2.0**-24).all()


def test_casts_round_where_the_contract_declares_the_format():
    def reference(x):
        return x.to(torch.bfloat16).double()

    given = {"x": np.asarray([1.001, 1.0])}
    (plain,) = traced(reference, given)
    (stored,) = traced(reference, given, precision=Precision(storage={"x": "bfloat16"}))
    assert (plain.error == 0).all()
    assert stored.error[0] >= 1.001 - float(torch.tensor(1.001).to(torch.bfloat16))
    assert stored.error[1] == 0


def test_comparisons_in_doubt_stay_in_doubt():
    def reference(x):
        s = (x * 0.1).sum()
        return torch.where(s * 10 > x.sum(), x, -x), s * 10 > x.sum()

    chosen, truth = traced(reference, {"x": np.asarray([1.0, 2.0, 4.0])})
    assert (chosen.error >= 2 * np.asarray([1.0, 2.0, 4.0])).all()
    assert np.isinf(truth.error)


def test_a_branch_in_doubt_is_undecidable():
    def reference(x):
        return x if (x * 0.1).sum() * 10 > x.sum() else -x

    (value,) = traced(reference, {"x": np.asarray([1.0, 2.0, 4.0])})
    assert np.isinf(value.error).all()


def test_blame_names_the_line_of_the_reference():
    def reference(x):
        scaled = x.double() * 3.0
        return scaled.exp()

    (value,) = traced(reference, {"x": np.asarray([30.1])})
    assert "test_torch_reference.py" in value.blame((0,))
    assert "`" in value.blame((0,))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (lambda x: torch.sum(x), True),
        (lambda x: F.relu(x), True),
        (lambda x: helper(x), True),
        (lambda x: np.exp(x), False),
        (lambda m, x: m.exp(x), False),
        (lambda x: x.sum(-1), False),
    ],
)
def test_references_are_recognised_by_what_they_name(reference, expected):
    assert is_torch(reference, {"x": np.ones(3)}) is expected


def helper(x):
    return torch.exp(x)


def test_methods_that_only_tensors_have_tell_torch():
    def methods(x):
        return x.double().sum(-1)

    def keyword(x):
        return x.sum(dim=-1)

    for reference in (methods, keyword):
        assert not is_torch(reference, {"x": np.ones((2, 3))})
        assert traced(reference, {"x": np.ones((2, 3))})[0].value.tolist() == [3.0, 3.0]
        assert is_torch(reference, {"x": np.ones((2, 3))})


def test_numpy_references_are_traced_as_numpy():
    def reference(x):
        return x.std(-1), np.exp(x)

    deviation, _ = traced(reference, arguments())
    assert accept_logic(arguments()["x"].std(-1), deviation).ok.all()


@pytest.mark.parametrize(
    ("reference", "operation"),
    [
        (lambda x: torch.fft.rfft(x).abs(), "_fft_r2c"),
        (lambda x: torch.linalg.inv(x @ x.T + torch.eye(4)), "linalg_inv_ex"),
        (lambda x: torch.mul(x, x.max().item()), "item()"),
        (lambda x: torch.from_numpy(x.numpy()) * 2, "numpy()"),
        (lambda x: x + 0 * torch.rand(4, 6), "rand"),
        (lambda x: x.double().view(torch.int64).double() * 0 + x, "view(dtype)"),
    ],
)
def test_an_operation_without_a_rule_makes_the_reference_opaque(reference, operation):
    given = arguments()
    (value,) = traced(reference, given)
    assert isinstance(value, Opaque)
    assert operation in value.reason
    assert np.isinf(value.error).all()
    np.testing.assert_array_equal(value.value, call_torch(reference, given, None)[0])


def test_the_logic_of_a_kernel_is_judged_by_an_opaque_reference():
    (value,) = traced(lambda x: torch.linalg.inv(x), {"x": np.asarray([[2.0, 1.0], [1.0, 3.0]])})
    assert accept_logic(value.value * (1 + 1e-14), value).ok.all()
    assert not accept_logic(value.value * (1 + 1e-6), value).ok.any()


def test_a_reference_that_fails_says_so():
    with pytest.raises(OracleError, match="oracle bad fails on tensors"):
        traced(bad, {"x": np.ones((2, 3))})


def bad(x):
    return torch.mm(x, x)


@triton.jit
def line_kernel(x_ptr, y_ptr, N, slope, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N, other=0.0)
    tl.store(y_ptr + at, x * slope + 1.0, mask=at < N)


def line(x, slope):
    y = torch.empty_like(x)
    line_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), slope, BLOCK=16)
    return y


def plus_one(x):
    return line(x, 1.0)


def opaque(x):
    return torch.fft.irfft(torch.fft.rfft(x), x.shape[-1]) + 1


def steeper(x):
    return line(x, 1.001)


@pytest.mark.parametrize(("kernel", "logic"), [(plus_one, "green"), (steeper, "red")])
def test_a_gate_with_an_opaque_reference(kernel, logic):
    contract = Contract(kernel, [opaque], {"N": sizes(2, 40)}, {"x": Tensor("N")})
    laws = ["matches_oracle", "logic_matches", "repeats"]
    verdicts = {v.law: v for v in judge(contract, name="c", laws=laws, shrink=False)}
    assert verdicts["matches_oracle"].state == logic
    assert verdicts["logic_matches"].state == logic
