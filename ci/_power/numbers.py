"""Single-precision building blocks of the kernels that `trivet.ci.power` judges."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arguments = dict[str, Array]
f32 = np.float32

# One Triton program: 128 threads, at most 1024 elements a tile.
_BLOCK, _LANES = 1024, 128


def once(function: Callable[[Array], Array], x: Array) -> Array:
    """`function` in float64, rounded to float32 once, as the simulator computes it."""
    rounded: Array = function(np.asarray(x, np.float64)).astype(f32)
    return rounded


def tf32(x: Array) -> Array:
    """`x` rounded to the 11 significant bits of tf32, as float32."""
    bits = np.asarray(x, f32).view(np.uint32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)).view(f32)


def bfloat16(x: Array) -> Array:
    """`x` rounded to bfloat16, as float32."""
    return np.asarray(x, f32).astype(ml_dtypes.bfloat16).astype(f32)


def float16(x: Array) -> Array:
    """`x` rounded to float16, as float32."""
    return np.asarray(x).astype(np.float16).astype(f32)


def same(x: Array) -> Array:
    """`x`."""
    return x


def _geometry(count: int) -> tuple[int, int, int]:
    block = min(_BLOCK, 1 << (count - 1).bit_length())
    return block, min(_LANES, block), -(-count // block)


def tree_depth(count: int) -> int:
    """Most additions that a term of `tree_sum` passes through: tiles, elements a thread, lanes."""
    block, lanes, tiles = _geometry(count)
    return tiles - 1 + block // lanes - 1 + int(math.log2(lanes))


def tree_sum(terms: Array, dtype: Any = f32) -> Array:
    """Sums over the last axis as one Triton program adds, in `dtype`; float32 of the other axes."""
    count = terms.shape[-1]
    block, lanes, tiles = _geometry(count)
    padded = np.zeros((*terms.shape[:-1], tiles * block), dtype)
    padded[..., :count] = terms
    part = _added(padded.reshape(*terms.shape[:-1], tiles, block))
    part = _added(part.reshape(*part.shape[:-1], block // lanes, lanes))
    while part.shape[-1] > 1:
        half = part.shape[-1] // 2
        part = part[..., :half] + part[..., half:]
    return part[..., 0].astype(f32)


def _added(parts: Array) -> Array:
    total = parts[..., 0, :]
    for index in range(1, parts.shape[-2]):
        total = total + parts[..., index, :]
    return total


def fold(terms: Array, dtype: Any = f32) -> Array:
    """Sums over the last axis, one term after the other, in `dtype`; float32."""
    total: Array = np.add.accumulate(terms.astype(dtype), axis=-1, dtype=dtype)[..., -1]
    return total.astype(f32)


def fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding to float32 (the product of two float32 is exact in float64)."""
    rounded: Array = (a.astype(np.float64) * b + c).astype(f32)
    return rounded


def fused_dot(a: Array, b: Array) -> Array:
    """Dot products over the last axis, one fused multiply-add after the other."""
    total = np.zeros(a.shape[:-1], f32)
    for index in range(a.shape[-1]):
        total = fused(a[..., index], b[..., index], total)
    return total
