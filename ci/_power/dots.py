"""Dot products of n terms."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trivet import Tensor, sizes
from trivet.ci._power.inputs import Random, draw, usual
from trivet.ci._power.numbers import (
    Arguments,
    Array,
    bfloat16,
    f32,
    fold,
    fused_dot,
    tf32,
    tree_depth,
    tree_sum,
)
from trivet.ci._power.workload import Output, Promise, Workload

_ROWS = 8


class Dot(Workload):
    """sum(a * b) over n: a and b (cases, 8, n), out (cases, 8)."""

    def __init__(self, n: int, cases: int, batches: int) -> None:
        self.name, self.n, self.cases, self.batches = f"dot n={n}", n, cases, batches
        self.promise = Promise(depth=tree_depth(n))
        self.dims = {"R": sizes(1, _ROWS), "N": sizes(2, n)}

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """Both operands of a kind, the second normal where both would overflow or vanish."""
        shape = (cases, _ROWS, self.n)
        a = draw(rng, shape, kind)
        b = draw(rng, shape, usual(kind, "cancelling", "subnormal", "wide"))
        if kind == "cancelling":
            half = self.n // 2
            b[..., half : 2 * half] = b[..., :half]
        return {"a": a, "b": b}

    def domains(self, dtype: str) -> dict[str, Tensor]:
        """Reals of ordinary size."""
        return {name: Tensor("R N", dtypes=(dtype,)) for name in "ab"}

    def oracle(self) -> Callable[..., Any]:
        """sum(a * b)."""

        def dot(m: Any, a: Any, b: Any) -> Any:
            return m.sum(a * b, axis=-1)

        return dot

    def right(self, arguments: Arguments) -> Array:
        """Products, then the tree of one Triton program."""
        return tree_sum(arguments["a"] * arguments["b"])

    def native(self, arguments: Arguments) -> Array:
        """torch.einsum."""
        import torch

        a, b = (torch.from_numpy(arguments[name]) for name in "ab")
        total: Array = torch.einsum("brn,brn->br", a, b).numpy()
        return total

    def others(self, arguments: Arguments) -> Iterator[Output]:
        """Sequential, reversed, NumPy's pairwise sum, and fused multiply-adds."""
        a, b = arguments["a"], arguments["b"]
        yield Output("sequential", fold(a * b))
        yield Output("reversed", fold((a * b)[..., ::-1]))
        yield Output("numpy", (a * b).sum(-1, dtype=f32))
        yield Output("fma", fused_dot(a, b))

    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """Narrow formats, lost and stale terms, a factor."""
        a, b = arguments["a"], arguments["b"]
        yield "fp16 accumulator", tree_sum(a * b, np.float16)
        yield "bf16 products", tree_sum(bfloat16(a * b))
        yield "tf32 inputs", tree_sum(tf32(a) * tf32(b))
        yield "dropped last term", tree_sum((a * b)[..., :-1])
        yield "x(1+1e-5)", self.right(arguments) * f32(1 + 1e-5)
        tile = max(1, min(32, a.shape[-1] // 4))
        stale = a.copy()
        stale[:, 1:, -tile:] = a[:, :-1, -tile:]
        stale[:, 0, -tile:] = a[:, -1, -tile:]
        yield "stale tile", tree_sum(stale * b)
