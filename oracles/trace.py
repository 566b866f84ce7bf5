"""The trace's ring, from the layout of its records, written twice, sharing nothing.

Shapes: slots (C, 16) int32, head and step (1,) int64, payload (R, 13) float32, values and more
(N,) float32. Record n, from 0, is in slot n mod C: magic u32, step u32, kernel id u8, record type
u8, 2 zero bytes, 13 float32. The forms that end in ``_scalar`` take the index of one element.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from trivet.oracles._pinned import pinned

_RECORD = struct.Struct("<IIBBxx13f")
_WORDS = struct.Struct("<16i")
_MAGIC = 0x54524956
_EACH = 6
Rows = Sequence[Sequence[Any]]


@pinned
def log_tick(step: Any) -> Any:
    """The next step."""
    return step + 1


def log_tick_scalar(index: tuple[int, ...], step: Sequence[int]) -> Any:
    """The next step."""
    return int(step[index[0]]) + 1


@pinned
def write(
    slots: Any, head: Any, step: Any, payload: Any, kernel_id: Any, record_type: Any
) -> tuple[Any, Any, Any]:
    """slots, head and step after one record for each row, in order."""
    after = np.array(slots, np.int64)
    number = int(head[0])
    for row in payload:
        ids = (int(kernel_id), int(record_type))
        packed = _RECORD.pack(_MAGIC, int(step[0]) & 0xFFFFFFFF, *ids, *map(float, row))
        after[number % len(after)] = _WORDS.unpack(packed)
        number += 1
    return after, np.array([number]), step


def write_scalar(
    index: tuple[int, ...],
    output: str,
    slots: Rows,
    head: Sequence[int],
    step: Sequence[int],
    payload: Rows,
    kernel_id: int,
    record_type: int,
) -> Any:
    """One word of one slot: of the last row that came to it, if any did; or a header's number."""
    if output == "step":
        return int(step[0])
    if output == "head":
        return int(head[0]) + len(payload)
    slot, word = index
    mine = [r for r in range(len(payload)) if (int(head[0]) + r) % len(slots) == slot]
    if not mine:
        return int(slots[slot][word])
    return _word(word, int(step[0]), int(kernel_id), int(record_type), payload[mine[-1]])


def _word(word: int, step: int, kernel_id: int, record_type: int, row: Sequence[Any]) -> int:
    """A word of a record as the signed number that its bits are."""
    if word == 0:
        bits = 0x54524956
    elif word == 1:
        bits = step % 2**32
    elif word == 2:
        bits = kernel_id + 256 * record_type
    else:
        bits = int(np.array(float(row[word - 3]), np.float32).view(np.uint32))
    return bits - 2**32 if bits >= 2**31 else bits


@pinned
def write_per_horizon(
    slots: Any, head: Any, step: Any, values: Any, more: Any, kernel_id: Any, record_type: Any
) -> tuple[Any, Any, Any]:
    """slots, head and step after the records of six horizons each."""
    after = np.array(slots, np.int64)
    number = int(head[0])
    for first in range(0, len(values), _EACH):
        fields = np.zeros(13, np.float32)
        many = min(_EACH, len(values) - first)
        fields[:many] = values[first : first + many]
        fields[_EACH : _EACH + many] = more[first : first + many]
        fields[12] = first
        ids = (int(kernel_id), int(record_type))
        packed = _RECORD.pack(_MAGIC, int(step[0]) & 0xFFFFFFFF, *ids, *map(float, fields))
        after[number % len(after)] = _WORDS.unpack(packed)
        number += 1
    return after, np.array([number]), step


def write_per_horizon_scalar(
    index: tuple[int, ...],
    output: str,
    slots: Rows,
    head: Sequence[int],
    step: Sequence[int],
    values: Sequence[Any],
    more: Sequence[Any],
    kernel_id: int,
    record_type: int,
) -> Any:
    """One word of one slot, or a header's number."""
    records = -(-len(values) // 6)
    if output == "step":
        return int(step[0])
    if output == "head":
        return int(head[0]) + records
    slot, word = index
    mine = [r for r in range(records) if (int(head[0]) + r) % len(slots) == slot]
    if not mine:
        return int(slots[slot][word])
    row = [_field(place, 6 * mine[-1], values, more) for place in range(13)]
    return _word(word, int(step[0]), int(kernel_id), int(record_type), row)


def _field(place: int, first: int, values: Sequence[Any], more: Sequence[Any]) -> Any:
    """One of a record's 13 values."""
    if place == 12:
        return first
    source, horizon = (values, first + place) if place < 6 else (more, first + place - 6)
    return source[horizon] if horizon < len(source) else 0.0


@pinned
def traced(payload: Any, C: Any) -> tuple[Any, Any, Any]:
    """Everything written is told of; the last rows, one a step from 1 on."""
    rows = len(payload)
    tail = min(rows, int(C) - 1)
    steps = np.arange(rows - tail, rows) + 1
    return np.array([rows, rows]), steps, payload[rows - tail :].reshape(tail, 13)


def traced_scalar(index: tuple[int, ...], output: str, payload: Rows, C: int) -> Any:
    """One count, one step, or one value."""
    rows = len(payload)
    if output == "counts":
        return rows
    row = index[0] + max(0, rows - (C - 1))
    return row + 1 if output == "steps" else payload[row][index[1]]


@pinned
def planned(
    slots: Any, head: Any, step: Any, payload: Any, first: Any, second: Any
) -> tuple[Any, Any, Any]:
    """slots, head and step after three steps, eagerly: a tick, then a record for each row."""
    after = np.array(slots, np.int64)
    number, now = int(head[0]), int(step[0])
    for kernel_id in (first, first, second):
        now += 1
        for row in payload:
            fields = (_MAGIC, now & 0xFFFFFFFF, int(kernel_id), 0, *map(float, row))
            after[number % len(after)] = _WORDS.unpack(_RECORD.pack(*fields))
            number += 1
    return after, np.array([number]), np.array([now])


def planned_scalar(
    index: tuple[int, ...],
    output: str,
    slots: Rows,
    head: Sequence[int],
    step: Sequence[int],
    payload: Rows,
    first: int,
    second: int,
) -> Any:
    """One word of one slot, or a header's number."""
    records = 3 * len(payload)
    if output == "step":
        return int(step[0]) + 3
    if output == "head":
        return int(head[0]) + records
    slot, word = index
    mine = [r for r in range(records) if (int(head[0]) + r) % len(slots) == slot]
    if not mine:
        return int(slots[slot][word])
    turn, row = divmod(mine[-1], len(payload))
    return _word(word, int(step[0]) + 1 + turn, second if turn == 2 else first, 0, payload[row])
