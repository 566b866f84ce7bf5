"""Softmax of rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trivet import Tensor, reals, sizes
from trivet.ci._power.inputs import Random, draw, usual
from trivet.ci._power.numbers import (
    Arguments,
    Array,
    bfloat16,
    f32,
    float16,
    fused,
    once,
    same,
    tree_depth,
    tree_sum,
)
from trivet.ci._power.workload import Output, Promise, Workload

_ROWS, _TILE = 4, 128
_LOG2_E = f32(np.log2(np.e))


class Softmax(Workload):
    """exp(x - max) over its sum: x and out (cases, 4, n)."""

    uses_functions = True

    def __init__(self, n: int, cases: int, batches: int) -> None:
        self.name, self.n, self.cases, self.batches = f"softmax n={n}", n, cases, batches
        self.promise = Promise(depth=tree_depth(n))
        self.dims = {"R": sizes(1, _ROWS), "N": sizes(2, n)}

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """Rows of a kind; wide ones are 30 times normal: more would leave a single weight."""
        x = draw(rng, (cases, _ROWS, self.n), usual(kind, "wide"))
        return {"x": x * f32(30) if kind == "wide" else x}

    def domains(self, dtype: str) -> dict[str, Tensor]:
        """Rows whose exponentials overflow, and others."""
        return {"x": Tensor("R N", dtypes=(dtype,), domain=reals(-1e4, 1e4))}

    def oracle(self) -> Callable[..., Any]:
        """softmax(x)."""

        def softmax(m: Any, x: Any) -> Any:
            return m.softmax(x, axis=-1)

        return softmax

    def right(self, arguments: Arguments) -> Array:
        """Maximum, weights, tree sum, quotient."""
        return _over(_weights(arguments["x"]))

    def native(self, arguments: Arguments) -> Array:
        """torch.softmax."""
        import torch

        weights: Array = torch.softmax(torch.from_numpy(arguments["x"]), -1).numpy()
        return weights

    def others(self, arguments: Arguments) -> Iterator[Output]:
        """Base two in three forms, a running maximum over tiles, torch's running sum, NumPy."""
        x = arguments["x"]
        shifted = x - x.max(-1, keepdims=True)
        base_two = once(np.exp2, shifted * _LOG2_E)
        yield Output("exp2", _over(base_two), declared=True)
        for name, fuse in (("exp2 of fma", True), ("exp2 of products", False)):
            yield Output(name, _over(_scaled_first(x, fuse=fuse)), declared=True)
        yield Output("online", _online(x))
        weights = np.exp(shifted)
        yield Output("numpy", weights / weights.sum(-1, keepdims=True), profile="interpreter")
        yield Output("sequential", _torch_sequential(x), profile="interpreter")

    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """Narrow formats, a lost term, a factor, maxima not subtracted or not updated."""
        x = arguments["x"]
        weights = _weights(x)
        yield "fp16 sum", _over(weights, dtype=np.float16)
        yield "fp16 exp", _over(float16(weights))
        yield "bf16 exp", _over(weights, store=bfloat16)
        yield "dropped last term", _over(weights, lost=1)
        yield "x(1+1e-5)", _over(weights) * f32(1 + 1e-5)
        yield "stale max", _stale(x, weights)
        yield "no max subtraction", _over(once(np.exp, x))


def _weights(x: Array) -> Array:
    return once(np.exp, x - x.max(-1, keepdims=True))


def _scaled_first(x: Array, *, fuse: bool) -> Array:
    # As attention kernels do: x * log2(e) less the scaled maximum, the product rounded or not.
    peak = x.max(-1, keepdims=True) * _LOG2_E
    exponent = fused(x, np.full_like(x, _LOG2_E), -peak) if fuse else x * _LOG2_E - peak
    return once(np.exp2, exponent)


def _over(
    weights: Array,
    *,
    dtype: Any = f32,
    store: Callable[[Array], Array] = same,
    lost: int = 0,
) -> Array:
    total = tree_sum(weights[..., : weights.shape[-1] - lost], dtype)
    quotient: Array = store(weights) / total[..., None]
    return quotient


def _online(x: Array) -> Array:
    peak = np.full((*x.shape[:-1], 1), -np.inf, f32)
    total = np.zeros_like(peak)
    for start in range(0, x.shape[-1], _TILE):
        part = x[..., start : start + _TILE]
        higher = np.maximum(peak, part.max(-1, keepdims=True))
        fresh = tree_sum(once(np.exp, part - higher))[..., None]
        total = total * once(np.exp, peak - higher) + fresh
        peak = higher
    result: Array = once(np.exp, x - peak) / total
    return result


def _stale(x: Array, weights: Array) -> Array:
    half = x.shape[-1] // 2
    early = tree_sum(_weights(x[..., :half]))
    result: Array = weights / (early + tree_sum(weights[..., half:]))[..., None]
    return result


def _torch_sequential(x: Array) -> Array:
    import torch

    given = torch.from_numpy(x)
    weights = (given - given.amax(-1, keepdim=True)).exp()
    result: Array = (weights / weights.cumsum(-1)[..., -1:]).numpy()
    return result
