"""The gradients of the CfC cell, dense and per branch, in four launches and without atomics.

The launch here turns g into what each channel of each row passes on; `reductions` adds it up.
"""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._elementwise import expm1, tanh, tanh_slope
from trivet.impl.cfc.forward import check_cell, preactivation
from trivet.impl.cfc.reductions import reduce_gradients
from trivet.impl.routing import RoutingRecord
from trivet.impl.routing.record import slots_of


@triton.jit
def _local_tile(
    g: tl.tensor,
    x: tl.tensor,
    h: tl.tensor,
    dt: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    b: tl.tensor,
    tau: tl.tensor,
    dpre: tl.tensor,
    tau_terms: tl.tensor,
    kept: tl.tensor,
    row: tl.tensor,
    channel: tl.tensor,
    B: int,
    D: int,
    H: int,
    BLOCK_K: tl.constexpr,
) -> None:
    """Write dpre, the terms of dtau, and g * decay (all (B, H)) of these rows and channels."""
    pre = preactivation(x, h, w_in, w_rec, b, row, channel, B, D, H, BLOCK_K)
    channel_live = (channel >= 0) & (channel < H)
    elapsed = tl.load(dt + row, mask=row < B, other=0.0)[:, None]
    constant = tl.load(tau + channel, mask=channel_live, other=1.0)[None, :]
    place = row[:, None] * H + channel[None, :]
    live = (row < B)[:, None] & channel_live[None, :]
    old = tl.load(h + place, mask=live, other=0.0)
    grad = tl.load(g + place, mask=live, other=0.0)
    periods = elapsed / constant
    decay = tl.exp(-periods)
    # Once decay has underflowed to 0 so has the product, even where dt/tau itself overflowed.
    decay_rate = tl.where(decay > 0.0, decay * periods, 0.0) / constant
    tl.store(dpre + place, grad * -expm1(-periods) * tanh_slope(pre), mask=live)
    tl.store(tau_terms + place, grad * (old - tanh(pre)) * decay_rate, mask=live)
    tl.store(kept + place, grad * decay, mask=live)


@triton.jit(do_not_specialize=["B"])
def _local_kernel(
    g: tl.tensor,
    x: tl.tensor,
    h: tl.tensor,
    dt: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    b: tl.tensor,
    tau: tl.tensor,
    dpre: tl.tensor,
    tau_terms: tl.tensor,
    kept: tl.tensor,
    B: int,
    D: int,
    H: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    channel = tl.program_id(1).to(tl.int64) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    _local_tile(
        g, x, h, dt, w_in, w_rec, b, tau, dpre, tau_terms, kept, row, channel, B, D, H, BLOCK_K
    )


@triton.jit(do_not_specialize=["B"])
def _local_per_branch_kernel(
    g: tl.tensor,
    x: tl.tensor,
    h: tl.tensor,
    dt: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    b: tl.tensor,
    tau: tl.tensor,
    table: tl.tensor,
    dpre: tl.tensor,
    tau_terms: tl.tensor,
    kept: tl.tensor,
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
        _local_tile(
            g, x, h, dt, w_in, w_rec, b, tau, dpre, tau_terms, kept, row, channel, B, D, H, BLOCK_K
        )


def step_backward(
    g: torch.Tensor,
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
    parts: int = 16,
) -> dict[str, torch.Tensor]:
    """Return the gradients of `step` to x, h, W_in, W_rec, b and tau from g = dL/dh' (B, H).

    Shapes, dtypes, block sizes and errors as for `step`; keys are the names of its arguments, dt
    has no gradient. Four launches: what each channel passes on, the batch in at most `parts`
    parts, the sum of the parts, the channels. No atomics: results are bitwise repeatable.
    """
    arguments = check_cell(x, h, dt, W_in, W_rec, b, tau)
    arguments.tensor("g", g, "B H", torch.float32)
    _checks.blocks(block_rows=block_rows, block_channels=block_channels, block_k=block_k)
    _checks.count("parts", parts, 1)
    B, H = h.shape
    local = h.new_empty((3, B, H))
    if h.numel():
        grid = (triton.cdiv(B, block_rows), triton.cdiv(H, block_channels))
        sizes = (B, x.shape[1], H, block_rows, block_channels, block_k)
        _local_kernel[grid](g, x, h, dt, W_in, W_rec, b, tau, *local, *sizes, num_warps=2)
    return reduce_gradients(local, x, h, W_in, W_rec, (block_rows, block_channels, block_k), parts)


def step_per_branch_backward(
    g: torch.Tensor,
    x: torch.Tensor,
    h: torch.Tensor,
    dt: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
    table: torch.Tensor | RoutingRecord,
    *,
    block_rows: int = 4,
    block_channels: int = 16,
    block_k: int = 64,
    parts: int = 16,
) -> dict[str, torch.Tensor]:
    """Return the gradients of `step_per_branch` from g = dL/dout (B, H), as `step_backward`.

    A channel in no bucket counts as g = 0. Each channel belongs to one branch alone, so the sum
    over branches is the sum over channels, in channel order: with a full table the gradients
    equal the dense ones bitwise. Four launches and one fill. Raises as `step_per_branch`.
    """
    if isinstance(table, RoutingRecord):
        table.validate()
    arguments = check_cell(x, h, dt, W_in, W_rec, b, tau)
    arguments.tensor("g", g, "B H", torch.float32)
    B, H = h.shape
    slots = slots_of(table, H, h.device)
    _checks.blocks(block_rows=block_rows, block_channels=block_channels, block_k=block_k)
    _checks.count("parts", parts, 1)
    N, M = slots.shape
    local = h.new_zeros((3, B, H))
    if h.numel() and slots.numel():
        grid = (triton.cdiv(B, block_rows), N)
        sizes = (B, x.shape[1], H, M, block_rows, block_channels, block_k)
        _local_per_branch_kernel[grid](
            g, x, h, dt, W_in, W_rec, b, tau, slots, *local, *sizes, num_warps=2
        )
    return reduce_gradients(local, x, h, W_in, W_rec, (block_rows, block_channels, block_k), parts)
