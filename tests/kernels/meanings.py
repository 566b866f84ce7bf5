"""Kernels whose results at the edges of a type say what the compiled code means."""

import triton
import triton.language as tl


@triton.jit
def division(x, y, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    a, b = tl.load(x + place), tl.load(y + place)
    tl.store(out + place, a // b)
    tl.store(out + BLOCK + place, a % b)


@triton.jit
def shifts(x, y, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    a, b = tl.load(x + place), tl.load(y + place)
    tl.store(out + place, a << b)
    tl.store(out + BLOCK + place, a >> b)


@triton.jit
def whole(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(x + place).to(out.dtype.element_ty))


@triton.jit
def extremes(x, y, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    a, b = tl.load(x + place), tl.load(y + place)
    every: tl.constexpr = tl.PropagateNan.ALL
    tl.store(out + place, tl.maximum(a, b))
    tl.store(out + BLOCK + place, tl.minimum(a, b))
    tl.store(out + 2 * BLOCK + place, tl.maximum(a, b, propagate_nan=every))
    tl.store(out + 3 * BLOCK + place, tl.minimum(a, b, propagate_nan=every))
    tl.store(out + 4 * BLOCK + place, tl.clamp(a, -1.0, 1.0))
    tl.store(out + 5 * BLOCK + place, tl.clamp(a, -1.0, 1.0, propagate_nan=every))


@triton.jit
def largest(x, values, places, BLOCK: tl.constexpr):
    value, place = tl.max(tl.load(x + tl.arange(0, BLOCK)), 0, return_indices=True)
    tl.store(values, value)
    tl.store(places, place)
    tl.store(values + 1, tl.max(tl.load(x + tl.arange(0, BLOCK)), 0))
