"""Opaque torch references: what they judge, by the kernel's own run, and what stays red."""

from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl

from trivet import Contract, Precision, Tensor, sizes
from trivet.properties._engine import judge

FLOAT, HALF = tl.constexpr(tl.float32), tl.constexpr(tl.float16)


@triton.jit
def norm_kernel(x_ptr, y_ptr, n, factor, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((), KIND)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
        total += tl.sum((x * x).to(KIND), axis=0)
    tl.store(y_ptr + row, tl.sqrt(total.to(tl.float32)) * factor)


def norms(x, factor=1.0, kind=tl.float32):
    y = torch.empty(x.shape[0], dtype=x.dtype)
    norm_kernel[(x.shape[0],)](x, y, x.shape[1], factor, KIND=kind, BLOCK=16)
    return y


def too_long(x):
    return norms(x, 1.001)


def in_half(x):
    return norms(x, kind=tl.float16)


def nothing(x):
    return norms(x, 0.0)


def opaque(x):
    return torch.linalg.svdvals(x[:, None, :])[:, 0]


def contract_of(kernel, **options):
    sized = {"M": sizes(1, 6), "N": sizes(1, 90)}
    return Contract(kernel, [opaque], sized, {"x": Tensor("M N", **options)})


def judged(contract, laws=("matches_oracle", "logic_matches"), **options):
    return {v.law: v for v in judge(contract, name="c", laws=laws, shrink=False, **options)}


@pytest.mark.parametrize("seed", range(5))
def test_a_right_kernel_is_green(seed):
    found = judged(contract_of(norms), seed=seed)
    for law, verdict in found.items():
        print(
            law, verdict.state, verdict.reason, verdict.undecided, verdict.margin, verdict.failure
        )
    assert {law: verdict.state for law, verdict in found.items()} == {
        "matches_oracle": "green",
        "logic_matches": "green",
    }
    reason = found["matches_oracle"].reason
    assert reason is not None
    assert "the reference is opaque, _linalg_svd has no rule" in reason
    assert "no power certificate" in reason


@pytest.mark.parametrize(
    ("kernel", "reds"),
    [
        (too_long, {"matches_oracle", "logic_matches"}),
        (nothing, {"matches_oracle", "logic_matches"}),
        (in_half, {"matches_oracle"}),
    ],
)
def test_a_wrong_kernel_is_red(kernel, reds):
    found = judged(contract_of(kernel))
    assert {law for law, verdict in found.items() if verdict.state == "red"} == reds


@triton.jit
def scaled_kernel(x_ptr, g_ptr, d_ptr, n, factor, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    g = tl.load(g_ptr + at, mask=at < n, other=0.0)
    slope = (tl.exp(-x * x) * factor).to(KIND).to(tl.float32)
    tl.store(d_ptr + at, g * slope, mask=at < n)


def slopes(g, x, factor=1.1283791670955126, kind=tl.float32):
    d = torch.empty_like(x)
    scaled_kernel[(triton.cdiv(x.numel(), 16),)](x, g, d, x.numel(), factor, KIND=kind, BLOCK=16)
    return {"x": d}


def slopes_in_half(g, x):
    return slopes(g, x, kind=tl.float16)


def slopes_too_steep(g, x):
    return slopes(g, x, 1.1293791670955126)


def no_slopes(g, x):
    return slopes(g, x, 0.0)


@triton.jit
def erf_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, tl.erf(x), mask=at < n)


def errors(x):
    y = torch.empty_like(x)
    erf_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y


def erf_reference(x):
    return torch.special.erf(x)


@pytest.mark.parametrize(
    ("backward", "state"),
    [
        (slopes, "green"),
        (slopes_in_half, "red"),
        (slopes_too_steep, "red"),
        (no_slopes, "red"),
    ],
)
def test_gradients_are_judged_by_autograd_of_the_reference(backward, state):
    tensors = {"x": Tensor("N")}
    contract = Contract(errors, [erf_reference], {"N": sizes(1, 60)}, tensors, backward=backward)
    verdict = judged(contract, ["gradients_match"])["gradients_match"]
    assert verdict.state == state


@triton.jit
def curve_kernel(x_ptr, y_ptr, n, MODE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    if MODE == "sigmoid":
        y = tl.sigmoid(x)
    elif MODE == "constant":
        y = x * 0.7978845608028654
    elif MODE == "to_whole":
        y = (x * 2 + 12582912.0) - 12582912.0
    else:
        y = tl.where(x * 0.1 + 0.3 > x * 0.1 + (0.1 + 0.2), -x, x)
    tl.store(y_ptr + at, y, mask=at < n)


def curve(x, mode, dtype=None):
    y = torch.empty(x.shape, dtype=dtype or x.dtype)
    curve_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), MODE=mode, BLOCK=16)
    return y


def sigmoid_cast_last(x):
    return curve(x, "sigmoid", torch.float32).to(x.dtype)


def sigmoid_of_halves(x):
    return curve(x.to(torch.float16), "sigmoid", torch.float32)


def sigmoid_times_three(x):
    return curve(x, "sigmoid") * 3 + 1


def many_digits(x):
    return curve(x, "constant")


def to_whole(x):
    return curve(x, "to_whole")


def decides(x):
    return curve(x, "decides")


def itself(x):
    """Opaque, and exact."""
    return torch.from_numpy(x.numpy())


@pytest.mark.parametrize(
    ("kernel", "reference", "dtype", "precision", "logic"),
    [
        (sigmoid_cast_last, lambda x: torch.sigmoid(itself(x)), "bfloat16", "green", "green"),
        (sigmoid_of_halves, lambda x: torch.sigmoid(itself(x)), "float32", "red", "green"),
        (many_digits, lambda x: itself(x) * (2 / torch.pi) ** 0.5, "float32", "green", "green"),
        (to_whole, lambda x: torch.round(2 * itself(x)), "float32", "green", "green"),
        (decides, itself, "float32", "not_promised", "green"),
        (
            sigmoid_times_three,
            lambda x: 3 * torch.sigmoid(itself(x)) + 1,
            "float32",
            "not_promised",
            "green",
        ),
    ],
)
def test_what_a_run_bounds_and_what_it_does_not(kernel, reference, dtype, precision, logic):
    tensors = {"x": Tensor("N", dtypes=(dtype,))}
    contract = Contract(kernel, [reference], {"N": sizes(2, 60)}, tensors)
    found = judged(contract)
    states = [found[law].state for law in ("matches_oracle", "logic_matches")]
    assert states == [precision, logic], [v.reason or v.failure for v in found.values()]
    if precision == "not_promised":
        why = found["matches_oracle"].reason
        assert "host function round float numbers" in why or "a comparison" in why


def test_a_declared_format_widens_the_bound_to_its_own():
    declared = contract_of(in_half)
    wider = replace(declared, precision=Precision(accumulate="float16"))
    assert judged(wider)["matches_oracle"].state == "green"
    assert judged(declared)["matches_oracle"].state == "red"


def test_no_law_is_left_unjudged_by_an_opaque_reference():
    found = judge(contract_of(norms), name="c", shrink=False)
    assert [v.law for v in found if v.state in ("red", "not_judged")] == []


def leaves_autograd(x):
    return torch.special.erf(torch.from_numpy(x.detach().numpy()))


def by_rows(x):
    """Its float64 rounding is that of a whole row, beside elements that are tiny or zero."""
    return torch.fft.irfft(torch.fft.rfft(torch.special.erf(x)), x.shape[-1])


@pytest.mark.parametrize(
    ("reference", "state"), [(leaves_autograd, "not_promised"), (by_rows, "green")]
)
def test_gradients_of_an_opaque_reference(reference, state):
    tensors, sized = {"x": Tensor("N")}, {"N": sizes(2, 60)}
    contract = Contract(errors, [reference], sized, tensors, backward=slopes)
    found = judged(contract, ["matches_oracle", "logic_matches", "gradients_match"])
    assert found["gradients_match"].state == state, found["gradients_match"].failure
    assert found["matches_oracle"].state == found["logic_matches"].state == "green"
