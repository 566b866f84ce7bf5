"""Writing trace records: what kernels call, and the two kernels of the trace itself."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.trace.layout import (
    FIRST_VALUE_WORD,
    HORIZON_LANES,
    LANES,
    MAGIC_WORD,
    STRIDE,
    VALUE_LANES,
    VALUES,
    WORDS,
)


class Pen(NamedTuple):
    """Where the one program that writes stands.

    Pointers to slots (C, 16) int32 and to head, int64; capacity, step and number, int64: the
    records ever written, this program's included.
    """

    slots: tl.tensor
    head: tl.tensor
    capacity: tl.tensor
    step: tl.tensor
    number: tl.tensor


@triton.jit
def open_ring(slots: tl.tensor, head: tl.tensor, step: tl.tensor, capacity: int) -> Pen:
    """Return the pen of a program that is the ring's only writer for as long as it runs."""
    return Pen(slots, head, tl.full((), capacity, tl.int64), tl.load(step), tl.load(head))


@triton.jit
def write_record(pen: Pen, kernel_id: int, record_type: int, payload: tl.tensor) -> Pen:
    """Write one record and return the pen after it; payload is a (16,) tile, lanes 0 to 12 count.

    Head moves, with release semantics for readers on the host, after the record is whole.
    """
    place = pen.slots + (pen.number % pen.capacity) * WORDS
    lane = tl.arange(0, LANES)
    kinds = tl.full((), kernel_id, tl.int32) | (tl.full((), record_type, tl.int32) << 8)
    tl.store(place, tl.full((), MAGIC_WORD, tl.int32))
    tl.store(place + 1, pen.step.to(tl.int32))
    tl.store(place + 2, kinds)
    values = payload.to(tl.int32, bitcast=True)
    tl.store(place + FIRST_VALUE_WORD + lane, values, mask=lane < VALUE_LANES)
    # The release covers what other threads of the program stored only behind a barrier.
    tl.debug_barrier()
    tl.atomic_xchg(pen.head, pen.number + 1, sem="release", scope="sys")
    return Pen(pen.slots, pen.head, pen.capacity, pen.step, pen.number + 1)


@triton.jit
def _lanes_of(values: tl.tensor, column: tl.tensor, first: tl.tensor, at: int) -> tl.tensor:
    """The values of columns first to first + 5 in lanes at to at + 5 of a (16,) tile, else -0.0.

    -0.0 is the one number that leaves every other as it is when it is added.
    """
    lane = tl.arange(0, LANES)[:, None]
    taken = (lane - at == column[None, :] - first) & (lane >= at) & (lane < at + HORIZON_LANES)
    return tl.sum(tl.where(taken, values[None, :], -0.0), axis=1)


@triton.jit
def write_horizons(
    pen: Pen,
    kernel_id: int,
    record_type: int,
    column: tl.tensor,
    N: int,
    values: tl.tensor,
    more: tl.tensor,
) -> Pen:
    """Write two values of each horizon, six horizons a record; return the pen after them.

    column (COLUMNS,) int32 from 0; values and more (COLUMNS,) float32, of which the first N count.
    Lanes 0 to 5 are values, 6 to 11 more, 12 the number of the record's first horizon.
    """
    lane = tl.arange(0, LANES)
    for first in range(0, N, HORIZON_LANES):
        present = lane % HORIZON_LANES < N - first
        both = _lanes_of(values, column, first, 0) + _lanes_of(more, column, first, HORIZON_LANES)
        payload = tl.where(present, both, 0.0)
        payload = tl.where(lane == 2 * HORIZON_LANES, tl.cast(first, tl.float32), payload)
        pen = write_record(pen, kernel_id, record_type, payload)
    return pen


@triton.jit
def _log_tick_kernel(step: tl.tensor) -> None:
    tl.store(step, tl.load(step) + 1)


@triton.jit(do_not_specialize=["R", "capacity", "kernel_id", "record_type"])
def _write_kernel(
    slots: tl.tensor,
    head: tl.tensor,
    step: tl.tensor,
    payload: tl.tensor,
    R: int,
    capacity: int,
    kernel_id: int,
    record_type: int,
) -> None:
    lane = tl.arange(0, LANES)
    pen = open_ring(slots, head, step, capacity)
    for row in range(R):
        place = tl.cast(row, tl.int64) * VALUE_LANES + lane
        values = tl.load(payload + place, mask=lane < VALUE_LANES, other=0.0)
        pen = write_record(pen, kernel_id, record_type, values)


@triton.jit(do_not_specialize=["capacity", "kernel_id", "record_type"])
def _write_horizons_kernel(
    slots: tl.tensor,
    head: tl.tensor,
    step: tl.tensor,
    values: tl.tensor,
    more: tl.tensor,
    N: int,
    capacity: int,
    kernel_id: int,
    record_type: int,
    COLUMNS: tl.constexpr,
) -> None:
    column = tl.arange(0, COLUMNS)
    first = tl.load(values + column, mask=column < N, other=0.0)
    second = tl.load(more + column, mask=column < N, other=0.0)
    pen = open_ring(slots, head, step, capacity)
    write_horizons(pen, kernel_id, record_type, column, N, first, second)


def log_tick(step: torch.Tensor) -> None:
    """Advance the step counter (1,) int64 by one, in place: the first launch of a traced step."""
    arguments = _checks.Arguments(one=1)
    arguments.tensor("step", step, "one", torch.int64)
    _log_tick_kernel[(1,)](step, num_warps=1)


def write(
    slots: torch.Tensor,
    head: torch.Tensor,
    step: torch.Tensor,
    payload: torch.Tensor,
    kernel_id: int,
    record_type: int,
) -> None:
    """Write the rows of payload (R, 13) float32 as one record each, in order, in place.

    slots (C, 16) int32, head and step (1,) int64: record number n, from 0, goes to slot n mod C
    with the low 32 bits of step. One launch of one program. Raises TypeError or
    ValueError naming the argument.
    """
    arguments = _check(slots, head, step, kernel_id, record_type)
    arguments.sizes["values"] = VALUES
    arguments.tensor("payload", payload, "R values", torch.float32)
    given = (slots, head, step, payload, payload.shape[0], slots.shape[0])
    _write_kernel[(1,)](*given, kernel_id, record_type, num_warps=1)


def write_per_horizon(
    slots: torch.Tensor,
    head: torch.Tensor,
    step: torch.Tensor,
    values: torch.Tensor,
    more: torch.Tensor,
    kernel_id: int,
    record_type: int,
) -> None:
    """Write two values of each horizon, values and more (N,) float32, six horizons a record.

    A record holds values in places 0 to 5, more in 6 to 11, 0 where there is no horizon, and the
    number of its first horizon in place 12. The rest as `write`.
    """
    arguments = _check(slots, head, step, kernel_id, record_type)
    arguments.tensor("values", values, "N", torch.float32)
    arguments.tensor("more", more, "N", torch.float32)
    horizons = values.shape[0]
    _checks.horizons(horizons)
    given = (slots, head, step, values, more, horizons, slots.shape[0], kernel_id, record_type)
    _write_horizons_kernel[(1,)](*given, triton.next_power_of_2(horizons), num_warps=1)


def _check(
    slots: torch.Tensor, head: torch.Tensor, step: torch.Tensor, kernel_id: int, record_type: int
) -> _checks.Arguments:
    """Check what belongs to the ring, and the two ids."""
    arguments = _checks.Arguments(one=1, words=STRIDE // 4)
    arguments.tensor("slots", slots, "C words", torch.int32)
    arguments.tensor("head", head, "one", torch.int64)
    arguments.tensor("step", step, "one", torch.int64)
    _checks.count("slots' capacity C", slots.shape[0], 1)
    for name, value in (("kernel_id", kernel_id), ("record_type", record_type)):
        if _checks.count(name, value, 0) > 255:
            raise ValueError(f"{name} must fit one byte, 0 to 255, got {value}")
    return arguments
