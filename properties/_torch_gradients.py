"""Gradients of references in torch: float64 autograd, and how rounding of the inputs moves it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet.oracles._errors import OracleError
from trivet.oracles._evaluate import Argument, Oracle, call_by_name, outputs_of
from trivet.oracles._logic import Opaque
from trivet.oracles._namespace import Namespace
from trivet.properties._torch_reference import in_floats, untraced

_MOVES = 4
# Relative changes of inputs: half an ulp of float32 or one; a sixteenth tells a kink from a slope.
_HALF, _ONE, _SHORT = 2.0**-24, 2.0**-23, 2.0**-27
# A change below this part of the largest gradient is float64 rounding, no kink.
_NOISE = 2.0**-36

Gradients = list[NDArray[np.float64]]


def torch_gradients(
    oracle: Oracle,
    arguments: Mapping[str, Argument],
    wrt: Sequence[str],
    cotangents: Sequence[NDArray[np.float64] | None],
) -> list[Opaque]:
    """Gradients of sum(cotangent * output) to each argument of `wrt`, of the arguments' shapes.

    Values are float64 autograd's. The condition is the change of float32 autograd on inputs that
    are off by half an ulp, over half an ulp; where ever shorter moves of the inputs keep changing
    a gradient as much, it has a kink and the condition is infinite. Raises OracleError where
    autograd cannot differentiate the reference.
    """

    def run(moved: Mapping[str, Argument], floats: torch.dtype) -> Gradients:
        return _autograd(oracle, moved, wrt, cotangents, floats)

    values = run(arguments, torch.float64)
    conditions, changes, shorts = ([np.zeros(v.shape) for v in values] for _ in range(3))
    for seed in range(_MOVES):
        for widest, size, floats in (
            (conditions, _HALF, torch.float32),
            (changes, _ONE, torch.float64),
            (shorts, _SHORT, torch.float64),
        ):
            others = run(_moved(arguments, seed, size), floats)
            for most, other, value in zip(widest, others, values, strict=True):
                np.fmax(most, np.abs(other - value), out=most)
    return [_value(*parts) for parts in zip(values, conditions, changes, shorts, strict=True)]


def _value(value: Any, condition: Any, change: Any, short: Any) -> Opaque:
    noise = _NOISE * np.abs(value).max(initial=0.0)
    kink = (short > change / 2) & (short > noise)
    blame = "float64 autograd of the reference"
    return Opaque(
        value,
        np.full(value.shape, np.inf),
        lambda index: blame,
        blame,
        np.where(kink, np.inf, condition / _HALF),
        np.where(kink, np.inf, change),
    )


def _autograd(
    oracle: Oracle,
    arguments: Mapping[str, Argument],
    wrt: Sequence[str],
    cotangents: Sequence[NDArray[np.float64] | None],
    floats: torch.dtype,
) -> Gradients:
    tensors = {name: untraced(value, floats) for name, value in arguments.items()}
    leaves = [torch.as_tensor(tensors[name]).requires_grad_() for name in wrt]
    tensors.update(zip(wrt, leaves, strict=True))
    name = getattr(oracle, "__name__", repr(oracle))
    try:
        with in_floats(floats):
            outputs = outputs_of(call_by_name(oracle, tensors, Namespace()))
            pairs = [
                (output, torch.as_tensor(g).to(output.dtype).reshape(output.shape))
                for output, g in zip(outputs, cotangents, strict=True)
                if g is not None and isinstance(output, torch.Tensor) and output.requires_grad
            ]
            if not pairs:
                raise ValueError("none of its outputs depends on its arguments by autograd")
            found = torch.autograd.grad(
                [o for o, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True
            )
    except Exception as error:
        text = f"autograd cannot differentiate the reference {name}: {error}"
        raise OracleError(text) from error
    return [
        np.zeros(tuple(leaf.shape)) if g is None else g.detach().double().numpy()
        for leaf, g in zip(leaves, found, strict=True)
    ]


def _moved(arguments: Mapping[str, Argument], seed: int, size: float) -> dict[str, Argument]:
    generator = np.random.default_rng(seed)
    return {name: _off(value, generator, size) for name, value in arguments.items()}


def _off(value: Argument, generator: np.random.Generator, size: float) -> Argument:
    """A float array off by a relative ``size``, zeros by that of the largest element."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    signs = generator.integers(0, 2, value.shape) * 2 - 1
    scale = np.abs(value).max(initial=0.0) or 1.0
    return np.asarray(value + signs * size * np.where(value == 0, scale, np.abs(value)))
