"""One step of AdamW."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivet import Tensor, log_uniform, sizes
from trivet.ci._power.inputs import Random, draw, spread_exponents, usual
from trivet.ci._power.numbers import Arguments, Array, bfloat16, f32, fused, same
from trivet.ci._power.workload import Output, Promise, Workload

_COUNT = 64
_NAMES = ("p", "g", "mean", "square")
_RATE, _BETA1, _BETA2, _EPS, _DECAY, _STEP = 1e-3, 0.9, 0.999, 1e-8, 1e-2, 7
_CORRECTION1, _CORRECTION2 = 1 - _BETA1**_STEP, 1 - _BETA2**_STEP


@dataclass(frozen=True)
class _Variant:
    """One way to compute the step."""

    first: Callable[[Array], Array] = same
    second: Callable[[Array], Array] = same
    eps: float = _EPS
    inner_eps: bool = False
    corrected: bool = True
    stale: bool = False
    decay: float = _DECAY
    factor: float = 1.0
    blend: Callable[[Array, Array, float], Array] = lambda old, new, keep: (
        f32(keep) * old + f32(1 - keep) * new
    )

    def __call__(self, arguments: Arguments) -> Array:
        p, g, m, v = (arguments[name] for name in _NAMES)
        first = self.first(self.blend(m, g, _BETA1))
        second = self.second(self.blend(v, g * g, _BETA2))
        one, two = (_CORRECTION1, _CORRECTION2) if self.corrected else (1.0, 1.0)
        if self.inner_eps:
            size = np.sqrt(second / f32(two) + f32(self.eps))
        else:
            size = np.sqrt(second) / f32(two**0.5) + f32(self.eps)
        update = f32(_RATE / one) * f32(self.factor) * ((m if self.stale else first) / size)
        result: Array = p * f32(1 - _RATE * self.decay) - update
        return result


def _lerp(old: Array, new: Array, keep: float) -> Array:
    result: Array = old + f32(1 - keep) * (new - old)
    return result


def _fused(old: Array, new: Array, keep: float) -> Array:
    return fused(np.full_like(old, keep), old, f32(1 - keep) * new)


class AdamW(Workload):
    """p, g and the moments mean and square (cases, 64), out the new p."""

    name = "adamw step"
    promise = Promise()

    def __init__(self, cases: int, batches: int) -> None:
        self.cases, self.batches = cases, batches
        self.dims = {"N": sizes(1, _COUNT)}

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """Gradients of a kind; normal ones have scales from 1e-10 to 10, as have the moments."""
        shape = (cases, _COUNT)
        scale = spread_exponents(rng, (cases, 1), -10, 1)
        g = draw(rng, shape, usual(kind, "offset"))
        g = g * scale if kind == "normal" else g
        m = g * f32(0.5) + scale * draw(rng, shape, "normal") * f32(0.3)
        v = m * m * f32(0.01) + scale * scale * f32(1e-3)
        return {"p": draw(rng, shape, "normal"), "g": g, "mean": m, "square": v}

    def domains(self, dtype: str) -> dict[str, Tensor]:
        """Any gradients; the mean of their squares from the square of epsilon on, and 0."""
        squares = log_uniform(_EPS**2, 100.0, zero=True)
        named = {name: Tensor("N", dtypes=(dtype,)) for name in _NAMES}
        return {**named, "square": Tensor("N", dtypes=(dtype,), domain=squares)}

    def oracle(self) -> Callable[..., Any]:
        """Decoupled weight decay and bias-corrected moments; the moments in any form."""

        def step(m: Any, p: Any, g: Any, mean: Any, square: Any) -> Any:
            mean = m.lerp(mean, g, 1 - _BETA1)
            square = m.lerp(square, g * g, 1 - _BETA2)
            size = m.sqrt(square) / _CORRECTION2**0.5 + _EPS
            return p * (1 - _RATE * _DECAY) - _RATE / _CORRECTION1 * (mean / size)

        return step

    def right(self, arguments: Arguments) -> Array:
        """beta m + (1 - beta) g, rounded at each operation."""
        return _Variant()(arguments)

    def native(self, arguments: Arguments) -> Array:
        """torch.optim.AdamW."""
        return _torch_step(arguments, foreach=False)

    def others(self, arguments: Arguments) -> Iterator[Output]:
        """m + (1 - beta) (g - m), fused moments, and torch's multi-tensor form."""
        yield Output("lerp", _Variant(blend=_lerp)(arguments), declared=True)
        yield Output("fma", _Variant(blend=_fused)(arguments), declared=True)
        yield Output("torch foreach", _torch_step(arguments, foreach=True), declared=True)

    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """Narrow moments, eps, corrections and decay left out, a stale moment, factors."""
        variants = {
            "bf16 m": _Variant(first=bfloat16),
            "bf16 v": _Variant(second=bfloat16),
            "eps omitted": _Variant(eps=0.0),
            "eps inside sqrt": _Variant(inner_eps=True),
            "no bias correction": _Variant(corrected=False),
            "stale m": _Variant(stale=True),
            "weight decay dropped": _Variant(decay=0.0),
            "update x(1+1e-3)": _Variant(factor=1.001),
        }
        yield from ((name, variant(arguments)) for name, variant in variants.items())
        yield "x(1+1e-5)", self.right(arguments) * f32(1 + 1e-5)


def _torch_step(arguments: Arguments, *, foreach: bool) -> Array:
    import torch

    p, g, m, v = (torch.tensor(arguments[name]) for name in _NAMES)
    parameter = torch.nn.Parameter(p)
    parameter.grad = g
    optimizer = torch.optim.AdamW(
        [parameter],
        lr=_RATE,
        betas=(_BETA1, _BETA2),
        eps=_EPS,
        weight_decay=_DECAY,
        foreach=foreach,
    )
    before = torch.tensor(float(_STEP - 1))
    optimizer.state[parameter] = {"step": before, "exp_avg": m, "exp_avg_sq": v}
    optimizer.step()
    result: Array = parameter.detach().numpy()
    return result
