"""Chunked SSM scan: decay origin of the initial state moves with the row block.

A sequence starts c_off steps into a chunk, so its initial state decays by exp(dA_cs[t]
-dA_cs[c_off-1]). The boundary load carries an extra pid_m*BLOCK_M offset; only row block 0 is
right, later rows keep too much of the initial state. One row block per chunk hides it.

Reported as vllm-project/vllm#21783 (also fixed in NVIDIA/TensorRT-LLM#6334).
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import Choice, Contract, Precision, Scalar, Tensor, reals, sizes


@triton.jit
def _emit(
    cs_ptr,
    C_ptr,
    st_ptr,
    o_ptr,
    bound,
    L,
    c_off,
    N: tl.constexpr,
    P: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    t = c_off + tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ok = t < L
    n = tl.arange(0, N)
    p = tl.arange(0, P)
    C = tl.load(C_ptr + t[:, None] * N + n[None, :], mask=ok[:, None], other=0.0)
    st = tl.load(st_ptr + n[:, None] * P + p[None, :])
    w = tl.exp(tl.load(cs_ptr + t, mask=ok, other=0.0) - bound)
    y = tl.dot(C, st, input_precision="ieee") * w[:, None]
    tl.store(o_ptr + (t - c_off)[:, None] * P + p[None, :], y, mask=ok[:, None])


@triton.jit
def init_contrib_good(
    cs_ptr, C_ptr, st_ptr, o_ptr, L, c_off, N: tl.constexpr, P: tl.constexpr, BLOCK_M: tl.constexpr
):
    bound = 0.0
    if c_off > 0:
        bound = tl.load(cs_ptr + c_off - 1)
    _emit(cs_ptr, C_ptr, st_ptr, o_ptr, bound, L, c_off, N, P, BLOCK_M)


@triton.jit
def init_contrib_bad(
    cs_ptr, C_ptr, st_ptr, o_ptr, L, c_off, N: tl.constexpr, P: tl.constexpr, BLOCK_M: tl.constexpr
):
    cs_blk = cs_ptr + tl.program_id(0) * BLOCK_M
    bound = 0.0
    if c_off > 0:
        bound = tl.load(cs_blk + c_off - 1)
    _emit(cs_ptr, C_ptr, st_ptr, o_ptr, bound, L, c_off, N, P, BLOCK_M)


def _launch(kernel, dA, C, state, c_off, BLOCK_M):
    L, n = C.shape
    p = state.shape[1]
    cs = torch.cumsum(dA, 0)
    out = torch.empty(L - c_off, p)
    kernel[(triton.cdiv(L - c_off, BLOCK_M),)](
        cs, C.contiguous(), state.contiguous(), out, L, c_off, N=n, P=p, BLOCK_M=BLOCK_M
    )
    return out


def good(dA, C, state, c_off, BLOCK_M):
    return _launch(init_contrib_good, dA, C, state, c_off, BLOCK_M)


def reference(dA, C, state, c_off, BLOCK_M):
    w = torch.cumsum(dA.double()[c_off:], 0).exp()
    return w[:, None] * (C.double()[c_off:] @ state.double())


initial_contribution = Contract(
    kernel=good,
    oracles=[reference],
    dims={"l": sizes(1, 64), "n": Choice(8, 16), "p": Choice(8, 16)},
    args={
        "dA": Tensor("l", domain=reals(-0.5, 0.0)),
        "C": Tensor("l n"),
        "state": Tensor("n p"),
        "c_off": Scalar(int, 0, "l-1"),
        "BLOCK_M": Choice(16, 32, 64),
    },
    precision=Precision(approx=("cumsum",)),  # differences of running sums of the whole of dA
)


@initial_contribution.fault(expects=("matches_oracle",))
def bad(dA, C, state, c_off, BLOCK_M):
    """The boundary decay is loaded further on by the row block's offset."""
    return _launch(init_contrib_bad, dA, C, state, c_off, BLOCK_M)
