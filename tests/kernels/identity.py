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
    high = tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32)
    mixed = (a // b) * 3 + a % b - (a >> 3) + (b << 2) + (a & b) * (a ^ b) + high
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


def _launches_on_floats(p, rng):
    return [
        (early_return, {"x": _floats(rng, p, 64), "out": _zeros(p, 64)}, ("out",)),
        (sorted_rows, {"x": _floats(rng, p, 64), "out": _zeros(p, 64)}, ("out",)),
        (random_numbers, {"out": _zeros(p, 64), "seed": 1234, "n": 64 * p - 5}, ("out",)),
        (
            recurrence,
            {"x": _floats(rng, p, 64), "gate": _floats(rng, p, 64), "out": _zeros(p, 64)},
            ("out",),
        ),
        (
            ragged_sum,
            {
                "x": _floats(rng, p, 300),
                "lengths": rng.integers(0, 300, p).astype(np.int32),
                "out": _zeros(p),
                "stride": 300,
            },
            ("out",),
        ),
        (
            locked_sum,
            {"x": _floats(rng, p, 64), "out": _zeros(64), "lock": _zeros(1, dtype=np.int32)},
            ("out", "lock"),
        ),
    ]


def _launches_on_other_types(p, rng):
    x, y = rng.integers(-1000, 1000, (2, 64 * p)).astype(np.int32)
    y[y == 0] = 7
    tied = rng.integers(0, 40, (p, 64)).astype(np.float32)
    halves = {name: _floats(rng, p, 64, 64, dtype=np.float16) for name in ("a", "b")}
    doubles = _floats(rng, p, 64, dtype=np.float64)
    return [
        (
            largest,
            {"x": tied, "values": _zeros(p), "places": _zeros(p, dtype=np.int32)},
            ("values", "places"),
        ),
        (half_product, {**halves, "out": _zeros(p, 64, 64)}, ("out",)),
        (double_statistics, {"x": doubles, "out": _zeros(p, 3, dtype=np.float64)}, ("out",)),
        (
            integers,
            {"x": x, "y": y, "out": _zeros(64 * p, dtype=np.int32), "n": 64 * p - 9},
            ("out",),
        ),
    ]


def _zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def cases(programs, seed):
    """One launch of each kernel."""
    rng = np.random.default_rng(seed)
    launches = _launches_on_floats(programs, rng) + _launches_on_other_types(programs, rng)
    return [
        Case(kernel.__name__, kernel, (programs,), arguments, {"BLOCK": 64}, outputs)
        for kernel, arguments, outputs in launches
    ]
