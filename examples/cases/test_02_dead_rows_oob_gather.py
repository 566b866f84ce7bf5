"""A gather of per-level scales is masked by causality only: dead rows are read past the end.

In a partial last chunk the rows >= T are killed later by a zero, but the gather address uses the
raw row, so it reads beyond the (T, levels) tensor; silent unless the memory behind is unmapped or
non-finite.

Reported as fla-org/flash-linear-attention#1142 (PR #1143).
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import Contract, Tensor, integers, sizes

BT = 16


@triton.jit
def _mix(X, L, O, i_t, row, lvl, keep, live, T, NL, BT: tl.constexpr):
    t = i_t * BT + tl.arange(0, BT)
    w = tl.load(L + row[:, None] * NL + lvl, mask=keep, other=0.0)
    x = tl.load(X + t, mask=live, other=0.0)
    w = tl.where(keep & live[:, None] & live[None, :], w, 0.0)
    tl.store(O + t, tl.sum(w * x[None, :], axis=1), mask=live)


@triton.jit
def level_mix_a(X, L, LV, O, T, NL, BT: tl.constexpr):
    i_t = tl.program_id(0)
    i = tl.arange(0, BT)
    live = i_t * BT + i < T
    lvl = tl.load(LV + i[:, None] * BT + i[None, :])
    row = tl.minimum(i_t * BT + i, T - 1)
    _mix(X, L, O, i_t, row, lvl, i[:, None] >= i[None, :], live, T, NL, BT)


@triton.jit
def level_mix_b(X, L, LV, O, T, NL, BT: tl.constexpr):
    i_t = tl.program_id(0)
    i = tl.arange(0, BT)
    live = i_t * BT + i < T
    lvl = tl.load(LV + i[:, None] * BT + i[None, :])
    row = i_t * BT + i
    _mix(X, L, O, i_t, row, lvl, i[:, None] >= i[None, :], live, T, NL, BT)


def _run(kern, x, scales, levels):
    T, NL = scales.shape
    o = torch.empty(T)
    kern[(triton.cdiv(T, BT),)](x, scales, levels, o, T, NL, BT=BT)
    return o


def good(x, scales, levels):
    return _run(level_mix_a, x, scales, levels)


def reference(x, scales, levels):
    out = torch.zeros(x.numel(), dtype=torch.float64)
    for t in range(x.numel()):
        c = t // BT * BT
        for j in range(c, t + 1):
            out[t] += scales[t, levels[t - c, j - c]].double() * x[j].double()
    return out


level_mix = Contract(
    kernel=good,
    oracles=[reference],
    dims={"T": sizes(1, 64), "NL": sizes(5, 8)},
    args={
        "x": Tensor("T"),
        "scales": Tensor("T NL"),
        "levels": Tensor("16 16", dtypes=("int32",), domain=integers(0, "NL-1")),
    },
)


@level_mix.fault(expects=("stays_in_bounds",))
def bad(x, scales, levels):
    """The dead rows of a partial last chunk gather past the end."""
    return _run(level_mix_b, x, scales, levels)
