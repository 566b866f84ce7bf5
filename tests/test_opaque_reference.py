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
