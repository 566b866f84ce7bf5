"""repeats turns red."""

import torch
import triton
import triton.language as tl

from trivet.faults._laws._tiny import row_sums, row_sums_contract

_workspaces: dict[tuple[int, ...], torch.Tensor] = {}


@row_sums_contract.fault(expects=("repeats",))
def workspace_cleared_once(x: torch.Tensor, block: int) -> torch.Tensor:
    """Results are gathered in a cached workspace that is cleared at its first use alone."""
    total = _workspaces.setdefault(tuple(x.shape), torch.zeros(x.shape[0]))
    total += row_sums(x, block)
    return total.clone()


_answers: dict[object, torch.Tensor] = {}


@row_sums_contract.fault(expects=("repeats",))
def one_answer_handed_out_twice(x: torch.Tensor, block: int) -> torch.Tensor:
    """Equal inputs get the memory of the first answer, whatever its owner has made of it."""
    key = tuple(x.shape), tuple(x.flatten().tolist())
    return _answers.setdefault(key, row_sums(x, block))


@triton.autotune(configs=[triton.Config({}, num_warps=n) for n in (4, 8)], key=[])
@triton.jit
def _added(x_ptr, y_ptr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    tl.store(y_ptr + row, tl.load(y_ptr + row) + tl.load(x_ptr + row))


@row_sums_contract.fault(expects=("repeats",))
def tuned_without_a_reset(x: torch.Tensor, block: int) -> torch.Tensor:
    """An autotuned kernel adds to its output, which no reset_to_zero clears between its trials."""
    sums = row_sums(x, block)
    total = torch.zeros_like(sums)
    if total.numel():
        _added[total.shape](sums, total)
    return total
