"""Varlen kernel leaves rows beyond cu_seqlens[-1] unwritten in an empty_like output.

Packed buffers are padded (T > cu_seqlens[-1]); programs only cover real chunks, so trailing rows
of the output keep allocator garbage that later reductions over T pick up.

Reported as fla-org/flash-linear-attention#892; cf. Dao-AILab/flash-attention#41.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import Contract, Tensor, offsets, sizes

BT = 16


@triton.jit
def varlen_cumsum_kernel(X, O, CU, IDX, D, BT: tl.constexpr, BD: tl.constexpr):
    pid = tl.program_id(0)
    n = tl.load(IDX + 2 * pid)
    c = tl.load(IDX + 2 * pid + 1)
    bos = tl.load(CU + n)
    T = tl.load(CU + n + 1) - bos
    i = tl.arange(0, BT)
    d = tl.arange(0, BD)
    t = c * BT + i
    m = (t < T)[:, None] & (d < D)[None, :]
    off = (bos + t)[:, None] * D + d[None, :]
    x = tl.load(X + off, mask=m, other=0.0)
    tri = tl.where(i[:, None] >= i[None, :], 1.0, 0.0)
    tl.store(O + off, tl.dot(tri, x, input_precision="ieee"), mask=m)


def _launch(x, cu_seqlens, o):
    idx = []
    cu = cu_seqlens.tolist()
    for n in range(len(cu) - 1):
        idx += [[n, c] for c in range(triton.cdiv(cu[n + 1] - cu[n], BT))]
    if idx:
        varlen_cumsum_kernel[(len(idx),)](
            x,
            o,
            cu_seqlens,
            torch.tensor(idx, dtype=torch.int32),
            x.shape[1],
            BT=BT,
            BD=max(16, triton.next_power_of_2(x.shape[1])),
        )
    return o


def good(x, cu_seqlens):
    return _launch(x, cu_seqlens, torch.zeros_like(x))


def reference(x, cu_seqlens):
    o = torch.zeros(x.shape, dtype=torch.float64)
    cu = cu_seqlens.tolist()
    for a, b in zip(cu, cu[1:]):
        for s in range(a, b, BT):
            e = min(s + BT, b)
            o[s:e] = x[s:e].double().cumsum(0)
    return o


packed_cumsum = Contract(
    kernel=good,
    oracles=[reference],
    dims={"T": sizes(1, 96), "D": sizes(1, 16), "N": sizes(1, 6)},
    args={
        "x": Tensor("T D"),
        "cu_seqlens": Tensor("N+1", dtypes=("int32",), domain=offsets("T", full=False)),
    },
)


@packed_cumsum.fault(expects=("writes_every_element",))
def bad(x, cu_seqlens):
    """Rows past the last offset keep what the allocator left there."""
    return _launch(x, cu_seqlens, torch.empty_like(x))
