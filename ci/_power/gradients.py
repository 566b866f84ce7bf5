"""Gradients of one step of the closed-form continuous-time cell."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trivet import Tensor, sizes
from trivet.ci._power.inputs import Random, draw, spread_exponents, usual
from trivet.ci._power.numbers import (
    Arguments,
    Array,
    bfloat16,
    f32,
    once,
    same,
    tf32,
    tree_depth,
    tree_sum,
)
from trivet.ci._power.workload import Output, Promise, Workload
from trivet.oracles import cfc
from trivet.oracles._evaluate import Value
from trivet.oracles._gradient import gradient
from trivet.oracles._precision import Precision
from trivet.properties.cfc.inputs import ARGS, STATE

_ROWS, _FEATURES, _HIDDEN = 3, 6, 8
_NAMES = ("g", "x", "h", "dt", "W_in", "W_rec", "b", "tau")
_WANTED = ("x", "h", "W_in", "W_rec", "b", "tau")


@dataclass(frozen=True)
class _Variant:
    """One hand-written backward pass; every gradient of a case in one row."""

    sums: Any = f32
    operand: Callable[[Array], Array] = same
    store: Callable[[Array], Array] = same
    slope: bool = True
    stale: bool = False
    lost_row: bool = False

    def __call__(self, arguments: Arguments) -> Array:
        g, x, h, dt, W, U, b, tau = (arguments[name] for name in _NAMES)
        age = -(dt[:, :, None] / tau[:, None])
        decay, fresh = once(np.exp, age), -once(np.expm1, age)
        drive = tree_sum(x[:, :, None] * W[:, None]) + tree_sum(h[:, :, None] * U[:, None])
        activity = once(np.tanh, drive + b[:, None])
        slope = f32(1) - activity * activity if self.slope else f32(1)
        inner = self.store(g * fresh * slope)
        if self.lost_row:
            inner = inner * (np.arange(_ROWS) < _ROWS - 1)[:, None].astype(f32)
        held = np.roll(h, 1, axis=1) if self.stale else h
        dtau = (g * (held - activity)) * decay * dt[:, :, None] / (tau * tau)[:, None]
        parts = [
            self._sum(inner[:, :, :, None], W[:, None], 2),
            self._sum(inner[:, :, :, None], U[:, None], 2) + g * decay,
            self._sum(inner[:, :, :, None], x[:, :, None], 1),
            self._sum(inner[:, :, :, None], held[:, :, None], 1),
            tree_sum(np.moveaxis(inner, 1, -1), self.sums),
            tree_sum(np.moveaxis(dtau, 1, -1), self.sums),
        ]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], 1)

    def _sum(self, left: Array, right: Array, axis: int) -> Array:
        return tree_sum(np.moveaxis(self.operand(left) * self.operand(right), axis, -1), self.sums)


def _gradients(exact: Arguments, precision: Precision, profile: str) -> tuple[Array, Array]:
    given = {name: exact[name] for name in ("x", "h", "dt", "W_in", "W_rec", "b", "tau")}
    found = gradient(cfc.step, given, _WANTED, [exact["g"]], precision=precision, profile=profile)
    values = np.concatenate([part.value.ravel() for part in found])
    return values, np.concatenate([np.ravel(np.asarray(part.error)) for part in found])


class CellGradients(Workload):
    """Gradients to x (3, 6), h (3, 8), W_in, W_rec, b and tau in one row a case."""

    uses_functions = True
    gradients = True
    name = "cfc step gradients"
    # The longest sum is of the drive: over h, then the sum over x and the bias.
    promise = Promise(depth=tree_depth(_HIDDEN) + 2)

    def __init__(self, cases: int, batches: int) -> None:
        self.cases, self.batches = cases, batches
        counts = {"B": _ROWS, "D": _FEATURES, "H": _HIDDEN}
        self.dims = {name: sizes(count, count) for name, count in counts.items()}

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """A step's inputs of a kind, and a normal gradient to its result."""
        x = draw(rng, (cases, _ROWS, _FEATURES), usual(kind, "wide", "subnormal"))
        low = -6 if kind in ("wide", "subnormal") else -2
        return {
            "g": draw(rng, (cases, _ROWS, _HIDDEN), "normal"),
            "x": x / f32(1e3) if kind == "offset" else x,
            "h": draw(rng, (cases, _ROWS, _HIDDEN), usual(kind, "wide", "offset")),
            "dt": spread_exponents(rng, (cases, _ROWS), low, 1),
            "W_in": draw(rng, (cases, _HIDDEN, _FEATURES), "normal") / f32(_FEATURES**0.5),
            "W_rec": draw(rng, (cases, _HIDDEN, _HIDDEN), "normal") / f32(_HIDDEN**0.5),
            "b": draw(rng, (cases, _HIDDEN), "normal"),
            "tau": once(np.exp, draw(rng, (cases, _HIDDEN), "normal")),
        }

    def domains(self, dtype: str) -> dict[str, Tensor]:
        """Those of the shipped contract of the backward step."""
        return {
            name: replace(STATE if name == "g" else ARGS[name], dtypes=(dtype,)) for name in _NAMES
        }

    def oracle(self) -> Callable[..., Any]:
        """The shipped oracle of the forward step."""
        return cfc.step

    def value(self, exact: Arguments, precision: Precision, profile: str) -> Value:
        """Gradients of that oracle case by case, bounded for every order of accumulation."""
        cases = [
            _gradients({name: x[case] for name, x in exact.items()}, precision, profile)
            for case in range(len(exact["g"]))
        ]
        values, errors = (np.stack(part) for part in zip(*cases, strict=True))
        return Value(values, errors, lambda index: "all paths to the argument")

    def right(self, arguments: Arguments) -> Array:
        """Written by hand, tree sums."""
        return _Variant()(arguments)

    def native(self, arguments: Arguments) -> Array:
        """torch.autograd."""
        import torch

        given = {name: torch.from_numpy(value) for name, value in arguments.items()}
        wanted = [given[name].requires_grad_() for name in _WANTED]
        age = -given["dt"][:, :, None] / given["tau"][:, None]
        drive = given["x"] @ given["W_in"].mT + given["h"] @ given["W_rec"].mT + given["b"][:, None]
        state = given["h"] * age.exp() - torch.expm1(age) * drive.tanh()
        parts = torch.autograd.grad((state * given["g"]).sum(), wanted)
        result: Array = torch.cat([part.reshape(len(part), -1) for part in parts], 1).numpy()
        return result

    def others(self, arguments: Arguments) -> Iterator[Output]:
        """None besides torch's."""
        return iter(())

    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """Narrow formats, a lost row, a lost slope, a stale state, a factor."""
        variants = {
            "fp16 accumulator": _Variant(sums=np.float16),
            "bf16 dz": _Variant(store=bfloat16),
            "tf32 gradients": _Variant(operand=tf32),
            "dropped last row": _Variant(lost_row=True),
            "missing 1-tanh^2": _Variant(slope=False),
            "stale h": _Variant(stale=True),
        }
        yield from ((name, variant(arguments)) for name, variant in variants.items())
        yield "x(1+1e-5)", self.right(arguments) * f32(1 + 1e-5)
