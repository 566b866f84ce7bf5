"""LayerNorm forward with var = E[x^2] - E[x]^2 in one pass.

Two large nearly equal numbers are subtracted in fp32: with |mean| >> std the variance loses all
its digits or turns negative (NaN rstd). Zero-mean random test data hides it.

Reported as triton-lang/triton#6413 (also proposed for Inductor in pytorch/pytorch#143337).
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import Choice, Contract, Tensor, reals, sizes


@triton.jit
def _write(x_ptr, w_ptr, b_ptr, y_ptr, row, n, mean, rstd, BLOCK: tl.constexpr):
    for s in range(0, n, BLOCK):
        c = s + tl.arange(0, BLOCK)
        k = c < n
        x = tl.load(x_ptr + row * n + c, mask=k, other=0.0)
        y = (x - mean) * rstd * tl.load(w_ptr + c, mask=k, other=0.0) + tl.load(
            b_ptr + c, mask=k, other=0.0
        )
        tl.store(y_ptr + row * n + c, y, mask=k)


@triton.jit
def layernorm_good(x_ptr, w_ptr, b_ptr, y_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    s1 = tl.zeros([BLOCK], tl.float32)
    for s in range(0, n, BLOCK):
        c = s + tl.arange(0, BLOCK)
        s1 += tl.load(x_ptr + row * n + c, mask=c < n, other=0.0)
    mean = tl.sum(s1, axis=0) / n
    s2 = tl.zeros([BLOCK], tl.float32)
    for s in range(0, n, BLOCK):
        c = s + tl.arange(0, BLOCK)
        d = tl.where(c < n, tl.load(x_ptr + row * n + c, mask=c < n, other=0.0) - mean, 0.0)
        s2 += d * d
    rstd = 1.0 / tl.sqrt(tl.sum(s2, axis=0) / n + eps)
    tl.store(rstd_ptr + row, rstd)
    _write(x_ptr, w_ptr, b_ptr, y_ptr, row, n, mean, rstd, BLOCK)


@triton.jit
def layernorm_bad(x_ptr, w_ptr, b_ptr, y_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    s1 = tl.zeros([BLOCK], tl.float32)
    s2 = tl.zeros([BLOCK], tl.float32)
    for s in range(0, n, BLOCK):
        c = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + c, mask=c < n, other=0.0)
        s1 += x
        s2 += x * x
    mean = tl.sum(s1, axis=0) / n
    rstd = 1.0 / tl.sqrt(tl.sum(s2, axis=0) / n - mean * mean + eps)
    tl.store(rstd_ptr + row, rstd)
    _write(x_ptr, w_ptr, b_ptr, y_ptr, row, n, mean, rstd, BLOCK)


def _launch(kernel, x, w, b, eps, BLOCK):
    m, n = x.shape
    y, rstd = torch.empty_like(x), torch.empty(m)
    kernel[(m,)](x.contiguous(), w, b, y, rstd, n, eps, BLOCK=BLOCK)
    return y, rstd


def good(x, w, b, eps, BLOCK):
    return _launch(layernorm_good, x, w, b, eps, BLOCK)


def reference(x, w, b, eps, BLOCK):
    x = x.double()
    d = x - x.mean(-1, keepdim=True)
    rstd = 1 / (d.pow(2).mean(-1) + eps).sqrt()
    return d * rstd[:, None] * w.double() + b.double(), rstd


layer_norm = Contract(
    kernel=good,
    oracles=[reference],
    dims={"m": sizes(1, 8), "n": sizes(1, 100)},
    args={
        "x": Tensor("m n", domain=reals(-3000, 3000)),
        "w": Tensor("n"),
        "b": Tensor("n"),
        "eps": Choice(1e-5),
        "BLOCK": Choice(16, 32, 64),
    },
    outputs={"y": Tensor("m n"), "rstd": Tensor("m")},
)


@layer_norm.fault(expects=("matches_oracle",))
def bad(x, w, b, eps, BLOCK):
    """The variance is the difference of two large numbers."""
    return _launch(layernorm_bad, x, w, b, eps, BLOCK)
