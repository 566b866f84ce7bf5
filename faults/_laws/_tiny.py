"""The tiny kernel into which the faults of the standard laws are planted: sums of rows."""

from typing import Any

import torch
import triton
import triton.language as tl

from trivet import ANY, Choice, Contract, Tensor, reals, sizes


@triton.jit
def _row_sums(  # type: ignore[no-untyped-def]
    x_ptr, y_ptr, rows, columns, row_step, column_step, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        lane = start + tl.arange(0, BLOCK).to(tl.int64)
        at = x_ptr + row * row_step + lane * column_step
        total += tl.load(at, mask=lane < columns, other=0.0)
    tl.store(y_ptr + row, tl.sum(total))


class RowSums(torch.autograd.Function):
    """Sums of rows, and their gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, block: int) -> torch.Tensor:
        """Return the sums (M,) of the rows of ``x`` (M, N)."""
        ctx.shape = x.shape
        y = torch.empty(x.shape[0])
        if y.numel():
            _row_sums[y.shape](x, y, *x.shape, *x.stride(), BLOCK=block)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient (M, N): each row's own, everywhere in it."""
        return grads[0][:, None].expand(ctx.shape).clone(), None


def row_sums(x: torch.Tensor, block: int = 16) -> torch.Tensor:
    """Return the sums (M,) of the rows of ``x`` (M, N), float32; ValueError for other dtypes."""
    if x.dtype != torch.float32:
        raise ValueError(f"x has dtype {x.dtype}, expected float32")
    sums: torch.Tensor = RowSums.apply(x, block)  # type: ignore[no-untyped-call]
    return sums


def oracle(m, x):  # type: ignore[no-untyped-def]
    """Return the sums by definition."""
    return m.sum(x, axis=-1)


row_sums_contract = Contract(
    kernel=row_sums,
    oracles=[oracle],
    dims={"M": sizes(0, 6, production=2**21 + 3), "N": sizes(0, 70, production=2**10 + 1)},
    args={
        "x": Tensor("M N", domain=reals(-8, 8, nonfinite=True), layouts=ANY),
        "block": Choice(16, 32),
    },
    backward="autograd",
    raises=((ValueError, "x has dtype", {"x": torch.zeros(2, 2, dtype=torch.float64)}),),
)
