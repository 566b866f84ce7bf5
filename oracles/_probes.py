"""Inputs on which every partial sum is exact, in any order: results must agree bit for bit."""

import math

import numpy as np

from trivet.oracles._formats import FORMATS, Array

# 12 bits are one more than tf32 and float16 hold, four more than bfloat16: an odd integer of 12
# bits tells them apart from float32.
_TELLING = 12


def exact_magnitude(terms: int, factors: int = 1, accumulate: str = "float32") -> int:
    """The largest M such that any sum of `terms` products of `factors` integers up to M in
    magnitude is exact in `accumulate`; 0 when not even signs are."""
    room = 2 ** FORMATS[accumulate].significand // max(terms, 1)
    magnitude = int(room ** (1 / factors)) + 1
    while magnitude**factors > room:
        magnitude -= 1
    return magnitude


def odd_integers(
    generator: np.random.Generator, shape: tuple[int, ...], terms: int, accumulate: str = "float32"
) -> Array:
    """Odd integers whose sums of `terms`, with any signs, are exact, float64 of `shape`.

    They have up to 12 bits: with factors of +-1 they show tf32 and bfloat16 operands and float16
    accumulators, and any factor such as 1 + 1e-5, by a changed bit. Raises ValueError when no odd
    integer will do.
    """
    room = exact_magnitude(terms, 1, accumulate)
    if room < 1:
        raise ValueError(f"no exact sum of {terms} odd integers in {accumulate}")
    bits = min(int(math.log2(room)), _TELLING)
    magnitude = 2 * generator.integers(0, 2 ** max(bits - 1, 0), shape) + 1
    return magnitude * signs(generator, shape)


def signs(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """+1 and -1 at random, float64 of `shape`."""
    return generator.choice(np.array([-1.0, 1.0]), shape)
