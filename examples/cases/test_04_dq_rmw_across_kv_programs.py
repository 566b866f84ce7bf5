"""Attention backward parallel over K/V blocks updates dQ with plain load/add/store.

One program per K/V block walks all query blocks and does dq = load; dq += ds@k; store. That is
only valid when the K/V loop is sequential; with several K/V programs in flight the
read-modify-write of the same dQ tile is a data race and updates get lost. Fix: atomic add or a dQ
kernel owned by query blocks. Sequential execution (interpreter, or a single K/V block) gives the
right value.

Reported as Dao-AILab/flash-attention#1496 (observed as run-to-run wrong dq in
triton-lang/triton#1558).
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import Choice, Contract, Tensor, sizes


@triton.jit
def _ld(ptr, r, S, D: tl.constexpr):
    off = tl.program_id(1) * S * D + r[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(ptr + off, mask=r[:, None] < S, other=0.0)


@triton.jit
def _ds_k(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, rm, rn, S, scale, D: tl.constexpr):
    q = _ld(q_ptr, rm, S, D)
    k = _ld(k_ptr, rn, S, D)
    lse = tl.load(lse_ptr + tl.program_id(1) * S + rm, mask=rm < S, other=0.0)
    delta = tl.load(delta_ptr + tl.program_id(1) * S + rm, mask=rm < S, other=0.0)
    x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    p = tl.where((rm[:, None] < S) & (rn[None, :] < S), tl.exp(x - lse[:, None]), 0.0)
    dp = tl.dot(_ld(do_ptr, rm, S, D), tl.trans(_ld(v_ptr, rn, S, D)), input_precision="ieee")
    return tl.dot(p * (dp - delta[:, None]), k, input_precision="ieee") * scale


@triton.jit
def dq_kernel_good(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    S,
    scale,
    D: tl.constexpr,
    B: tl.constexpr,
):
    rm = tl.program_id(0) * B + tl.arange(0, B)  # this program owns these query rows
    acc = tl.zeros([B, D], tl.float32)
    for n0 in range(0, S, B):
        acc += _ds_k(
            q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, rm, n0 + tl.arange(0, B), S, scale, D
        )
    off = tl.program_id(1) * S * D + rm[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(dq_ptr + off, acc, mask=rm[:, None] < S)


@triton.jit
def dq_kernel_bad(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    S,
    scale,
    D: tl.constexpr,
    B: tl.constexpr,
):
    rn = tl.program_id(0) * B + tl.arange(0, B)  # this program owns these key rows
    for m0 in range(0, S, B):
        rm = m0 + tl.arange(0, B)
        off = tl.program_id(1) * S * D + rm[:, None] * D + tl.arange(0, D)[None, :]
        dq = tl.load(dq_ptr + off, mask=rm[:, None] < S, other=0.0)
        dq += _ds_k(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, rm, rn, S, scale, D)
        tl.store(dq_ptr + off, dq, mask=rm[:, None] < S)


def _launch(kernel, q, k, v, do):
    q, k, v, do = (t.contiguous() for t in (q, k, v, do))
    h, s, d = q.shape
    scale = d**-0.5
    x = q @ k.transpose(-1, -2) * scale
    lse = torch.logsumexp(x, -1)
    delta = (torch.softmax(x, -1) @ v * do).sum(-1)
    dq = torch.zeros_like(q)
    kernel[(triton.cdiv(s, 16), h)](q, k, v, do, lse, delta, dq, s, scale, D=d, B=16)
    return dq


def good(q, k, v, do):
    return _launch(dq_kernel_good, q, k, v, do)


def reference(q, k, v, do):
    a = q.double().requires_grad_()
    o = torch.softmax(a @ k.double().transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v.double()
    return torch.autograd.grad(o, a, do.double())[0]


query_gradient = Contract(
    kernel=good,
    oracles=[reference],
    dims={"h": sizes(1, 2), "s": sizes(1, 40), "d": Choice(16)},
    args={name: Tensor("h s d") for name in ("q", "k", "v", "do")},
)


@query_gradient.fault(expects=("is_race_free",))
def bad(q, k, v, do):
    """Programs of several key blocks load, add and store one row of dq."""
    return _launch(dq_kernel_bad, q, k, v, do)
