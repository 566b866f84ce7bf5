"""Dot products of n terms."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trivet.ci._power.inputs import KINDS, Random, draw, usual
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
from trivet.oracles._probes import odd_integers, signs

_ROWS = 8


class Dot(Workload):
    """sum(a * b) over n: a and b (cases, 8, n), out (cases, 8).

    Its plan adds exact probes: odd integers of up to 12 bits times signs, every partial sum of
    which is exact in any order. For bfloat16 results it adds exact sums halfway between two of
    them, rounded down to the even one: the smallest factor above 1 tips them over.
    """

    kinds = (*KINDS, "probe")
    plan = ("probe",)
    narrow_plan = ("tie",)

    def __init__(self, n: int, cases: int, batches: int) -> None:
        self.name, self.n, self.cases, self.batches = f"dot n={n}", n, cases, batches
        self.promise = Promise(depth=tree_depth(n))

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """Both operands of a kind, the second normal where both would overflow or vanish."""
        shape = (cases, _ROWS, self.n)
        if kind == "probe":
            return {
                "a": odd_integers(rng, shape, self.n).astype(f32),
                "b": signs(rng, shape).astype(f32),
            }
        if kind == "tie":
            return _halfway(rng, shape)
        a = draw(rng, shape, kind)
        b = draw(rng, shape, usual(kind, "cancelling", "subnormal", "wide"))
        if kind == "cancelling":
            half = self.n // 2
            b[..., half : 2 * half] = b[..., :half]
        return {"a": a, "b": b}

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
        tile = min(32, self.n // 4)
        stale = a.copy()
        stale[:, 1:, -tile:] = a[:, :-1, -tile:]
        stale[:, 0, -tile:] = a[:, -1, -tile:]
        yield "stale tile", tree_sum(stale * b)


def _halfway(rng: Random, shape: tuple[int, ...]) -> Arguments:
    """Integers that bfloat16 holds; all but two products cancel, those make 257, 261, ... 381."""
    half = shape[-1] // 2
    a = odd_integers(rng, (*shape[:-1], half - 1), 2**20)
    sign = signs(rng, (*shape[:-1], 1))
    rest = 4 * rng.integers(0, 32, (*shape[:-1], 1)) + 1
    a = np.concatenate([a, -a, sign * rest, 256 * sign], -1)
    return {"a": a.astype(f32), "b": np.ones(shape, f32)}
