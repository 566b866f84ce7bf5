"""repeats turns red."""

import torch

from trivet.faults._laws._tiny import row_sums, row_sums_contract

_workspaces: dict[tuple[int, ...], torch.Tensor] = {}


@row_sums_contract.fault(expects=("repeats",))
def workspace_cleared_once(x: torch.Tensor, block: int) -> torch.Tensor:
    """Results are gathered in a cached workspace that is cleared at its first use alone."""
    total = _workspaces.setdefault(tuple(x.shape), torch.zeros(x.shape[0]))
    total += row_sums(x, block)
    return total.clone()
