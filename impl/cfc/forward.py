"""The CfC cell, dense and per branch: one fused launch each, built on one device function."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._elementwise import expm1, tanh
from trivet.impl.routing import RoutingRecord
from trivet.impl.routing.record import slots_of


@triton.jit
def _add_products(
    products: tl.tensor,
    vectors: tl.tensor,
    weights: tl.tensor,
    row: tl.tensor,
    channel: tl.tensor,
    B: int,
    H: int,
    width: int,
    BLOCK_K: tl.constexpr,
) -> tl.tensor:
    """Add vectors[r, k] * weights[c, k] to products[r, c, k mod BLOCK_K], for every k."""
    row_live = (row < B)[:, None]
    channel_live = ((channel >= 0) & (channel < H))[:, None]
    for start in range(0, width, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)[None, :]
        vector = tl.load(vectors + row[:, None] * width + k, mask=row_live & (k < width), other=0.0)
        weight = tl.load(
            weights + channel[:, None] * width + k, mask=channel_live & (k < width), other=0.0
        )
        products += vector[:, None, :] * weight[None, :, :]
    return products


@triton.jit
def preactivation(
    x: tl.tensor,
    h: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    b: tl.tensor,
    row: tl.tensor,
    channel: tl.tensor,
    B: int,
    D: int,
    H: int,
    BLOCK_K: tl.constexpr,
) -> tl.tensor:
    """Return pre (rows, channels); the order of each sum depends on BLOCK_K alone."""
    products = tl.zeros([row.shape[0], channel.shape[0], BLOCK_K], tl.float32)
    products = _add_products(products, x, w_in, row, channel, B, H, D, BLOCK_K)
    products = _add_products(products, h, w_rec, row, channel, B, H, H, BLOCK_K)
    channel_live = (channel >= 0) & (channel < H)
    bias = tl.load(b + channel, mask=channel_live, other=0.0)
    return bias[None, :] + tl.sum(products, axis=2)


@triton.jit
def _step_tile(
    x: tl.tensor,
    h: tl.tensor,
    dt: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    b: tl.tensor,
    tau: tl.tensor,
    out: tl.tensor,
    row: tl.tensor,
    channel: tl.tensor,
    B: int,
    D: int,
    H: int,
    BLOCK_K: tl.constexpr,
) -> None:
    """Write h' of these rows and channels; dense and per branch agree bitwise through it.

    Rows from B on and channels outside 0 to H - 1 are neither read nor written.
    """
    pre = preactivation(x, h, w_in, w_rec, b, row, channel, B, D, H, BLOCK_K)
    channel_live = (channel >= 0) & (channel < H)
    elapsed = tl.load(dt + row, mask=row < B, other=0.0)
    constant = tl.load(tau + channel, mask=channel_live, other=1.0)
    place = row[:, None] * H + channel[None, :]
    live = (row < B)[:, None] & channel_live[None, :]
    old = tl.load(h + place, mask=live, other=0.0)
    exponent = -(elapsed[:, None] / constant[None, :])
    new = old * tl.exp(exponent) - expm1(exponent) * tanh(pre)
    tl.store(out + place, new, mask=live)


@triton.jit(do_not_specialize=["B"])
def _step_kernel(
    x: tl.tensor,
    h: tl.tensor,
    dt: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    b: tl.tensor,
    tau: tl.tensor,
    out: tl.tensor,
    B: int,
    D: int,
    H: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    channel = tl.program_id(1).to(tl.int64) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    _step_tile(x, h, dt, w_in, w_rec, b, tau, out, row, channel, B, D, H, BLOCK_K)


@triton.jit(do_not_specialize=["B"])
def _step_per_branch_kernel(
    x: tl.tensor,
    h: tl.tensor,
    dt: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    b: tl.tensor,
    tau: tl.tensor,
    table: tl.tensor,
    out: tl.tensor,
    B: int,
    D: int,
    H: int,
    M: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    slots = table + tl.program_id(1) * M
    for start in range(0, M, BLOCK_CHANNELS):
        slot = start + tl.arange(0, BLOCK_CHANNELS)
        channel = tl.load(slots + slot, mask=slot < M, other=-1).to(tl.int64)
        _step_tile(x, h, dt, w_in, w_rec, b, tau, out, row, channel, B, D, H, BLOCK_K)


def check_cell(
    x: torch.Tensor,
    h: torch.Tensor,
    dt: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
) -> _checks.Arguments:
    """Raise TypeError or ValueError, naming the argument, unless a cell can run on these."""
    arguments = _checks.Arguments()
    arguments.tensor("x", x, "B D", torch.float32)
    arguments.tensor("h", h, "B H", torch.float32)
    arguments.tensor("dt", dt, "B", torch.float32)
    arguments.tensor("W_in", W_in, "H D", torch.float32)
    arguments.tensor("W_rec", W_rec, "H H", torch.float32)
    arguments.tensor("b", b, "H", torch.float32)
    arguments.tensor("tau", tau, "H", torch.float32)
    _checks.finite_not_negative("dt", dt)
    _checks.finite_positive("tau", tau)
    return arguments


def step(
    x: torch.Tensor,
    h: torch.Tensor,
    dt: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
    *,
    block_rows: int = 4,
    block_channels: int = 16,
    block_k: int = 64,
) -> torch.Tensor:
    """Return h' (B, H) of the dense CfC cell: h exp(-dt/tau) + (1 - exp(-dt/tau)) tanh(pre).

    pre = b + W_in x + W_rec h; x (B, D), h (B, H), dt (B,) seconds, W_in (H, D), W_rec (H, H),
    b and tau (H,), tau in seconds; all float32, contiguous, on one device. One launch, a program
    per block of rows and of channels. Block sizes are powers of two up to 128; block_k alone
    sets the order of the sums, so a row's result depends neither on B nor on the other rows.

    Raises TypeError for another dtype, ValueError for another shape or device, for a dt that is
    negative or not finite and for a tau that is not finite and positive.
    """
    check_cell(x, h, dt, W_in, W_rec, b, tau)
    _checks.blocks(block_rows=block_rows, block_channels=block_channels, block_k=block_k)
    B, H = h.shape
    D = x.shape[1]
    out = torch.empty_like(h)
    if out.numel():
        grid = (triton.cdiv(B, block_rows), triton.cdiv(H, block_channels))
        blocks = (block_rows, block_channels, block_k)
        _step_kernel[grid](x, h, dt, W_in, W_rec, b, tau, out, B, D, H, *blocks, num_warps=2)
    return out


def step_per_branch(
    x: torch.Tensor,
    h: torch.Tensor,
    dt: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
    table: torch.Tensor | RoutingRecord,
    out: torch.Tensor,
    *,
    block_rows: int = 4,
    block_channels: int = 16,
    block_k: int = 64,
) -> None:
    """Write h' of `step` into out (B, H), branch k writing exactly the channels of bucket k.

    table (N, M) int32 lists each bucket's channels, with -1 in unused slots, wherever they are;
    a routing record in its place is checked before anything else. Channels in no bucket keep
    out's old bits. With equal block_k the union of all branches equals `step` bitwise. One
    launch, a program per block of rows and branch. Raises as `step`, and ValueError for a table
    that names a channel twice, a record that is not whole, or an out that overlaps an argument.
    """
    if isinstance(table, RoutingRecord):
        table.validate()
    arguments = check_cell(x, h, dt, W_in, W_rec, b, tau)
    B, H = h.shape
    D = x.shape[1]
    slots = slots_of(table, H, h.device)
    arguments.tensor("out", out, "B H", torch.float32)
    _checks.blocks(block_rows=block_rows, block_channels=block_channels, block_k=block_k)
    _check_apart(out, x=x, h=h, dt=dt, W_in=W_in, W_rec=W_rec, b=b, tau=tau)
    N, M = slots.shape
    if out.numel() and slots.numel():
        grid = (triton.cdiv(B, block_rows), N)
        sizes = (B, D, H, M, block_rows, block_channels, block_k)
        _step_per_branch_kernel[grid](
            x, h, dt, W_in, W_rec, b, tau, slots, out, *sizes, num_warps=2
        )


def _check_apart(out: torch.Tensor, **others: torch.Tensor) -> None:
    first, end = out.data_ptr(), out.data_ptr() + out.nbytes
    for name, other in others.items():
        if first < other.data_ptr() + other.nbytes and other.data_ptr() < end:
            raise ValueError(f"out must not overlap {name} in memory: every branch reads all of it")
