"""Gated residual heads, forward: one launch over blocks of rows and horizons."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._elementwise import expm1, sigmoid
from trivet.impl.heads.packed import slots_and_offsets
from trivet.impl.routing import RoutingRecord

SMALLEST_BLOCK = 16


@dataclass(frozen=True)
class Sizes:
    """Rows, channels, horizons and inner width of one call."""

    B: int
    H: int
    N: int
    E: int


@triton.jit
def elu(x: tl.tensor) -> tl.tensor:
    """x where positive, exp(x) - 1 elsewhere."""
    return tl.where(x > 0.0, x, expm1(tl.minimum(x, 0.0)))


@triton.jit
def hidden(
    s: tl.tensor,
    w1: tl.tensor,
    b1: tl.tensor,
    row: tl.tensor,
    unit: tl.tensor,
    horizon: tl.tensor,
    B: int,
    H: int,
    E: int,
    BLOCK_H: tl.constexpr,
) -> tl.tensor:
    """W1 s + b1 (rows, units) of one horizon; 0 at units from E on."""
    total = tl.zeros([row.shape[0], unit.shape[0]], tl.float32)
    for start in range(0, H, BLOCK_H):
        channel = start + tl.arange(0, BLOCK_H)
        state = tl.load(
            s + row[:, None] * H + channel[None, :],
            mask=(row < B)[:, None] & (channel < H)[None, :],
            other=0.0,
        )
        place = (horizon.to(tl.int64) * E + unit)[None, :] * H + channel[:, None]
        weight = tl.load(w1 + place, mask=(unit < E)[None, :] & (channel < H)[:, None], other=0.0)
        total = tl.dot(state, weight, total, input_precision="ieee")
    return total + tl.load(b1 + horizon * E + unit, mask=unit < E, other=0.0)[None, :]


@triton.jit
def inner(
    s: tl.tensor,
    w1: tl.tensor,
    b1: tl.tensor,
    w2: tl.tensor,
    b2: tl.tensor,
    row: tl.tensor,
    unit: tl.tensor,
    horizon: tl.tensor,
    B: int,
    H: int,
    E: int,
    BLOCK_H: tl.constexpr,
) -> tl.tensor:
    """W2 ELU(W1 s + b1) + b2 (rows, units); the hidden layer anew for each block of units."""
    total = tl.zeros([row.shape[0], unit.shape[0]], tl.float32)
    for start in range(0, E, unit.shape[0]):
        below = start + tl.arange(0, unit.shape[0])
        activity = elu(hidden(s, w1, b1, row, below, horizon, B, H, E, BLOCK_H))
        place = (horizon.to(tl.int64) * E + unit)[None, :] * E + below[:, None]
        weight = tl.load(w2 + place, mask=(unit < E)[None, :] & (below < E)[:, None], other=0.0)
        total = tl.dot(activity, weight, total, input_precision="ieee")
    return total + tl.load(b2 + horizon * E + unit, mask=unit < E, other=0.0)[None, :]


@triton.jit
def _full_skip(
    s: tl.tensor,
    w_skip: tl.tensor,
    row: tl.tensor,
    horizon: tl.tensor,
    B: int,
    H: int,
    BLOCK_H: tl.constexpr,
) -> tl.tensor:
    """w_skip_k . s (rows,)."""
    products = tl.zeros([row.shape[0], BLOCK_H], tl.float32)
    for start in range(0, H, BLOCK_H):
        channel = start + tl.arange(0, BLOCK_H)
        state = tl.load(
            s + row[:, None] * H + channel[None, :],
            mask=(row < B)[:, None] & (channel < H)[None, :],
            other=0.0,
        )
        weight = tl.load(w_skip + horizon * H + channel, mask=channel < H, other=0.0)
        products += state * weight[None, :]
    return tl.sum(products, axis=1)


@triton.jit
def _packed_skip(
    s: tl.tensor,
    w_compact: tl.tensor,
    table: tl.tensor,
    offset: tl.tensor,
    row: tl.tensor,
    horizon: tl.tensor,
    B: int,
    H: int,
    M: int,
    BLOCK_H: tl.constexpr,
) -> tl.tensor:
    """The own channels' part of it, weights in table order; other channels are never read."""
    products = tl.zeros([row.shape[0], BLOCK_H], tl.float32)
    packed = tl.load(offset + horizon)
    for start in range(0, M, BLOCK_H):
        slot = start + tl.arange(0, BLOCK_H)
        channel = tl.load(table + horizon * M + slot, mask=slot < M, other=-1)
        live = channel >= 0
        rank = packed + tl.cumsum(live.to(tl.int32), axis=0) - 1
        weight = tl.load(w_compact + rank, mask=live, other=0.0)
        state = tl.load(
            s + row[:, None] * H + channel[None, :],
            mask=(row < B)[:, None] & live[None, :],
            other=0.0,
        )
        products += state * weight[None, :]
        packed += tl.sum(live.to(tl.int32), axis=0)
    return tl.sum(products, axis=1)


@triton.jit(do_not_specialize=["B"])
def _heads_kernel(
    s: tl.tensor,
    w1: tl.tensor,
    b1: tl.tensor,
    w2: tl.tensor,
    b2: tl.tensor,
    w_gate: tl.tensor,
    bg: tl.tensor,
    w_main: tl.tensor,
    bm: tl.tensor,
    skip_weights: tl.tensor,
    table: tl.tensor | None,
    offset: tl.tensor | None,
    logits: tl.tensor,
    p: tl.tensor,
    B: int,
    H: int,
    N: int,
    E: int,
    M: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_H: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    horizon = tl.program_id(1)
    gates = tl.zeros([BLOCK_ROWS, BLOCK_E], tl.float32)
    mains = tl.zeros([BLOCK_ROWS, BLOCK_E], tl.float32)
    for start in range(0, E, BLOCK_E):
        unit = start + tl.arange(0, BLOCK_E)
        value = inner(s, w1, b1, w2, b2, row, unit, horizon, B, H, E, BLOCK_H)
        gates += value * tl.load(w_gate + horizon * E + unit, mask=unit < E, other=0.0)[None, :]
        mains += value * tl.load(w_main + horizon * E + unit, mask=unit < E, other=0.0)[None, :]
    gate = sigmoid(tl.sum(gates, axis=1) + tl.load(bg + horizon))
    main = tl.sum(mains, axis=1) + tl.load(bm + horizon)
    if table is None:
        skip = _full_skip(s, skip_weights, row, horizon, B, H, BLOCK_H)
    else:
        skip = _packed_skip(s, skip_weights, table, offset, row, horizon, B, H, M, BLOCK_H)
    logit = skip + gate * main
    place = row * N + horizon
    tl.store(logits + place, logit, mask=row < B)
    tl.store(p + place, sigmoid(logit), mask=row < B)


def heads(
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
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits and p = sigmoid(logits), both (B, N), of states s (B, H).

    e = W2 ELU(W1 s + b1) + b2 (N, E), logit = w_skip . s + sigmoid(w_gate . e + bg)
    (w_main . e + bm), horizon by horizon. W1 (N, E, H), W2 (N, E, E), b1, b2, w_gate, w_main
    (N, E), bg, bm (N,), w_skip (N, H), all float32. One launch; the order of each sum depends on
    block_e and block_h alone. Raises TypeError or ValueError naming the argument.
    """
    sizes = check_heads(s, W1, b1, W2, b2, w_gate, bg, w_main, bm, block_rows, block_e, block_h)
    arguments = _checks.Arguments(N=sizes.N, H=sizes.H)
    arguments.device = s.device
    arguments.tensor("w_skip", w_skip, "N H", torch.float32)
    weights = (W1, b1, W2, b2, w_gate, bg, w_main, bm, w_skip, None, None)
    return _launch(s, weights, sizes, 0, (block_rows, block_e, block_h))


def heads_block_diagonal(
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
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what `heads` does, the skip term from each bucket's own channels alone.

    w_compact (H,) float32 holds bucket k's weights in the order of row k of table (N, M) int32,
    packed bucket after bucket, as `routing.heads_compact` gives them; other channels of s are
    not read for the skip term. A routing record in place of the table is checked first. One
    launch. Raises as `heads`, and ValueError for a table that names a channel twice.
    """
    sizes = check_heads(s, W1, b1, W2, b2, w_gate, bg, w_main, bm, block_rows, block_e, block_h)
    slots, offset = check_packed(w_compact, table, sizes, s.device)
    weights = (W1, b1, W2, b2, w_gate, bg, w_main, bm, w_compact, slots, offset)
    return _launch(s, weights, sizes, slots.shape[1], (block_rows, block_e, block_h))


def heads_logits(
    s: torch.Tensor,
    weights: tuple[torch.Tensor | None, ...],
    sizes: Sizes,
    M: int,
    blocks: tuple[int, int, int],
) -> torch.Tensor:
    """Return the logits (B, N) alone; all arguments have been checked."""
    return _launch(s, weights, sizes, M, blocks)[0]


def _launch(
    s: torch.Tensor,
    weights: tuple[torch.Tensor | None, ...],
    sizes: Sizes,
    M: int,
    blocks: tuple[int, int, int],
) -> tuple[torch.Tensor, torch.Tensor]:
    B, H, N, E = sizes.B, sizes.H, sizes.N, sizes.E
    logits, p = s.new_empty((B, N)), s.new_empty((B, N))
    if B and N:
        grid = (triton.cdiv(B, blocks[0]), N)
        _heads_kernel[grid](s, *weights, logits, p, B, H, N, E, M, *blocks, num_warps=4)
    return logits, p


def check_heads(
    s: torch.Tensor,
    W1: torch.Tensor,
    b1: torch.Tensor,
    W2: torch.Tensor,
    b2: torch.Tensor,
    w_gate: torch.Tensor,
    bg: torch.Tensor,
    w_main: torch.Tensor,
    bm: torch.Tensor,
    block_rows: int,
    block_e: int,
    block_h: int,
) -> Sizes:
    """Check what forward and backward share; returns the sizes."""
    arguments = _checks.Arguments()
    given = {"s": s, "W1": W1, "b1": b1, "W2": W2, "b2": b2}
    given |= {"w_gate": w_gate, "bg": bg, "w_main": w_main, "bm": bm}
    shapes = ("B H", "N E H", "N E", "N E E", "N E", "N E", "N", "N E", "N")
    for (name, tensor), dims in zip(given.items(), shapes, strict=True):
        arguments.tensor(name, tensor, dims, torch.float32)
    blocks = {"block_rows": block_rows, "block_e": block_e, "block_h": block_h}
    for name, size in blocks.items():
        _checks.blocks(**{name: size})
        _checks.count(name, size, SMALLEST_BLOCK)
    return Sizes(**{dim: arguments.sizes[dim] for dim in "BHNE"})


def check_packed(
    w_compact: torch.Tensor,
    table: torch.Tensor | RoutingRecord,
    sizes: Sizes,
    device: torch.device,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Check the packed weights and their table; returns table (N, M) and offset (N,)."""
    arguments = _checks.Arguments(N=sizes.N, H=sizes.H)
    arguments.device = device
    arguments.tensor("w_compact", w_compact, "H", torch.float32)
    slots, offset = slots_and_offsets(table, sizes.H, device)
    arguments.tensor("table", slots, "N M", torch.int32)
    return slots, offset
