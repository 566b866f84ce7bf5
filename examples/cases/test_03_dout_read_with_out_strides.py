"""Attention backward addresses dO with O's strides in the dK/dV phase.

The dQ phase uses dO's own strides, the dK/dV phase uses the strides of Out. Equal layouts hide
it; an upstream gradient that arrives transposed (b, s, h, d) gives wrong dK/dV while dQ stays
right.

Reported as ROCm/aotriton#236 (same family: FlagOpen/FlagAttention#1,
Dao-AILab/flash-attention#355).
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import ANY, Choice, Contract, Tensor, sizes


@triton.jit
def _tile(ptr, sb, sh, ss, sd, H, S, D: tl.constexpr, BS: tl.constexpr):
    bh = tl.program_id(0)
    r = tl.arange(0, BS)
    c = tl.arange(0, D)
    base = ptr + (bh // H) * sb + (bh % H) * sh
    return tl.load(base + r[:, None] * ss + c[None, :] * sd, mask=r[:, None] < S, other=0.0)


@triton.jit
def _probs(q, k, S, scale, BS: tl.constexpr):
    c = tl.arange(0, BS)
    x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    x = tl.where(c[None, :] < S, x, -float("inf"))
    p = tl.exp(x - tl.max(x, axis=1)[:, None])
    return p / tl.sum(p, axis=1)[:, None]


@triton.jit
def _put(ptr, val, S, D: tl.constexpr, BS: tl.constexpr):
    r = tl.arange(0, BS)
    off = tl.program_id(0) * S * D + r[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(ptr + off, val, mask=r[:, None] < S)


@triton.jit
def _bwd(
    q, k, v, o, do_q, do_kv, dq_ptr, dk_ptr, dv_ptr, S, scale, D: tl.constexpr, BS: tl.constexpr
):
    p = _probs(q, k, S, scale, BS)
    # phase 1: dQ
    ds = p * (tl.dot(do_q, tl.trans(v), input_precision="ieee") - tl.sum(o * do_q, axis=1)[:, None])
    _put(dq_ptr, tl.dot(ds, k, input_precision="ieee") * scale, S, D, BS)
    # phase 2: dK, dV
    ds = p * (
        tl.dot(do_kv, tl.trans(v), input_precision="ieee") - tl.sum(o * do_kv, axis=1)[:, None]
    )
    ds = tl.where(tl.arange(0, BS)[:, None] < S, ds, 0.0)
    _put(dk_ptr, tl.dot(tl.trans(ds), q, input_precision="ieee") * scale, S, D, BS)
    _put(dv_ptr, tl.dot(tl.trans(p), do_kv, input_precision="ieee"), S, D, BS)


@triton.jit
def attn_bwd_good(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    do_ptr,
    dq_ptr,
    dk_ptr,
    dv_ptr,
    sob,
    soh,
    sos,
    sod,
    sgb,
    sgh,
    sgs,
    sgd,
    H,
    S,
    scale,
    D: tl.constexpr,
    BS: tl.constexpr,
):
    q = _tile(q_ptr, H * S * D, S * D, D, 1, H, S, D, BS)
    k = _tile(k_ptr, H * S * D, S * D, D, 1, H, S, D, BS)
    v = _tile(v_ptr, H * S * D, S * D, D, 1, H, S, D, BS)
    o = _tile(o_ptr, sob, soh, sos, sod, H, S, D, BS)
    do_q = _tile(do_ptr, sgb, sgh, sgs, sgd, H, S, D, BS)
    do_kv = _tile(do_ptr, sgb, sgh, sgs, sgd, H, S, D, BS)
    _bwd(q, k, v, o, do_q, do_kv, dq_ptr, dk_ptr, dv_ptr, S, scale, D, BS)


@triton.jit
def attn_bwd_bad(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    do_ptr,
    dq_ptr,
    dk_ptr,
    dv_ptr,
    sob,
    soh,
    sos,
    sod,
    sgb,
    sgh,
    sgs,
    sgd,
    H,
    S,
    scale,
    D: tl.constexpr,
    BS: tl.constexpr,
):
    q = _tile(q_ptr, H * S * D, S * D, D, 1, H, S, D, BS)
    k = _tile(k_ptr, H * S * D, S * D, D, 1, H, S, D, BS)
    v = _tile(v_ptr, H * S * D, S * D, D, 1, H, S, D, BS)
    o = _tile(o_ptr, sob, soh, sos, sod, H, S, D, BS)
    do_q = _tile(do_ptr, sgb, sgh, sgs, sgd, H, S, D, BS)
    do_kv = _tile(do_ptr, sob, soh, sos, sod, H, S, D, BS)
    _bwd(q, k, v, o, do_q, do_kv, dq_ptr, dk_ptr, dv_ptr, S, scale, D, BS)


def _launch(kernel, q, k, v, do):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    b, h, s, d = q.shape
    scale = d**-0.5
    o = torch.softmax(q @ k.transpose(-1, -2) * scale, -1) @ v  # what the forward saved
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    kernel[(b * h,)](q, k, v, o, do, dq, dk, dv, *o.stride(), *do.stride(), h, s, scale, D=d, BS=16)
    return dq, dk, dv


def good(q, k, v, do):
    return _launch(attn_bwd_good, q, k, v, do)


def reference(q, k, v, do):
    a, b, c = (t.double().requires_grad_() for t in (q, k, v))
    o = torch.softmax(a @ b.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ c
    return torch.autograd.grad(o, (a, b, c), do.double())


attention_backward = Contract(
    kernel=good,
    oracles=[reference],
    dims={"b": sizes(1, 2), "h": sizes(1, 4), "s": sizes(1, 16), "d": Choice(16)},
    args={
        "q": Tensor("b h s d"),
        "k": Tensor("b h s d"),
        "v": Tensor("b h s d"),
        "do": Tensor("b h s d", layouts=ANY),
    },
    outputs={"dq": Tensor("b h s d"), "dk": Tensor("b h s d"), "dv": Tensor("b h s d")},
)


@attention_backward.fault(expects=("ignores_layout",))
def bad(q, k, v, do):
    """The second phase reads the upstream gradient with the strides of the output."""
    return _launch(attn_bwd_bad, q, k, v, do)
