"""The gradients of the heads: what each row passes on, then sums over batch and horizons.

No atomics: every order is fixed by the sizes, so results are bitwise repeatable.
"""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._elementwise import sigmoid
from trivet.impl.heads.forward import Sizes, check_heads, check_packed, heads_logits, hidden, inner
from trivet.impl.heads.packed import heads_scatter
from trivet.impl.heads.reductions import Local, packed_skip_gradient, reduce_gradients
from trivet.impl.routing import RoutingRecord


@triton.jit(do_not_specialize=["B"])
def _local_kernel(
    g_logits: tl.tensor,
    g_p: tl.tensor,
    logits: tl.tensor,
    s: tl.tensor,
    w1: tl.tensor,
    b1: tl.tensor,
    w2: tl.tensor,
    b2: tl.tensor,
    w_gate: tl.tensor,
    bg: tl.tensor,
    w_main: tl.tensor,
    bm: tl.tensor,
    g: tl.tensor,
    dgate: tl.tensor,
    dmain: tl.tensor,
    z: tl.tensor,
    e: tl.tensor,
    de: tl.tensor,
    B: int,
    H: int,
    N: int,
    E: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_H: tl.constexpr,
) -> None:
    """Of these rows and one horizon: g, dgate, dmain (B, N), and z, e, de (B, N, E)."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    horizon = tl.program_id(1)
    place = row * N + horizon
    gates = tl.zeros([BLOCK_ROWS, BLOCK_E], tl.float32)
    mains = tl.zeros([BLOCK_ROWS, BLOCK_E], tl.float32)
    for start in range(0, E, BLOCK_E):
        unit = start + tl.arange(0, BLOCK_E)
        live = (row < B)[:, None] & (unit < E)[None, :]
        cell = place[:, None] * E + unit[None, :]
        below = hidden(s, w1, b1, row, unit, horizon, B, H, E, BLOCK_H)
        tl.store(z + cell, below, mask=live)
        value = inner(s, w1, b1, w2, b2, row, unit, horizon, B, H, E, BLOCK_H)
        tl.store(e + cell, value, mask=live)
        gates += value * tl.load(w_gate + horizon * E + unit, mask=unit < E, other=0.0)[None, :]
        mains += value * tl.load(w_main + horizon * E + unit, mask=unit < E, other=0.0)[None, :]
    opening = tl.sum(gates, axis=1) + tl.load(bg + horizon)
    main = tl.sum(mains, axis=1) + tl.load(bm + horizon)
    logit = tl.load(logits + place, mask=row < B, other=0.0)
    slope = tl.load(g_p + place, mask=row < B, other=0.0) * sigmoid(logit) * sigmoid(-logit)
    slope += tl.load(g_logits + place, mask=row < B, other=0.0)
    to_main = slope * sigmoid(opening)
    to_gate = to_main * main * sigmoid(-opening)
    tl.store(g + place, slope, mask=row < B)
    tl.store(dmain + place, to_main, mask=row < B)
    tl.store(dgate + place, to_gate, mask=row < B)
    for start in range(0, E, BLOCK_E):
        unit = start + tl.arange(0, BLOCK_E)
        main_weight = tl.load(w_main + horizon * E + unit, mask=unit < E, other=0.0)[None, :]
        gate_weight = tl.load(w_gate + horizon * E + unit, mask=unit < E, other=0.0)[None, :]
        passed = to_main[:, None] * main_weight + to_gate[:, None] * gate_weight
        cell = place[:, None] * E + unit[None, :]
        tl.store(de + cell, passed, mask=(row < B)[:, None] & (unit < E)[None, :])


@triton.jit(do_not_specialize=["B"])
def _hidden_slopes_kernel(
    z: tl.tensor,
    de: tl.tensor,
    w2: tl.tensor,
    dz: tl.tensor,
    B: int,
    N: int,
    E: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_E: tl.constexpr,
) -> None:
    """dz = (W2^T de) ELU'(z) of these rows, one horizon and a block of units."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    horizon = tl.program_id(1)
    unit = tl.program_id(2) * BLOCK_E + tl.arange(0, BLOCK_E)
    place = (row * N + horizon)[:, None] * E
    total = tl.zeros([BLOCK_ROWS, BLOCK_E], tl.float32)
    for start in range(0, E, BLOCK_E):
        above = start + tl.arange(0, BLOCK_E)
        passed = tl.load(
            de + place + above[None, :], mask=(row < B)[:, None] & (above < E)[None, :], other=0.0
        )
        weight = tl.load(
            w2 + (horizon.to(tl.int64) * E + above)[:, None] * E + unit[None, :],
            mask=(above < E)[:, None] & (unit < E)[None, :],
            other=0.0,
        )
        total = tl.dot(passed, weight, total, input_precision="ieee")
    live = (row < B)[:, None] & (unit < E)[None, :]
    below = tl.load(z + place + unit[None, :], mask=live, other=0.0)
    slope = tl.where(below > 0.0, 1.0, tl.exp(tl.minimum(below, 0.0)))
    tl.store(dz + place + unit[None, :], total * slope, mask=live)


def heads_backward(
    g_logits: torch.Tensor,
    g_p: torch.Tensor,
    s: torch.Tensor,
    W1: torch.Tensor,
    b1: torch.Tensor,
    W2: torch.Tensor,
    b2: torch.Tensor,
    w_gate: torch.Tensor,
    bg: torch.Tensor,
    w_main: torch.Tensor,
    bm: torch.Tensor,
    w_skip: torch.Tensor,
    *,
    block_rows: int = 16,
    block_e: int = 32,
    block_h: int = 32,
    parts: int = 16,
) -> dict[str, torch.Tensor]:
    """Return the gradients of `heads` from g_logits and g_p (B, N), by argument name.

    Shapes, dtypes, block sizes and errors as for `heads`. The batch is summed in at most `parts`
    parts. Ten launches: the logits, what each row passes on (2), the parts of five sums over the
    batch, their sum, and s.
    """
    sizes = check_heads(s, W1, b1, W2, b2, w_gate, bg, w_main, bm, block_rows, block_e, block_h)
    arguments = _checks.Arguments(N=sizes.N, H=sizes.H, B=sizes.B)
    arguments.device = s.device
    arguments.tensor("w_skip", w_skip, "N H", torch.float32)
    _check_cotangents(arguments, g_logits, g_p, parts)
    blocks = (block_rows, block_e, block_h)
    weights = (W1, b1, W2, b2, w_gate, bg, w_main, bm)
    logits = heads_logits(s, (*weights, w_skip, None, None), sizes, 0, blocks)
    local = _local(g_logits, g_p, logits, s, weights, sizes, blocks)
    return reduce_gradients(local, s, W1, w_skip, sizes, blocks, parts)


def heads_block_diagonal_backward(
    g_logits: torch.Tensor,
    g_p: torch.Tensor,
    s: torch.Tensor,
    W1: torch.Tensor,
    b1: torch.Tensor,
    W2: torch.Tensor,
    b2: torch.Tensor,
    w_gate: torch.Tensor,
    bg: torch.Tensor,
    w_main: torch.Tensor,
    bm: torch.Tensor,
    w_compact: torch.Tensor,
    table: torch.Tensor | RoutingRecord,
    *,
    block_rows: int = 16,
    block_e: int = 32,
    block_h: int = 32,
    parts: int = 16,
) -> dict[str, torch.Tensor]:
    """Return the gradients of `heads_block_diagonal`, as `heads_backward`.

    That of w_compact (H,) is packed as it is; `heads_scatter` brings it to the places of w_skip.
    What no bucket owns has gradient +0.0.
    """
    sizes = check_heads(s, W1, b1, W2, b2, w_gate, bg, w_main, bm, block_rows, block_e, block_h)
    slots, offset = check_packed(w_compact, table, sizes, s.device)
    arguments = _checks.Arguments(N=sizes.N, B=sizes.B)
    arguments.device = s.device
    _check_cotangents(arguments, g_logits, g_p, parts)
    blocks = (block_rows, block_e, block_h)
    weights = (W1, b1, W2, b2, w_gate, bg, w_main, bm)
    packed = (*weights, w_compact, slots, offset)
    logits = heads_logits(s, packed, sizes, slots.shape[1], blocks)
    local = _local(g_logits, g_p, logits, s, weights, sizes, blocks)
    w_skip = heads_scatter(w_compact, slots)
    gradients = reduce_gradients(local, s, W1, w_skip, sizes, blocks, parts, skip=False)
    gradients["w_compact"] = packed_skip_gradient(local.g, s, slots, offset, blocks, parts)
    return gradients


def _check_cotangents(
    arguments: _checks.Arguments, g_logits: torch.Tensor, g_p: torch.Tensor, parts: int
) -> None:
    arguments.tensor("g_logits", g_logits, "B N", torch.float32)
    arguments.tensor("g_p", g_p, "B N", torch.float32)
    _checks.count("parts", parts, 1)


def _local(
    g_logits: torch.Tensor,
    g_p: torch.Tensor,
    logits: torch.Tensor,
    s: torch.Tensor,
    weights: tuple[torch.Tensor, ...],
    sizes: Sizes,
    blocks: tuple[int, int, int],
) -> Local:
    """What each row passes on, in two launches."""
    B, H, N, E = sizes.B, sizes.H, sizes.N, sizes.E
    local = Local.empty(s, sizes)
    if B and N:
        grid = (triton.cdiv(B, blocks[0]), N)
        _local_kernel[grid](
            g_logits, g_p, logits, s, *weights, local.g, local.dgate, local.dmain,
            local.z, local.e, local.de, B, H, N, E, *blocks, num_warps=4,
        )  # fmt: skip
        if E:
            _hidden_slopes_kernel[(*grid, triton.cdiv(E, blocks[1]))](
                local.z, local.de, weights[2], local.dz, B, N, E, *blocks[:2], num_warps=4
            )
    return local
