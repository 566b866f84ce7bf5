"""Softmax over the rows of a matrix of any width: kernel, contract and planted faults."""

import numpy as np
import torch
import triton
import triton.language as tl

from trivet import UNIT_LAST, Contract, Tensor, reals, sizes


@triton.jit
def softmax_kernel(x_ptr, y_ptr, x_stride, y_stride, N, BLOCK: tl.constexpr):
    """One program a row: find maximum and sum chunk by chunk, then write the quotients."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * y_stride
    highest = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
        raised = tl.maximum(highest, tl.max(x, axis=0))
        # What was summed so far is relative to the old maximum.
        total = total * tl.exp(highest - raised) + tl.sum(tl.exp(x - raised), axis=0)
        highest = raised
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < N
        x = tl.load(x_row + cols, mask=inside).to(tl.float32)
        y = tl.exp(x - highest) / total
        tl.store(y_row + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_softmax(x):
    """Return the softmax of each row of ``x`` (M, N), rows dense, in the dtype of ``x``."""
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax_kernel[(M,)](x, y, x.stride(0), y.stride(0), N, BLOCK=64)
    return y


def oracle(m, x):
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


softmax = Contract(
    kernel=fused_softmax,
    oracles=[oracle],
    # At the production sizes offsets no longer fit into 32 bits.
    dims={"M": sizes(0, 40, production=2**20), "N": sizes(1, 300, production=4096)},
    args={
        "x": Tensor(
            "M N",
            dtypes=("float32", "bfloat16"),
            # Reaches where the maximum has to be subtracted: exp(89) overflows float32.
            domain=reals(-1e4, 1e4),
            layouts=UNIT_LAST,
        )
    },
)


@softmax.law
def rows_sum_to_one(out, bound):
    """Every row of the result sums to one, within what its elements may be off."""
    error = np.abs(out.sum(axis=-1) - 1)
    assert (error <= bound.sum(axis=-1)).all(), f"a row's sum is {error.max()} away from 1"


@softmax.fault(expects=("stays_in_bounds",))
def mask_off_by_one(edit):
    """The mask lets one column too many in; aligned sizes pass."""
    return edit("mask=cols < N, other", "mask=cols <= N, other")


@softmax.fault(expects=("matches_oracle",))
def maximum_not_subtracted(edit):
    """exp(x) overflows; tests that draw from a normal distribution pass."""
    return edit("raised = tl.maximum(highest, tl.max(x, axis=0))", "raised = 0.0")


@softmax.fault(expects=("is_race_free",))
def store_runs_into_the_next_row(edit):
    """The row's neighbour repairs the damage if it happens to run later, as on a CPU."""
    return edit("inside = cols < N", "inside = cols <= N")
