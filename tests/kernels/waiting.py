"""Kernels whose programs wait for each other, for ever or not."""

import triton
import triton.language as tl


@triton.jit
def chain_from_the_end(flag, data, out, PROGRAMS: tl.constexpr):
    program = tl.program_id(0)
    value = 1.0
    if program < PROGRAMS - 1:
        while tl.atomic_cas(flag + program + 1, 1, 1) != 1:
            pass
        value = tl.load(data + program + 1) * 2
    tl.store(data + program, value)
    tl.store(out + program, value)
    tl.atomic_xchg(flag + program, 1)


@triton.jit
def waits_with_a_plain_load(flag, data, out):
    if tl.program_id(0) == 0:
        while tl.load(flag, volatile=True) == 0:
            pass
        tl.store(out, tl.load(data))
    else:
        tl.store(data, 7.0)
        tl.atomic_xchg(flag, 1)


@triton.jit
def counts_its_rounds(flag, rounds):
    if tl.program_id(0) == 0:
        count = 0
        while tl.atomic_add(flag, 0) == 0:
            count += 1
        tl.store(rounds, count)
    else:
        tl.atomic_xchg(flag, 1)


@triton.jit
def crossed_locks(locks, total):
    first = tl.program_id(0) % 2
    while tl.atomic_cas(locks + first, 0, 1) == 1:
        pass
    while tl.atomic_cas(locks + 1 - first, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + 1.0)
    tl.atomic_xchg(locks + 1 - first, 0)
    tl.atomic_xchg(locks + first, 0)


@triton.jit
def never_released(lock, total):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.atomic_add(total, 1.0)


@triton.jit
def nobody_writes(flag, out):
    while tl.atomic_cas(flag + 1, 1, 1) != 1:
        pass
    tl.store(out + tl.program_id(0), 1.0)
    tl.atomic_xchg(flag, 1)


@triton.jit
def grid_barrier(count, data, out, PROGRAMS: tl.constexpr):
    program = tl.program_id(0)
    tl.store(data + program, program.to(tl.float32))
    tl.atomic_add(count, 1)
    while tl.atomic_add(count, 0) < PROGRAMS:
        pass
    tl.store(out + program, tl.load(data + (program + 1) % PROGRAMS))


@triton.jit
def guarded(total, lock, other, BLOCK: tl.constexpr, FAULT: tl.constexpr):
    """One mistake in using a lock, told by ``FAULT``; none for 0."""
    place = tl.arange(0, BLOCK)
    program = tl.program_id(0)
    if FAULT == 1:
        tl.store(total + place, tl.load(total + place) + 1.0)
    if FAULT == 2:
        while tl.atomic_cas(lock + program % 2, 0, 1) == 1:
            pass
    elif FAULT == 3:
        while tl.atomic_cas(lock, 0, 1, sem="relaxed") == 1:
            pass
    elif FAULT == 4:
        while tl.atomic_cas(lock, 0, 1, sem="release") == 1:
            pass
    elif FAULT != 5:
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
    if FAULT == 6:
        tl.atomic_xchg(lock, 0)
    held = tl.load(total + place)
    if FAULT == 7:
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)
    tl.store(total + place, held + 1.0)
    if FAULT != 8:
        tl.debug_barrier()
    if FAULT == 9:
        tl.atomic_xchg(lock, 0, sem="relaxed")
    elif FAULT == 10:
        tl.atomic_xchg(lock, 0, sem="acquire")
    elif FAULT == 11:
        tl.store(lock, 0)
    elif FAULT == 12:
        tl.atomic_xchg(other, 0)
    elif FAULT == 13:
        tl.atomic_xchg(lock, 1)
    elif FAULT == 14:
        tl.atomic_xchg(lock, 0)
        tl.store(total + place, tl.load(total + place) * 1.0)
    elif (FAULT != 2) & (FAULT != 6) & (FAULT != 7):
        tl.atomic_xchg(lock, 0)
    if FAULT == 2:
        tl.atomic_xchg(lock + program % 2, 0)
