"""Kernels with one fault each, and right ones that look like them."""

import triton
import triton.language as tl


@triton.jit
def unmasked_load(x, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place)
    tl.store(out + place, value, mask=place < n)


@triton.jit
def unmasked_store(x, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < n, other=0.0)
    tl.store(out + place, value)


@triton.jit
def shifted_copy(x, out, n, shift, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    tl.store(out + place, tl.load(x + place + shift, mask=inside, other=0.0), mask=inside)


@triton.jit
def strided_copy(x, out, stride, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    inside = place < n
    tl.store(out + place, tl.load(x + place * stride, mask=inside), mask=inside)


@triton.jit
def no_other(x, out, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * n + place, mask=place < n)
    tl.store(out + tl.program_id(0), tl.sum(value, 0))


@triton.jit
def guarded_no_other(x, out, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * n + place, mask=place < n)
    tl.store(out + tl.program_id(0), tl.sum(tl.where(place < n, value, 0.0), 0))


@triton.jit
def shared_counter(out, SLOTS: tl.constexpr):
    place = out + tl.program_id(0) % SLOTS
    tl.store(place, tl.load(place) + 1.0)


@triton.jit
def same_store(out, value):
    tl.store(out, value)


@triton.jit
def own_store(out):
    tl.store(out, tl.program_id(0).to(tl.float32))


@triton.jit
def neighbour(x, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place + 1)
    tl.store(x + place, value)


@triton.jit
def in_place(x, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + place, tl.load(x + place) * 2)
    tl.store(x + place, tl.load(x + place) + 1)


@triton.jit
def atomic_and_plain(total, out):
    tl.atomic_add(total, 1.0)
    tl.store(out + tl.program_id(0), tl.load(total))


@triton.jit
def locked(total, lock):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + 1.0)
    tl.atomic_xchg(lock, 0)


@triton.jit
def unlocked_early(total, lock):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    value = tl.load(total)
    tl.atomic_xchg(lock, 0)
    tl.store(total, value + 1.0)


@triton.jit
def last_arriver(x, partial, count, out, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    program = tl.program_id(0)
    value = tl.load(x + program * BLOCK + tl.arange(0, BLOCK))
    tl.store(partial + program, tl.sum(value, 0))
    if tl.atomic_add(count, 1) == PROGRAMS - 1:
        tl.store(out, tl.sum(tl.load(partial + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def last_arriver_without_order(x, partial, count, out, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    program = tl.program_id(0)
    value = tl.load(x + program * BLOCK + tl.arange(0, BLOCK))
    tl.store(partial + program, tl.sum(value, 0))
    if tl.atomic_add(count, 1, sem="relaxed") == PROGRAMS - 1:
        tl.store(out, tl.sum(tl.load(partial + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def endless(x):
    value = tl.load(x)
    while value < 1.0:
        value = value * 0.5
    tl.store(x, value)


@triton.jit
def asserted(x, BLOCK: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.device_assert(value > 0, "x must be positive")


@triton.jit
def load_tile(x, place):
    return tl.load(x + place)


@triton.jit
def calls_helper(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(out + place, load_tile(x, place))


@triton.jit
def inline_assembly(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [tl.load(x + place)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + place, value)


@triton.jit
def locked_tile(total, lock, BLOCK: tl.constexpr, BARRIER: tl.constexpr):
    place = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + place, tl.load(total + place) + 1.0)
    if BARRIER:
        tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def hand_over(data, flag, out):
    program = tl.program_id(0)
    if program > 0:
        while tl.atomic_load(flag + program - 1) == 0:
            pass
        tl.store(out + program, tl.load(data + program - 1))
    tl.store(data + program, 10.0 * program)
    tl.atomic_store(flag + program, 1)


@triton.jit
def last_column(x, columns, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    place = row * columns + columns - BLOCK + tl.arange(0, BLOCK)
    tl.store(x + place, tl.load(x + place) + 1.0)


@triton.jit
def atomic_sum(total):
    tl.atomic_add(total, 1.0)


@triton.jit
def exchange(total):
    tl.atomic_xchg(total, 1.0)


@triton.jit
def both_written(x, out, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + place, 0.0)
    tl.store(out + place, 1.0)


@triton.jit
def wraps_inside(x, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = row * stride
    tl.store(x + start + tl.arange(0, BLOCK), 1.0)


@triton.jit
def wraps_in_gather(index, x, out, stride):
    row = tl.load(index + tl.program_id(0))
    tl.store(out + tl.program_id(0), tl.load(x + row * stride))


@triton.jit
def wraps_where_masked(x, n, stride, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    tl.store(x + row * stride, 1.0, mask=row * stride.to(tl.int64) < n)


@triton.jit
def wraps_in_a_loop(x, steps, stride):
    place = 0
    for _ in range(steps):
        tl.store(x + place, 1.0)
        place += stride


@triton.jit
def wraps_and_comes_back(x, large):
    tl.store(x + (tl.program_id(0) + large + large - large - large), 1.0)


@triton.jit
def hashes(x, seed, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mixed = (lane + seed) * 1664525 + 1013904223
    mixed = (mixed ^ (mixed >> 15)) * 1540483477
    chance = (mixed & 0xFFFF).to(tl.float32) / 65536
    tl.store(x + lane, chance)


@triton.jit
def hash_table(keys, table, BLOCK: tl.constexpr):
    key = tl.load(keys + tl.program_id(0))
    place = ((key * 668265261) & 0x7FFFFFFF) % BLOCK
    tl.atomic_add(table + place, 1)


@triton.jit
def wraps_in_many_ways(x, index, stride, steps, FORM: tl.constexpr):
    """Program 4 reaches a place inside ``x`` by a product that 32 bits do not hold."""
    row, lane = tl.program_id(0), tl.arange(0, 4)
    start = row * stride
    if FORM == 0:
        place = start + lane
    elif FORM == 1:
        place = (row + lane * 0) * stride
    elif FORM == 2:
        place = lane - (0 - row) * stride
    elif FORM == 3:
        place = tl.load(index + lane * 0) * stride + lane
    elif FORM == 4:
        place = tl.where(lane < 2, start, 0) + lane
    elif FORM == 5:
        place = tl.minimum(start, 63) + lane
    elif FORM == 6:
        place = (start + lane) % 60
    elif FORM == 7:
        place = start // 2 + lane
    elif FORM == 8:
        place = tl.reshape(
            (row * stride + tl.arange(0, 2))[:, None] + tl.arange(0, 2)[None, :], (4,)
        )
    elif FORM == 9:
        place = lane
        for _ in range(steps):
            place += stride
    elif FORM == 10:
        place = lane
        count = 0
        while count < steps:
            place += stride
            count += 1
    elif FORM == 11:
        place = lane
        if row > 3:
            place = lane + start
    elif FORM == 12:
        place = (lane + stride * steps) * 1
    elif FORM == 13:
        place = tl.trans((start + lane)[None, :]).reshape(4)
    else:
        place = (start + lane).to(tl.int64)
    if FORM == 5:
        tl.store(x + place, 1.0, mask=place < 60)
    elif FORM == 4:
        tl.atomic_add(x + place, 1.0)
    else:
        tl.store(x + place, 1.0)
