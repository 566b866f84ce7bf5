"""Triton's counter-based random numbers (triton.language.random): Philox 4x32, ten rounds."""

import numpy as np
import numpy.typing as npt

from trivet.oracles._formats import Array

_ROUND = (0xD2511F53, 0xCD9E8D57)
_KEY = (0x9E3779B9, 0xBB67AE85)
# The largest float32 below 2^-31 that keeps the product under 1; the literal of triton.language.
_SCALE = 4.6566127342e-10


def _philox(seed: int, offset: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    mask = np.uint64(0xFFFFFFFF)
    counter = [np.asarray(offset).astype(np.int64).astype(np.uint64) & mask]
    counter += [np.zeros_like(counter[0]) for _ in range(3)]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)]
    for _ in range(10):
        first, second = counter[0] * np.uint64(_ROUND[0]), counter[2] * np.uint64(_ROUND[1])
        counter = [
            (second >> np.uint64(32)) ^ counter[1] ^ key[0],
            second & mask,
            (first >> np.uint64(32)) ^ counter[3] ^ key[1],
            first & mask,
        ]
        key = [(part + np.uint64(step)) & mask for part, step in zip(key, _KEY, strict=True)]
    return counter[0].astype(np.uint32)


def uniform(seed: int, offset: npt.ArrayLike) -> tuple[Array, Array]:
    """tl.rand(seed, offset) in [0, 1): exact product in float64, and its float32 execution."""
    bits = _philox(int(seed), offset).view(np.int32)
    folded = np.where(bits < 0, ~bits, bits)
    exact = folded.astype(np.float64) * _SCALE
    rounded = folded.astype(np.float32) * np.float32(_SCALE)
    return exact, rounded.astype(np.float64)
