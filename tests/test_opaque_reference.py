"""Opaque torch references: what they judge, by the kernel's own run, and what stays red."""

import pytest
import torch
import triton
import triton.language as tl

from trivet import Contract, Tensor, sizes
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
