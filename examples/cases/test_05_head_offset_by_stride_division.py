"""Row index derived by dividing strides collapses every head to head 0 for transposed layouts.

(z*stride_z + h*stride_h)//stride_m is the flattened row only for contiguous [Z,H,N,D]; for the
[Z,N,H,D].transpose view stride_h < stride_m, so the head term floors to zero.

Reported as BobMcDear/attorch#14.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import UNIT_LAST, Contract, Tensor, sizes


@triton.jit
def _one_head(QP, KP, VP, OP, sm, om, N, D, scale, BN: tl.constexpr, BD: tl.constexpr):
    i = tl.arange(0, BN)
    d = tl.arange(0, BD)
    m = (i < N)[:, None] & (d < D)[None, :]
    off = i[:, None] * sm + d[None, :]
    q = tl.load(QP + off, mask=m, other=0.0)
    k = tl.load(KP + off, mask=m, other=0.0)
    v = tl.load(VP + off, mask=m, other=0.0)
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    s = tl.where((i < N)[None, :], s, float("-inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    o = tl.dot(p, v, input_precision="ieee") / tl.sum(p, axis=1)[:, None]
    tl.store(OP + i[:, None] * om + d[None, :], o, mask=m)


@triton.jit
def mha_kernel_a(
    Q, K, V, O, sz, sh, sm, oz, oh, om, H, N, D, scale, BN: tl.constexpr, BD: tl.constexpr
):
    z = tl.program_id(0) // H
    h = tl.program_id(0) % H
    off = z * sz + h * sh
    _one_head(Q + off, K + off, V + off, O + z * oz + h * oh, sm, om, N, D, scale, BN, BD)


@triton.jit
def mha_kernel_b(
    Q, K, V, O, sz, sh, sm, oz, oh, om, H, N, D, scale, BN: tl.constexpr, BD: tl.constexpr
):
    z = tl.program_id(0) // H
    h = tl.program_id(0) % H
    row = z * (sz // sm) + h * sh // sm
    off = row * sm
    _one_head(Q + off, K + off, V + off, O + z * oz + h * oh, sm, om, N, D, scale, BN, BD)


def _run(kern, q, k, v):
    Z, H, N, D = q.shape
    o = torch.empty(Z, H, N, D)
    kern[(Z * H,)](
        q,
        k,
        v,
        o,
        *q.stride()[:3],
        *o.stride()[:3],
        H,
        N,
        D,
        D**-0.5,
        BN=max(16, triton.next_power_of_2(N)),
        BD=max(16, triton.next_power_of_2(D)),
    )
    return o


def good(q, k, v):
    return _run(mha_kernel_a, q, k, v)


def reference(q, k, v):
    q, k, v = q.double(), k.double(), v.double()
    return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


attention = Contract(
    kernel=good,
    oracles=[reference],
    dims={"Z": sizes(1, 3), "H": sizes(1, 4), "N": sizes(1, 16), "D": sizes(1, 16)},
    args={
        "q": Tensor("Z H N D", layouts=UNIT_LAST),
        "k": Tensor("Z H N D", layouts="q"),
        "v": Tensor("Z H N D", layouts="q"),
    },
)


@attention.fault(expects=("ignores_layout",))
def bad(q, k, v):
    """The row is found by dividing strides, which only a dense layout allows."""
    return _run(mha_kernel_b, q, k, v)
