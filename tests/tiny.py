"""Small kernels and contracts that several tests judge."""

import torch
import triton
import triton.language as tl

from trivet import Contract, Tensor, sizes


@triton.jit
def _scaled(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane, mask=lane < n, other=0.0)
    tl.store(y_ptr + lane, x * factor, mask=lane < n)


def doubled(x):
    y = torch.empty_like(x)
    if x.numel():
        _scaled[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), 2.0, BLOCK=32)
    return y


def twice(x):
    return 2 * x


def contract_of(kernel, oracle=twice, **fields):
    fields = {"dims": {"N": sizes(0, 100)}, "args": {"x": Tensor("N")}, **fields}
    return Contract(kernel=kernel, oracles=[oracle], **fields)
