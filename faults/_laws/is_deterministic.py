"""is_deterministic turns red."""

import torch
import triton
import triton.language as tl

from trivet.faults._laws._tiny import row_sums, row_sums_contract


@triton.jit
def _ticketed(y_ptr, ticket_ptr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    ticket = tl.atomic_add(ticket_ptr, 1)
    tl.store(y_ptr + row, tl.load(y_ptr + row) + ticket)


@row_sums_contract.fault(expects=("is_deterministic",))
def first_come_first_served(x: torch.Tensor, block: int) -> torch.Tensor:
    """Programs draw tickets: the result depends on which of them comes first."""
    y = row_sums(x, block)
    if y.numel():
        _ticketed[y.shape](y, torch.zeros(1, dtype=torch.int32))
    return y
