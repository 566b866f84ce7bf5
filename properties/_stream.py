"""Numbers drawn from a counter: an element depends on seed, argument and index, never on sizes.

So an array cut to smaller sizes keeps the values of what is left, and shrinking a size of a failing
example does not redraw the rest of it.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

# Odd 64-bit constants: steps of the counter along an axis, and the mixer of splitmix64
# (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
_STEPS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_WORD = (1 << 64) - 1
_LANES = 4
_LANE_SPAN = 65535.0
BELL_REACH: float = (3.0 * _LANES) ** 0.5  # the sum's largest distance from its mean, in deviations


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(_MIX[0])
    words = (words ^ (words >> np.uint64(27))) * np.uint64(_MIX[1])
    return words ^ (words >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class Stream:
    """A source of numbers for one argument of one example."""

    seed: int
    name: str

    def _key(self, salt: int) -> int:
        text = f"{self.seed}/{self.name}/{salt}".encode()
        return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")

    def bits(self, shape: Shape, salt: int = 0) -> Words:
        """64 random bits an element, shape ``shape``; other salts give unrelated arrays."""
        # One axis at least: NumPy warns of overflow in single numbers, not in arrays.
        total = np.full((1,) * max(1, len(shape)), self._key(salt), np.uint64)
        for axis, size in enumerate(shape):
            step = (_STEPS[axis % len(_STEPS)] * (2 * (axis // len(_STEPS)) + 1)) & _WORD
            along = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(step)
            total = total + along.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
        mixed = _mixed(_mixed(total))
        return mixed if shape else mixed.reshape(())

    def uniform(self, shape: Shape, salt: int = 0) -> Floats:
        """Uniform in [0, 1)."""
        return (self.bits(shape, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def bell(self, shape: Shape, salt: int = 0) -> Floats:
        """Mean 0, variance 1, bell-shaped within 3.5: the sum of four uniform lanes of 16 bits."""
        words = np.ascontiguousarray(self.bits(shape, salt).reshape(-1))
        lanes = words.view(np.uint16).reshape(-1, _LANES).astype(np.float64)
        centred = lanes.sum(axis=1) / _LANE_SPAN - _LANES / 2
        deviation = (_LANES / 12) ** 0.5
        drawn: Floats = (centred / deviation).reshape(shape)
        return drawn

    def below(self, count: int, shape: Shape, salt: int = 0) -> NDArray[np.int64]:
        """Whole numbers from 0 to count - 1."""
        return (self.bits(shape, salt) % np.uint64(max(1, count))).astype(np.int64)

    def number(self, salt: int = 0) -> float:
        """One number in [0, 1)."""
        return self._key(salt ^ 0x5EED) / 2.0**64

    def pick(self, count: int, salt: int = 0) -> int:
        """One whole number from 0 to count - 1."""
        return self._key(salt ^ 0x91C4) % max(1, count)

    def rows(self, shape: Shape, salt: int = 0) -> Words:
        """64 random bits a row (the last axis has size 1); of a 1-D shape, an element."""
        return self.bits((*shape[:-1], 1) if len(shape) > 1 else shape, salt)
