"""The second stage of a reduction over the batch: adding parts, in order, without atomics."""

import torch
import triton
import triton.language as tl

_BLOCK = 128


@triton.jit(do_not_specialize=["parts"])
def _sum_parts_kernel(
    partials: tl.tensor, sums: tl.tensor, parts: int, size: int, BLOCK: tl.constexpr
) -> None:
    entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = entry < size
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(parts):
        total += tl.load(partials + entry, mask=live, other=0.0)
        partials += size
    tl.store(sums + entry, total, mask=live)


def sum_parts(partials: torch.Tensor) -> torch.Tensor:
    """Return the sum over the first axis of partials (parts, size) float32, part after part."""
    parts, size = partials.shape
    sums = partials.new_empty(size)
    if size:
        grid = (triton.cdiv(size, _BLOCK),)
        _sum_parts_kernel[grid](partials, sums, parts, size, _BLOCK, num_warps=1)
    return sums


def parts_of(rows: int, block_rows: int, parts: int) -> tuple[int, int]:
    """Return rows in a part and the number of parts, none of them empty and at most `parts`."""
    rows_per_part = triton.cdiv(rows, min(parts, triton.cdiv(rows, block_rows)))
    return rows_per_part, triton.cdiv(rows, rows_per_part)
