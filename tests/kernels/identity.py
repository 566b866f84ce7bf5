"""Kernels for the comparison with Triton's interpreter, beside those of the race."""

import numpy as np
import triton
import triton.language as tl

from trivet.ci._race_kernels import Case


@triton.jit
def early_return(x, out, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    if program % 3 == 1:
        return
    place = program * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place)
    if program % 3 == 2:
        tl.store(out + place, value * 2)
        return
    tl.store(out + place, value + 1)


@triton.jit
def largest(x, values, places, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    row = tl.load(x + program * BLOCK + tl.arange(0, BLOCK))
    value, place = tl.max(row, 0, return_indices=True)
    tl.store(values + program, value)
    tl.store(places + program, place)


@triton.jit
def sorted_rows(x, out, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, tl.sort(tl.load(x + place)))


@triton.jit
def random_numbers(out, seed, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, tl.rand(seed, place), mask=place < n)


@triton.jit
def _linear(scale, shift, next_scale, next_shift):
    return scale * next_scale, shift * next_scale + next_shift


@triton.jit
def recurrence(x, gate, out, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scales, shifts = tl.load(gate + place), tl.load(x + place)
    _, state = tl.associative_scan((scales, shifts), 0, _linear)
    tl.store(out + place, state)


@triton.jit
def half_product(a, b, out, BLOCK: tl.constexpr):
    line = tl.arange(0, BLOCK)
    place = tl.program_id(0) * BLOCK * BLOCK + line[:, None] * BLOCK + line[None, :]
    tl.store(out + place, tl.dot(tl.load(a + place), tl.load(b + place)))


@triton.jit
def double_statistics(x, out, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    value = tl.load(x + program * BLOCK + tl.arange(0, BLOCK))
    mean = tl.sum(value, 0) / BLOCK
    spread = tl.sqrt(tl.sum((value - mean) * (value - mean), 0) / BLOCK)
    tl.store(out + program * 3, mean)
    tl.store(out + program * 3 + 1, spread)
    tl.store(out + program * 3 + 2, tl.log(tl.sum(tl.exp(value), 0)) + tl.sin(mean))


@triton.jit
def integers(x, y, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    a = tl.load(x + place, mask=inside, other=1)
    b = tl.load(y + place, mask=inside, other=1)
    mixed = (a // b) * 3 + a % b - (a >> 3) + (b << 2) + (a & b) * (a ^ b) + tl.umulhi(a, b)
    total = tl.cumsum(mixed, 0) + tl.max(a, 0) - tl.sum(b, 0)
    tl.store(out + place, total, mask=inside)


@triton.jit
def ragged_sum(x, lengths, out, stride, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    length = tl.load(lengths + program)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, length, BLOCK):
        place = start + tl.arange(0, BLOCK)
        total += tl.load(x + program * stride + place, mask=place < length, other=0.0)
    tl.store(out + program, tl.sum(total, 0))


@triton.jit
def locked_sum(x, out, lock, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * BLOCK + place)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + place, tl.load(out + place) + value)
    tl.atomic_xchg(lock, 0)


def _floats(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def cases(programs, seed):
    """One launch of each kernel."""
    rng, block = np.random.default_rng(seed), {"BLOCK": 64}
    p = programs
    spread = rng.integers(-1000, 1000, (2, 64 * p)).astype(np.int32)
    spread[1][spread[1] == 0] = 7
    half = np.float16
    launches = [
        (early_return, {"x": _floats(rng, p, 64), "out": np.zeros((p, 64), np.float32)}, ("out",)),
        (
            largest,
            {
                "x": rng.integers(0, 40, (p, 64)).astype(np.float32),
                "values": np.zeros(p, np.float32),
                "places": np.zeros(p, np.int32),
            },
            ("values", "places"),
        ),
        (sorted_rows, {"x": _floats(rng, p, 64), "out": np.zeros((p, 64), np.float32)}, ("out",)),
        (
            random_numbers,
            {"out": np.zeros((p, 64), np.float32), "seed": 1234, "n": 64 * p - 5},
            ("out",),
        ),
        (
            recurrence,
            {
                "x": _floats(rng, p, 64),
                "gate": _floats(rng, p, 64),
                "out": np.zeros((p, 64), np.float32),
            },
            ("out",),
        ),
        (
            half_product,
            {
                "a": _floats(rng, p, 64, 64, dtype=half),
                "b": _floats(rng, p, 64, 64, dtype=half),
                "out": np.zeros((p, 64, 64), np.float32),
            },
            ("out",),
        ),
        (
            double_statistics,
            {"x": _floats(rng, p, 64, dtype=np.float64), "out": np.zeros((p, 3))},
            ("out",),
        ),
        (
            integers,
            {"x": spread[0], "y": spread[1], "out": np.zeros(64 * p, np.int32), "n": 64 * p - 9},
            ("out",),
        ),
        (
            ragged_sum,
            {
                "x": _floats(rng, p, 300),
                "lengths": rng.integers(0, 300, p).astype(np.int32),
                "out": np.zeros(p, np.float32),
                "stride": 300,
            },
            ("out",),
        ),
        (
            locked_sum,
            {
                "x": _floats(rng, p, 64),
                "out": np.zeros(64, np.float32),
                "lock": np.zeros(1, np.int32),
            },
            ("out", "lock"),
        ),
    ]
    return [
        Case(kernel.__name__, kernel, (p,), arguments, block, outputs)
        for kernel, arguments, outputs in launches
    ]
