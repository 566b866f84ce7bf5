"""Layer normalisation of rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trivet import Tensor, reals, sizes
from trivet.ci._power.inputs import Random, draw, spread_exponents
from trivet.ci._power.numbers import (
    Arguments,
    Array,
    bfloat16,
    f32,
    fold,
    fused,
    same,
    tree_depth,
    tree_sum,
)
from trivet.ci._power.workload import Output, Promise, Workload

_ROWS, _EPS = 4, 1e-5


class LayerNorm(Workload):
    """(x - mean) / sqrt(variance + 1e-5) * w + b: x and out (cases, 4, n), w and b (n,)."""

    unbatched = ("w", "b")

    def __init__(self, n: int, cases: int, batches: int) -> None:
        self.name, self.n, self.cases, self.batches = f"layernorm n={n}", n, cases, batches
        self.promise = Promise(depth=tree_depth(n))
        self.dims = {"R": sizes(1, _ROWS), "N": sizes(2, n)}

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """Rows of a kind; normal ones have scales from 1e-3 to 10."""
        x = draw(rng, (cases, _ROWS, self.n), kind)
        if kind == "normal":
            x = x * spread_exponents(rng, (cases, _ROWS, 1), -3, 1)
        w, b = (draw(rng, (self.n,), "normal") for _ in "wb")
        return {"x": x, "w": w, "b": b}

    def domains(self, dtype: str) -> dict[str, Tensor]:
        """Rows a thousand from 0, where one pass cancels, and closer ones."""
        return {
            "x": Tensor("R N", dtypes=(dtype,), domain=reals(-1e3, 1e3)),
            "w": Tensor("N", dtypes=(dtype,)),
            "b": Tensor("N", dtypes=(dtype,)),
        }

    def oracle(self) -> Callable[..., Any]:
        """From the definition, two passes."""

        def layer_norm(m: Any, x: Any, w: Any, b: Any) -> Any:
            difference = x - m.mean(x, axis=-1, keepdims=True)
            variance = m.mean(difference * difference, axis=-1, keepdims=True)
            return difference * m.rsqrt(variance + _EPS) * w + b

        return layer_norm

    def right(self, arguments: Arguments) -> Array:
        """Two passes of tree sums."""
        return _normalised(arguments)

    def native(self, arguments: Arguments) -> Array:
        """torch.nn.functional.layer_norm."""
        import torch

        x, w, b = (torch.from_numpy(arguments[name]) for name in "xwb")
        count = x.shape[-1]
        result = torch.nn.functional.layer_norm(x, (count,), w, b, _EPS)
        normed: Array = result.numpy()
        return normed

    def others(self, arguments: Arguments) -> Iterator[Output]:
        """One term after the other, NumPy, Welford, and fused in the last step."""
        yield Output("sequential", _normalised(arguments, total=fold))
        yield Output("numpy", _normalised(arguments, total=lambda x: x.sum(-1, dtype=f32)))
        yield Output("welford", _scaled(arguments, *_welford(arguments["x"])))
        mean = tree_sum(arguments["x"]) / f32(arguments["x"].shape[-1])
        difference = arguments["x"] - mean[..., None]
        variance = tree_sum(difference * difference) / f32(difference.shape[-1])
        normal = difference * (f32(1) / np.sqrt(variance + f32(_EPS)))[..., None]
        yield Output("fma", fused(normal, arguments["w"], arguments["b"]), declared=True)

    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """Narrow formats, lost terms and constants, a factor, one pass."""
        yield "fp16 variance sum", _normalised(arguments, squares=_narrow_sum)
        yield "bf16 mean", _normalised(arguments, store=bfloat16)
        yield "dropped last term", _normalised(arguments, squares=lambda x: tree_sum(x[..., :-1]))
        yield "eps omitted", _normalised(arguments, eps=0.0)
        yield "n-1", _normalised(arguments, lost=1)
        yield "x(1+1e-5)", _normalised(arguments) * f32(1 + 1e-5)
        x, count = arguments["x"], f32(arguments["x"].shape[-1])
        mean = tree_sum(x) / count
        variance = np.maximum(tree_sum(x * x) / count - mean * mean, f32(0))
        yield "one-pass variance", _scaled(arguments, mean, variance)


def _narrow_sum(x: Array) -> Array:
    return tree_sum(x, np.float16)


def _normalised(
    arguments: Arguments,
    *,
    total: Callable[[Array], Array] = tree_sum,
    squares: Callable[[Array], Array] | None = None,
    store: Callable[[Array], Array] = same,
    eps: float = _EPS,
    lost: int = 0,
) -> Array:
    x = arguments["x"]
    mean = store(total(x) / f32(x.shape[-1]))
    difference = x - mean[..., None]
    variance = (squares or total)(difference * difference) / f32(x.shape[-1] - lost)
    return _scaled(arguments, mean, variance, eps)


def _scaled(arguments: Arguments, mean: Array, variance: Array, eps: float = _EPS) -> Array:
    rate = f32(1) / np.sqrt(variance + f32(eps))
    difference = arguments["x"] - mean[..., None]
    result: Array = difference * rate[..., None] * arguments["w"] + arguments["b"]
    return result


def _welford(x: Array) -> tuple[Array, Array]:
    mean: Array = np.zeros(x.shape[:-1], f32)
    squares = mean
    for index in range(x.shape[-1]):
        delta = x[..., index] - mean
        mean = mean + delta / f32(index + 1)
        squares = squares + delta * (x[..., index] - mean)
    return mean, squares / f32(x.shape[-1])
