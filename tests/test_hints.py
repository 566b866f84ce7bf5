"""A refused output whose formula the contract could admit: the failure names the approximation."""

import pytest
import torch
import triton
import triton.language as tl

from trivet import Contract, Precision, Tensor, reals, sizes
from trivet.properties._engine import judge


@triton.jit
def softplus_kernel(x_ptr, y_ptr, N, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N, other=0.0)
    tl.store(y_ptr + at, tl.log(1.0 + tl.exp(x)) * factor, mask=at < N)


def softplus(x, factor=1.0):
    y = torch.empty_like(x)
    softplus_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), factor, BLOCK=16)
    return y


def doubled(x):
    return softplus(x, 2.0)


def oracle(m, x):
    return m.softplus(x)


def failure_of(kernel, precision):
    contract = Contract(
        kernel,
        [oracle],
        {"N": sizes(1, 40)},
        {"x": Tensor("N", domain=reals(-20, 20))},
        precision=precision,
    )
    (verdict,) = judge(contract, name="c", laws=["matches_oracle"], shrink=False)
    return verdict.failure.text if verdict.failure else ""


def test_the_formula_that_would_be_admitted_is_named():
    text = failure_of(softplus, Precision())
    assert 'a contract that gives up avoiding "softplus" (Precision(approx=..)) admits it' in text
    assert not failure_of(softplus, Precision(approx=("softplus",)))


@pytest.mark.parametrize("approx", [(), ("softplus",)])
def test_what_no_formula_admits_has_no_hint(approx):
    text = failure_of(doubled, Precision(approx=approx))
    assert "error" in text
    assert "gives up avoiding" not in text
