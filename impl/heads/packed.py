"""Packed skip weights: bucket k's own, in table order, from offset[k] on."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.routing import RoutingRecord
from trivet.impl.routing.record import slots_of


@triton.jit
def _scatter_kernel(
    packed: tl.tensor,
    table: tl.tensor,
    offset: tl.tensor,
    full: tl.tensor,
    H: int,
    M: int,
    BLOCK_SLOTS: tl.constexpr,
) -> None:
    bucket = tl.program_id(0)
    place = tl.load(offset + bucket)
    for start in range(0, M, BLOCK_SLOTS):
        slot = start + tl.arange(0, BLOCK_SLOTS)
        channel = tl.load(table + bucket * M + slot, mask=slot < M, other=-1)
        live = channel >= 0
        rank = place + tl.cumsum(live.to(tl.int32), axis=0) - 1
        value = tl.load(packed + rank, mask=live, other=0.0)
        tl.store(full + bucket * H + channel, value, mask=live)
        place += tl.sum(live.to(tl.int32), axis=0)


def slots_and_offsets(
    table: torch.Tensor | RoutingRecord, H: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the table (N, M) and offset (N,), both int32: of a record, or counted from a table.

    Raises as `routing.heads_compact` for a record that is not whole or a table that names a
    channel twice.
    """
    slots = slots_of(table, H, device)
    if isinstance(table, RoutingRecord):
        return slots, table.offset
    size = (slots >= 0).sum(dim=1)
    return slots, (size.cumsum(0) - size).to(torch.int32)


def heads_scatter(
    packed: torch.Tensor, table: torch.Tensor | RoutingRecord, *, block_slots: int = 128
) -> torch.Tensor:
    """Return (N, H) float32: packed (H,) float32 at each bucket's own channels, +0.0 elsewhere.

    The inverse of `routing.heads_compact`; for gradients of packed weights. One launch and one
    fill. Raises TypeError or ValueError naming the argument.
    """
    arguments = _checks.Arguments()
    arguments.tensor("packed", packed, "H", torch.float32)
    _checks.blocks(block_slots=block_slots)
    H = packed.shape[0]
    slots, offset = slots_and_offsets(table, H, packed.device)
    N, M = slots.shape
    full = packed.new_zeros((N, H))
    if N:
        _scatter_kernel[(N,)](packed, slots, offset, full, H, M, block_slots, num_warps=1)
    return full
