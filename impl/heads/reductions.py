"""Sums behind the gradients of the heads: over the batch in two stages, over the horizons."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from trivet.impl._sums import parts_of, sum_parts
from trivet.impl.heads.forward import Sizes, elu


@dataclass(frozen=True)
class Local:
    """What each row passes on to each horizon: gradients to logits and layers.

    g, dgate, dmain (B, N); z, e and the gradients to them, dz and de (B, N, E).
    """

    g: torch.Tensor
    dgate: torch.Tensor
    dmain: torch.Tensor
    z: torch.Tensor
    e: torch.Tensor
    dz: torch.Tensor
    de: torch.Tensor

    @classmethod
    def empty(cls, like: torch.Tensor, sizes: Sizes) -> "Local":
        """Memory for all of them."""
        narrow = [like.new_empty((sizes.B, sizes.N)) for _ in range(3)]
        wide = [like.new_empty((sizes.B, sizes.N, sizes.E)) for _ in range(4)]
        return cls(*narrow, *wide)


@triton.jit(do_not_specialize=["B", "rows_per_part"])
def _outer_partials_kernel(
    left: tl.tensor,
    right: tl.tensor,
    partials: tl.tensor,
    bias_partials: tl.tensor | None,
    B: int,
    I: int,  # noqa: E741
    J: int,
    left_row: tl.int64,
    right_row: tl.int64,
    right_horizon: tl.int64,
    part_size: tl.int64,
    rows_per_part: int,
    ACTIVATE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_J: tl.constexpr,
) -> None:
    """One part's sum over rows of left[b, k, i] right[b, k, j], and of left[b, k, i]."""
    tiles = tl.maximum(tl.cdiv(J, BLOCK_J), 1)
    j_tile = tl.program_id(0) % tiles
    i = (tl.program_id(0) // tiles) * BLOCK_I + tl.arange(0, BLOCK_I)
    j = j_tile * BLOCK_J + tl.arange(0, BLOCK_J)
    horizon = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2).to(tl.int64)
    first = part * rows_per_part
    last = tl.minimum(first + rows_per_part, B)
    total = tl.zeros([BLOCK_I, BLOCK_J], tl.float32)
    column = tl.zeros([BLOCK_I, BLOCK_ROWS], tl.float32)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)
        one = tl.load(
            left + row[None, :] * left_row + horizon * I + i[:, None],
            mask=(row < last)[None, :] & (i < I)[:, None],
            other=0.0,
        )
        two = tl.load(
            right + row[:, None] * right_row + horizon * right_horizon + j[None, :],
            mask=(row < last)[:, None] & (j < J)[None, :],
            other=0.0,
        )
        if ACTIVATE:
            two = elu(two)
        total = tl.dot(one, two, total, input_precision="ieee")
        column += one
    place = part * part_size + (horizon * I + i)[:, None] * J + j[None, :]
    tl.store(partials + place, total, mask=(i < I)[:, None] & (j < J)[None, :])
    if bias_partials is not None and j_tile == 0:
        unit = part * part_size + horizon * I + i
        tl.store(bias_partials + unit, tl.sum(column, axis=1), mask=i < I)


@triton.jit(do_not_specialize=["B", "rows_per_part"])
def _packed_partials_kernel(
    g: tl.tensor,
    s: tl.tensor,
    table: tl.tensor,
    offset: tl.tensor,
    partials: tl.tensor,
    B: int,
    H: int,
    N: int,
    M: int,
    rows_per_part: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_H: tl.constexpr,
) -> None:
    """One part's sum over rows of g[b, k] s[b, c] for bucket k's own channels c, packed."""
    horizon = tl.program_id(0)
    part = tl.program_id(1).to(tl.int64)
    first = part * rows_per_part
    last = tl.minimum(first + rows_per_part, B)
    packed = tl.load(offset + horizon)
    for slots in range(0, M, BLOCK_H):
        slot = slots + tl.arange(0, BLOCK_H)
        channel = tl.load(table + horizon * M + slot, mask=slot < M, other=-1)
        live = channel >= 0
        total = tl.zeros([BLOCK_ROWS, BLOCK_H], tl.float32)
        for start in range(first, last, BLOCK_ROWS):
            row = start + tl.arange(0, BLOCK_ROWS)
            slope = tl.load(g + row * N + horizon, mask=row < last, other=0.0)
            state = tl.load(
                s + row[:, None] * H + channel[None, :],
                mask=(row < last)[:, None] & live[None, :],
                other=0.0,
            )
            total += slope[:, None] * state
        rank = packed + tl.cumsum(live.to(tl.int32), axis=0) - 1
        tl.store(partials + part * H + rank, tl.sum(total, axis=0), mask=live)
        packed += tl.sum(live.to(tl.int32), axis=0)


@triton.jit(do_not_specialize=["B"])
def _state_gradient_kernel(
    dz: tl.tensor,
    w1: tl.tensor,
    g: tl.tensor,
    w_skip: tl.tensor,
    ds: tl.tensor,
    B: int,
    H: int,
    N: int,
    units: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_H: tl.constexpr,
) -> None:
    """ds: dz (B, N E) times W1 (N E, H), and g (B, N) times w_skip (N, H), in one sum."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    channel = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    known = (channel < H)[None, :]
    total = tl.zeros([BLOCK_ROWS, BLOCK_H], tl.float32)
    for start in range(0, units, BLOCK_E):
        unit = start + tl.arange(0, BLOCK_E)
        place = row[:, None] * units + unit[None, :]
        slope = tl.load(dz + place, mask=(row < B)[:, None] & (unit < units)[None, :], other=0.0)
        place = unit[:, None].to(tl.int64) * H + channel[None, :]
        weight = tl.load(w1 + place, mask=(unit < units)[:, None] & known, other=0.0)
        total = tl.dot(slope, weight, total, input_precision="ieee")
    for start in range(0, N, BLOCK_E):
        horizon = start + tl.arange(0, BLOCK_E)
        place = row[:, None] * N + horizon[None, :]
        slope = tl.load(g + place, mask=(row < B)[:, None] & (horizon < N)[None, :], other=0.0)
        place = horizon[:, None] * H + channel[None, :]
        weight = tl.load(w_skip + place, mask=(horizon < N)[:, None] & known, other=0.0)
        total = tl.dot(slope, weight, total, input_precision="ieee")
    place = row[:, None] * H + channel[None, :]
    tl.store(ds + place, total, mask=(row < B)[:, None] & known)


def reduce_gradients(
    local: Local,
    s: torch.Tensor,
    W1: torch.Tensor,
    w_skip: torch.Tensor,
    sizes: Sizes,
    blocks: tuple[int, int, int],
    parts: int,
    skip: bool = True,
) -> dict[str, torch.Tensor]:
    """Return all gradients by argument name; that of w_skip only with `skip`."""
    B, H, N, E = sizes.B, sizes.H, sizes.N, sizes.E
    shapes = {"W1": (N, E, H), "b1": (N, E), "W2": (N, E, E), "b2": (N, E), "w_gate": (N, E)}
    shapes |= {"bg": (N,), "w_main": (N, E), "bm": (N,)} | ({"w_skip": (N, H)} if skip else {})
    ds = torch.empty_like(s)
    if not B or not N:
        return {"s": ds.zero_()} | {name: s.new_zeros(shape) for name, shape in shapes.items()}
    counts = {name: torch.Size(shape).numel() for name, shape in shapes.items()}
    rows_per_part, parts = parts_of(B, blocks[0], parts)
    partials = s.new_empty((parts, sum(counts.values())))
    into = dict(zip(shapes, torch.split(partials, list(counts.values()), dim=1), strict=True))
    rows = (B, rows_per_part, parts)
    outer = _Outer(rows, blocks, partials.shape[1], N)
    outer.launch(local.dz, s, into["W1"], into["b1"], E, H, activate=False)
    outer.launch(local.de, local.z, into["W2"], into["b2"], E, E, activate=True)
    outer.launch(local.dgate, local.e, into["w_gate"], into["bg"], 1, E, activate=False)
    outer.launch(local.dmain, local.e, into["w_main"], into["bm"], 1, E, activate=False)
    if skip:
        outer.launch(local.g, s, into["w_skip"], None, 1, H, activate=False)
    sums = torch.split(sum_parts(partials), list(counts.values()))
    if H:
        grid = (triton.cdiv(B, blocks[0]), triton.cdiv(H, blocks[2]))
        _state_gradient_kernel[grid](
            local.dz, W1, local.g, w_skip, ds, B, H, N, N * E, *blocks, num_warps=4
        )
    named = zip(shapes.items(), sums, strict=True)
    return {"s": ds} | {name: total.view(shape) for (name, shape), total in named}


@dataclass(frozen=True)
class _Outer:
    """Launches of sums of outer products over the batch: rows, rows of a part, parts."""

    rows: tuple[int, int, int]
    blocks: tuple[int, int, int]
    part_size: int
    N: int

    def launch(
        self,
        left: torch.Tensor,
        right: torch.Tensor,
        into: torch.Tensor,
        bias: torch.Tensor | None,
        I: int,  # noqa: E741
        J: int,
        activate: bool,
    ) -> None:
        """left (B, N, I); right (B, J), or (B, N, J) with a value for each horizon."""
        B, rows_per_part, parts = self.rows
        block_rows, block_i, block_j = self.blocks
        # A column sum needs a program even where there is no column to multiply with.
        tiles = triton.cdiv(I, block_i) * max(1, triton.cdiv(J, block_j))
        if not tiles:
            return
        right_horizon = J if right.dim() == 3 else 0
        _outer_partials_kernel[(tiles, self.N, parts)](
            left, right, into, bias, B, I, J, self.N * I, right.stride(0), right_horizon,
            self.part_size, rows_per_part, activate, block_rows, block_i, block_j, num_warps=4,
        )  # fmt: skip


def packed_skip_gradient(
    g: torch.Tensor,
    s: torch.Tensor,
    table: torch.Tensor,
    offset: torch.Tensor,
    blocks: tuple[int, int, int],
    parts: int,
) -> torch.Tensor:
    """Return the gradient (H,) of packed skip weights; +0.0 where no bucket owns an entry."""
    B, H = s.shape
    N, M = table.shape
    if not B or not N:
        return s.new_zeros(H)
    rows_per_part, parts = parts_of(B, blocks[0], parts)
    partials = s.new_zeros((parts, H))
    _packed_partials_kernel[(N, parts)](
        g, s, table, offset, partials, B, H, N, M, rows_per_part, blocks[0], blocks[2],
        num_warps=2,
    )  # fmt: skip
    return sum_parts(partials)
