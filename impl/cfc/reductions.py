"""Reductions behind the gradients of the cell: over the batch in two stages, over the channels.

No atomics: every order is fixed by the sizes, so results are bitwise repeatable. A channel is
written by one branch alone, so a sum over branches is the sum over channels in channel order.
"""

import torch
import triton
import triton.language as tl

from trivet.impl._sums import parts_of, sum_parts


@triton.jit
def _weight_tile(
    dpre: tl.tensor,
    vectors: tl.tensor,
    partial: tl.tensor,
    channel: tl.tensor,
    tile: tl.tensor,
    first: tl.tensor,
    last: tl.tensor,
    H: int,
    width: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    """Write sum over rows first to last of dpre[r, c] * vectors[r, k] for one tile of k."""
    k = tile * BLOCK_K + tl.arange(0, BLOCK_K)
    products = tl.zeros([BLOCK_ROWS, channel.shape[0], BLOCK_K], tl.float32)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)[:, None]
        slope = tl.load(
            dpre + row * H + channel[None, :], mask=(row < last) & (channel < H)[None, :], other=0.0
        )
        vector = tl.load(
            vectors + row * width + k[None, :], mask=(row < last) & (k < width)[None, :], other=0.0
        )
        products += slope[:, :, None] * vector[:, None, :]
    place = channel[:, None] * width + k[None, :]
    live = (channel < H)[:, None] & (k < width)[None, :]
    tl.store(partial + place, tl.sum(products, axis=0), mask=live)


@triton.jit
def _sum_rows(
    terms: tl.tensor,
    channel: tl.tensor,
    first: tl.tensor,
    last: tl.tensor,
    H: int,
    BLOCK_ROWS: tl.constexpr,
) -> tl.tensor:
    """Return sum over rows first to last of terms[r, c]."""
    sums = tl.zeros([BLOCK_ROWS, channel.shape[0]], tl.float32)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)[:, None]
        live = (row < last) & (channel < H)[None, :]
        sums += tl.load(terms + row * H + channel[None, :], mask=live, other=0.0)
    return tl.sum(sums, axis=0)


@triton.jit(do_not_specialize=["B", "rows_per_part"])
def _batch_partials_kernel(
    dpre: tl.tensor,
    tau_terms: tl.tensor,
    x: tl.tensor,
    h: tl.tensor,
    partials: tl.tensor,
    B: int,
    D: int,
    H: int,
    rows_per_part: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    """First stage over the batch: one part's share of dW_in, dW_rec, db and dtau, in that order."""
    channel = tl.program_id(0).to(tl.int64) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    tile = tl.program_id(1)
    part = tl.program_id(2).to(tl.int64)
    first = part * rows_per_part
    last = tl.minimum(first + rows_per_part, B)
    dw_in = partials + part * H * (D + H + 2)
    dw_rec = dw_in + H * D
    db = dw_rec + H * H
    dtau = db + H
    rec_tile = tile - tl.cdiv(D, BLOCK_K)
    if rec_tile < 0:
        _weight_tile(dpre, x, dw_in, channel, tile, first, last, H, D, BLOCK_ROWS, BLOCK_K)
    else:
        _weight_tile(dpre, h, dw_rec, channel, rec_tile, first, last, H, H, BLOCK_ROWS, BLOCK_K)
    if tile == 0:
        live = channel < H
        tl.store(db + channel, _sum_rows(dpre, channel, first, last, H, BLOCK_ROWS), mask=live)
        rates = _sum_rows(tau_terms, channel, first, last, H, BLOCK_ROWS)
        tl.store(dtau + channel, rates, mask=live)


@triton.jit
def _sum_channels(
    dpre: tl.tensor,
    weights: tl.tensor,
    row: tl.tensor,
    k: tl.tensor,
    B: int,
    H: int,
    width: int,
    BLOCK_CHANNELS: tl.constexpr,
) -> tl.tensor:
    """Return sum over channels of dpre[r, c] * weights[c, k]."""
    products = tl.zeros([row.shape[0], BLOCK_CHANNELS, k.shape[0]], tl.float32)
    for start in range(0, H, BLOCK_CHANNELS):
        channel = start + tl.arange(0, BLOCK_CHANNELS)
        slope = tl.load(
            dpre + row[:, None] * H + channel[None, :],
            mask=(row < B)[:, None] & (channel < H)[None, :],
            other=0.0,
        )
        weight = tl.load(
            weights + channel[:, None].to(tl.int64) * width + k[None, :],
            mask=(channel < H)[:, None] & (k < width)[None, :],
            other=0.0,
        )
        products += slope[:, :, None] * weight[None, :, :]
    return tl.sum(products, axis=1)


@triton.jit(do_not_specialize=["B"])
def _input_gradients_kernel(
    dpre: tl.tensor,
    kept: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    dx: tl.tensor,
    dh: tl.tensor,
    B: int,
    D: int,
    H: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    """Reduce over the channels of all branches: a tile of dx, or one of dh after those."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    tile = tl.program_id(1)
    rec_tile = tile - tl.cdiv(D, BLOCK_K)
    if rec_tile < 0:
        k = tile * BLOCK_K + tl.arange(0, BLOCK_K)
        live = (row < B)[:, None] & (k < D)[None, :]
        total = _sum_channels(dpre, w_in, row, k, B, H, D, BLOCK_CHANNELS)
        tl.store(dx + row[:, None] * D + k[None, :], total, mask=live)
    else:
        k = rec_tile * BLOCK_K + tl.arange(0, BLOCK_K)
        place = row[:, None] * H + k[None, :]
        live = (row < B)[:, None] & (k < H)[None, :]
        total = _sum_channels(dpre, w_rec, row, k, B, H, H, BLOCK_CHANNELS)
        total += tl.load(kept + place, mask=live, other=0.0)
        tl.store(dh + place, total, mask=live)


def reduce_gradients(
    local: torch.Tensor,
    x: torch.Tensor,
    h: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    blocks: tuple[int, int, int],
    parts: int,
) -> dict[str, torch.Tensor]:
    """Return all gradients, by argument name, from local: dpre, terms of dtau, g * decay (B, H).

    Three launches: the batch in at most `parts` parts, the sum of the parts, the channels.
    blocks are block_rows, block_channels and block_k; all arguments have been checked.
    """
    B, D = x.shape
    H = h.shape[1]
    dpre, tau_terms, kept = local
    dx, dh = torch.empty_like(x), torch.empty_like(h)
    size = H * (D + H + 2)
    sums = h.new_zeros(0 if h.numel() else size)
    if h.numel():
        block_rows, block_channels, block_k = blocks
        tiles = triton.cdiv(D, block_k) + triton.cdiv(H, block_k)
        rows, parts = parts_of(B, block_rows, parts)
        partials = h.new_empty((parts, size))
        grid = (triton.cdiv(H, block_channels), tiles, partials.shape[0])
        _batch_partials_kernel[grid](
            dpre, tau_terms, x, h, partials, B, D, H, rows, *blocks, num_warps=2
        )
        sums = sum_parts(partials)
        _input_gradients_kernel[(triton.cdiv(B, block_rows), tiles)](
            dpre, kept, W_in, W_rec, dx, dh, B, D, H, *blocks, num_warps=2
        )
    return {"x": dx, "h": dh} | _parameter_gradients(sums, D, H)


def _parameter_gradients(sums: torch.Tensor, D: int, H: int) -> dict[str, torch.Tensor]:
    """Return the views that `sums` consists of, in the order of a part."""
    return {
        "W_in": sums[: H * D].view(H, D),
        "W_rec": sums[H * D : H * (D + H)].view(H, H),
        "b": sums[H * (D + H) : H * (D + H + 1)],
        "tau": sums[H * (D + H + 1) :],
    }
