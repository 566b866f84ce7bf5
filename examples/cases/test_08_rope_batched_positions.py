"""RoPE kernel ignores the batch index of cos/sin.

cos/sin rows are addressed by sequence position only; correct when the tables are (1,T,D) but
wrong when position_ids are per-sample and the tables are (B,T,D): every sample uses the tables of
sample 0.

Reported as linkedin/Liger-Kernel#477.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import numpy as np
import torch
import triton
import triton.language as tl

from trivet import Choice, Contract, Tensor, reals, sizes


@triton.jit
def _rotate(QP, CP, SP, H, D, BH: tl.constexpr, BD: tl.constexpr):
    half = D // 2
    h = tl.arange(0, BH)
    d = tl.arange(0, BD)
    md = d < half
    m = (h < H)[:, None] & md[None, :]
    c = tl.load(CP + d, mask=md, other=0.0)[None, :]
    s = tl.load(SP + d, mask=md, other=0.0)[None, :]
    o1 = h[:, None] * D + d[None, :]
    a = tl.load(QP + o1, mask=m, other=0.0)
    b = tl.load(QP + o1 + half, mask=m, other=0.0)
    tl.store(QP + o1, a * c - b * s, mask=m)
    tl.store(QP + o1 + half, b * c + a * s, mask=m)


@triton.jit
def rope_kernel_a(Q, COS, SIN, T, H, D, cos_bs, BH: tl.constexpr, BD: tl.constexpr):
    pid = tl.program_id(0)
    t_off = tl.where(cos_bs == 1, pid % T, pid) * D
    _rotate(Q + pid * H * D, COS + t_off, SIN + t_off, H, D, BH, BD)


@triton.jit
def rope_kernel_b(Q, COS, SIN, T, H, D, cos_bs, BH: tl.constexpr, BD: tl.constexpr):
    pid = tl.program_id(0)
    t_off = (pid % T) * D
    _rotate(Q + pid * H * D, COS + t_off, SIN + t_off, H, D, BH, BD)


def _run(kern, q, cos, sin):
    B, T, H, D = q.shape
    q = q.contiguous().clone()
    kern[(B * T,)](
        q,
        cos.contiguous(),
        sin.contiguous(),
        T,
        H,
        D,
        cos.shape[0],
        BH=triton.next_power_of_2(H),
        BD=triton.next_power_of_2(D // 2),
    )
    return q


def good(q, cos, sin):
    return _run(rope_kernel_a, q, cos, sin)


def reference(q, cos, sin):
    q = q.double()
    half = q.shape[-1] // 2
    rot = torch.cat([-q[..., half:], q[..., :half]], -1)
    return q * cos.double()[:, :, None] + rot * sin.double()[:, :, None]


def same_halves(table):
    half = table[..., : table.shape[-1] // 2]
    return np.concatenate([half, half], axis=-1)


angles = reals(-1, 1).map(same_halves)
rope = Contract(
    kernel=good,
    oracles=[reference],
    dims={
        "B": sizes(1, 4),
        "T": sizes(1, 16),
        "H": sizes(1, 8),
        "half": sizes(1, 16),
        "D": "2 * half",
        "BC": Choice(1, "B"),
    },
    args={
        "q": Tensor("B T H D"),
        "cos": Tensor("BC T D", domain=angles),
        "sin": Tensor("BC T D", domain=angles),
    },
)


@rope.fault(expects=("matches_oracle",))
def bad(q, cos, sin):
    """Every sample is rotated by the tables of the first."""
    return _run(rope_kernel_b, q, cos, sin)
