"""The eight kinds of input that every workload is judged on."""

from collections.abc import Callable

import numpy as np

from trivet.ci._power.numbers import Array, f32

KINDS = ("normal", "wide", "constant", "cancelling", "integers", "subnormal", "offset", "positive")

Shape = tuple[int, ...]
Random = np.random.Generator


def draw(rng: Random, shape: Shape, kind: str) -> Array:
    """float32 of `shape`; cases lie along the first axis. Raises KeyError for an unknown kind."""
    return _DRAWS[kind](rng, shape).astype(f32)


def usual(kind: str, *unfit: str) -> str:
    """`kind`, or "normal" where the operand has no use for it."""
    return "normal" if kind in unfit else kind


def spread_exponents(rng: Random, shape: Shape, low: float, high: float) -> Array:
    """Positive float32 with exponents of ten uniform between `low` and `high`."""
    return np.asarray(10.0 ** rng.uniform(low, high, shape), f32)


def _cancelling(rng: Random, shape: Shape) -> Array:
    x = rng.standard_normal(shape)
    half = shape[-1] // 2
    noise = 1 + 1e-6 * rng.standard_normal(x[..., :half].shape)
    x[..., half : 2 * half] = -x[..., :half] * noise
    return x


def _constant(rng: Random, shape: Shape) -> Array:
    factor = rng.choice([1.0, 3.0, 0.7, -1.1], (shape[0],) + (1,) * (len(shape) - 1))
    constant: Array = np.full(shape, 0.1) * factor
    return constant


def _wide(rng: Random, shape: Shape) -> Array:
    exponents: Array = 10.0 ** rng.uniform(-12, 12, shape)
    return rng.choice(np.array([-1.0, 1.0]), shape) * exponents


def _subnormal(rng: Random, shape: Shape) -> Array:
    exponents: Array = 10.0 ** rng.uniform(-44, -36, shape)
    return rng.standard_normal(shape) * exponents


_DRAWS: dict[str, Callable[[Random, Shape], Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "wide": _wide,
    "constant": _constant,
    "cancelling": _cancelling,
    "integers": lambda rng, shape: rng.integers(-8, 9, shape),
    "subnormal": _subnormal,
    "offset": lambda rng, shape: 1e4 + rng.standard_normal(shape),
    "positive": lambda rng, shape: rng.random(shape),
}
