"""A weight-quantised GEMM reads one scale row per K tile even when the tile spans several groups.

Scales are loaded once per BLOCK_K tile at k//group_size; launcher does not clamp BLOCK_K to
group_size, so with small groups the tail rows of the tile are dequantised with the first group's
scale.

Reported as vllm-project/vllm#39705 (also #52576).
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import Choice, Contract, Tensor, sizes


@triton.jit
def wq_gemm_kernel(
    X, QW, S, O, M, N, K, group, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        x = tl.load(
            X + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0
        )
        q = tl.load(
            QW + rk[:, None] * N + rn[None, :], mask=(rk < K)[:, None] & (rn < N)[None, :], other=0
        )
        s = tl.load(S + (k0 // group) * N + rn, mask=rn < N, other=0.0)
        acc += tl.dot(x, q.to(tl.float32) * s[None, :], input_precision="ieee")
    tl.store(O + rm[:, None] * N + rn[None, :], acc, mask=(rm < M)[:, None] & (rn < N)[None, :])


def _run(x, qw, scales, group, BK):
    M, K = x.shape
    N = qw.shape[1]
    o = torch.empty(M, N)
    BM, BN = 16, 32
    wq_gemm_kernel[(triton.cdiv(M, BM), triton.cdiv(N, BN))](
        x, qw, scales, o, M, N, K, group, BM=BM, BN=BN, BK=BK
    )
    return o


def good(x, qw, scales, group):
    return _run(x, qw, scales, group, min(64, group))


def reference(x, qw, scales, group):
    w = qw.double() * scales.double().repeat_interleave(group, 0)
    return x.double() @ w


quantised_matmul = Contract(
    kernel=good,
    oracles=[reference],
    dims={
        "M": sizes(1, 16),
        "N": sizes(1, 64),
        "group": Choice(16, 32, 64, 128),
        "groups": sizes(1, "128 // group"),
        "K": "groups * group",
    },
    args={
        "x": Tensor("M K"),
        "qw": Tensor("K N", dtypes=("int8",)),
        "scales": Tensor("groups N"),
    },
)


@quantised_matmul.fault(expects=("matches_oracle",))
def bad(x, qw, scales, group):
    """A tile of 64 rows takes its scales from the first of its groups."""
    return _run(x, qw, scales, group, 64)
