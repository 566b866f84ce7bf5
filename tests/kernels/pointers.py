"""Kernels that take pointers from memory, and other rare operations."""

import triton
import triton.language as tl


@triton.jit
def add_tables(tables, lengths, out, stride, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    start = tl.load(tables + program).to(tl.pointer_type(tl.float32))
    place = tl.arange(0, BLOCK)
    inside = place < tl.load(lengths + program)
    tl.store(out + program * stride + place, tl.load(start + place, mask=inside, other=0.0))


@triton.jit
def scale_tables(tables, BLOCK: tl.constexpr):
    start = tl.load(tables + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    place = start + tl.arange(0, BLOCK)
    tl.store(place, tl.load(place) * 2)


@triton.jit
def distance(x, out, steps):
    tl.store(out, (x + steps).to(tl.int64) - x.to(tl.int64))


@triton.jit
def octets(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(x.to(tl.pointer_type(tl.int8), bitcast=True) + place))


@triton.jit
def _difference_or_double(a, b):
    if a > b:
        return a - b
    return b * 2


@triton.jit
def _collatz(a):
    steps = 0
    while a > 1:
        a = tl.where(a % 2 == 0, a // 2, 3 * a + 1)
        steps += 1
    return steps


@triton.jit
def _crossed(a, next_a, b, next_b):
    return a + next_b, next_a - b


@triton.jit
def mapped(x, y, whole, out, steps, crossed, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + place), tl.load(y + place)
    tl.store(out + place, tl.map_elementwise(_difference_or_double, a, b))
    tl.store(steps + place, tl.map_elementwise(_collatz, tl.load(whole + place)))
    pairs = tl.map_elementwise(_crossed, a, b, pack=2)
    tl.store(crossed + place, pairs[0])


@triton.jit
def waits(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.inline_asm_elementwise(
        "griddepcontrol.wait; // dummy $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(out + place, tl.load(x + place))


@triton.jit
def talks(x, BLOCK: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.device_print("value", value, tl.program_id(0))
    tl.device_print("bits", value, hex=True)


@triton.jit
def extremes(x, high, low, BLOCK: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_max(high + tl.arange(0, BLOCK) % 4, value)
    tl.atomic_min(low, tl.min(value, 0))
