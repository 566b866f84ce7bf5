"""Layer norm, forward, with the statistics a backward pass needs."""

import numpy as np
import torch
import triton
import triton.language as tl

from trivet import UNIT_LAST, Contract, Scalar, Tensor, reals, sizes


@triton.jit
def layer_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    x_stride,
    y_stride,
    N,
    eps,
    BLOCK: tl.constexpr,
):
    """One program a row; the variance is taken of the centred row, in a pass of its own."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * y_stride

    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        sums += tl.load(x_row + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / N

    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < N
        x = tl.load(x_row + cols, mask=inside).to(tl.float32)
        centred = tl.where(inside, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)

    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < N
        x = tl.load(x_row + cols, mask=inside).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=inside).to(tl.float32)
        y = (x - mean) * rstd * weight + bias
        tl.store(y_row + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


def layer_norm_forward(x, weight, bias, eps):
    """Normalise each row of ``x`` (M, N); return it with the rows' mean and 1 / deviation (M,)."""
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    mean = torch.empty((M,), dtype=torch.float32, device=x.device)
    rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
    layer_norm_kernel[(M,)](
        x, weight, bias, y, mean, rstd, x.stride(0), y.stride(0), N, eps, BLOCK=64
    )
    return y, mean, rstd


def oracle(m, x, weight, bias, eps):
    mean = m.mean(x, axis=-1, keepdims=True)
    rstd = 1 / m.sqrt(m.var(x, axis=-1, keepdims=True) + eps)
    return (x - mean) * rstd * weight + bias, mean[:, 0], rstd[:, 0]


FLOATS = ("float32", "bfloat16")

layer_norm = Contract(
    kernel=layer_norm_forward,
    oracles=[oracle],
    # At the production sizes offsets no longer fit into 32 bits.
    dims={"M": sizes(0, 40, production=2**20), "N": sizes(1, 300, production=4096)},
    args={
        # Rows far from zero: where E[x^2] - E[x]^2 has lost its digits.
        "x": Tensor("M N", dtypes=FLOATS, domain=reals(-1e3, 1e3), layouts=UNIT_LAST),
        "weight": Tensor("N", dtypes=FLOATS),
        "bias": Tensor("N", dtypes=FLOATS),
        "eps": Scalar(float, 1e-6, 1e-3),
    },
    outputs={
        "y": Tensor("M N", dtypes="x"),
        "mean": Tensor("M", dtypes=("float32",)),
        "rstd": Tensor("M", dtypes=("float32",)),
    },
)


@layer_norm.law
def zero_weight_leaves_the_bias(rerun, weight, bias):
    """Where the weight is zero the result is the bias, bit for bit, whatever the row holds."""
    y = rerun(weight=np.zeros_like(weight)).y
    assert (y == bias).all(), "a zero weight does not leave the bias alone"


@layer_norm.law
def mean_lies_within_its_row(out, bound, x):
    """A row's mean is no smaller than its smallest and no larger than its largest element."""
    low = x.min(axis=-1) - bound.mean
    high = x.max(axis=-1) + bound.mean
    assert ((low <= out.mean) & (out.mean <= high)).all(), "a mean lies outside its row"


@layer_norm.fault(expects=("matches_oracle",))
def variance_in_one_pass(edit):
    """The mean of the squares less the square of the mean; rows round zero pass."""
    return edit(
        "squares += centred * centred", "squares += tl.where(inside, x * x - mean * mean, 0.0)"
    )


@layer_norm.fault(expects=("ignores_masked_lanes",))
def padding_left_undefined(edit):
    """What a masked load leaves in its lanes is nobody's promise; interpreters leave zero."""
    return edit("mask=cols < N, other=0.0", "mask=cols < N")


@layer_norm.fault(expects=("writes_every_element", "is_race_free"))
def deviations_all_in_one_place(edit):
    """Only the backward pass would read them, so a forward test does not look."""
    return edit("tl.store(rstd_ptr + row, rstd)", "tl.store(rstd_ptr, rstd)")
