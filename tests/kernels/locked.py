"""Contracts of small kernels whose text tests edit: to make them slower, or to change nothing."""

import numpy as np
import torch
import triton
import triton.language as tl

from trivet import Contract, Precision, Tensor, sizes


@triton.jit
def _moves(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    left = tl.load(x + i, mask=ok)
    right = tl.load(y + i, mask=ok)
    tl.store(o + i, left + right, mask=ok)


def moves(x, y):
    o = torch.empty_like(x)
    _moves[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
    return o


@triton.jit
def _curve(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    v = tl.load(x + i, mask=ok)
    w = (v * v + v) * v + 1.5
    tl.store(o + i, w, mask=ok)


def curve(x):
    o = torch.zeros_like(x)
    _curve[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


@triton.jit
def _rows(x, o, N: tl.constexpr):
    row = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + row)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + row, e / tl.sum(e, axis=0))


def rows(x):
    o = torch.empty_like(x)
    _rows[(x.shape[0],)](x, o, N=x.shape[1], num_warps=4)
    return o


@triton.jit
def _product(a, b, o, K, TILE: tl.constexpr):
    m = tl.arange(0, TILE)[:, None]
    n = tl.arange(0, TILE)[None, :]
    acc = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, K, TILE):
        left = tl.load(a + m * K + k + n)
        right = tl.load(b + (k + m) * TILE + n)
        acc = tl.dot(left, right, acc)
    tl.store(o + m * TILE + n, acc)


def product(a, b):
    o = torch.empty(32, 32)
    _product[(1,)](a, b, o, a.shape[1], TILE=32, num_stages=3)
    return o


@triton.jit
def _neutral(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, v * 2 + 1, mask=i < n)


def neutral(x):
    o = torch.empty_like(x)
    _neutral[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


LONG = {"n": sizes(1, 4096)}
VECTOR = Tensor("n")
moves_contract = Contract(
    kernel=moves, oracles=[lambda x, y: x + y], dims=LONG, args={"x": VECTOR, "y": VECTOR}
)
curve_contract = Contract(
    kernel=curve, oracles=[lambda x: (x * x + x) * x + 1.5], dims=LONG, args={"x": VECTOR}
)
neutral_contract = Contract(
    kernel=neutral, oracles=[lambda x: x * 2 + 1], dims=LONG, args={"x": VECTOR}
)
rows_contract = Contract(
    kernel=rows,
    oracles=[lambda x: np.exp(x) / np.sum(np.exp(x), axis=-1, keepdims=True)],
    dims={"m": sizes(1, 2)},
    args={"x": Tensor("m 2048")},
)
product_contract = Contract(
    kernel=product,
    oracles=[lambda a, b: a @ b],
    dims={"k": sizes(1, 4)},
    args={
        "a": Tensor("32 128", dtypes=("bfloat16",)),
        "b": Tensor("128 32", dtypes=("bfloat16",)),
    },
    precision=Precision(),
)
