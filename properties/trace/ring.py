"""Records of the ring: their bytes, their places, and the counters of the header."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, sizes
from trivet.impl import trace as kernels
from trivet.oracles import trace as oracles
from trivet.properties._expect import same_bits, same_values
from trivet.properties.trace.inputs import (
    ANY_REAL,
    BAD_IDS,
    BAD_PAYLOAD,
    BAD_RING,
    BYTE,
    COUNTER,
    RING,
    SLOTS,
    Array,
    Rerun,
    records,
)

trace_log_tick = Contract(
    kernel=kernels.log_tick,
    oracles=[oracles.log_tick, oracles.log_tick_scalar],
    dims={},
    args={"step": COUNTER},
)


@trace_log_tick.law
def every_tick_counts(step: Array, out: Array, rerun: Rerun) -> None:
    """Two ticks in a row advance by two, also from beyond 32 bits."""
    same_values(rerun(step=out), step + 2, "step after two ticks")
    far = np.full_like(step, 2**32 - 1)
    same_values(rerun(step=far), far + 1, "step after a tick at 2^32 - 1")


IDS = {"kernel_id": BYTE, "record_type": BYTE}
trace_write = Contract(
    kernel=kernels.write,
    oracles=[oracles.write, oracles.write_scalar],
    dims=RING | {"R": sizes(0, 30)},
    args={
        "slots": SLOTS,
        "head": COUNTER,
        "step": COUNTER,
        "payload": Tensor("R 13", domain=ANY_REAL),
        **IDS,
    },
    raises=BAD_PAYLOAD + BAD_RING + BAD_IDS,
)


@trace_write.law
def fields_come_back_from_the_bytes(
    out: Any, head: Array, step: Array, payload: Array, kernel_id: int, record_type: int, C: int
) -> None:
    """The last C records hold magic, the step's low 32 bits, both ids and the row, bitwise."""
    rows = np.arange(max(len(payload) - C, 0), len(payload))
    found = records(out.slots)[(head[0] + rows) % C]
    same_values(found["magic"], np.array(0x54524956), "magic")
    same_values(found["step"], step[0] % 2**32, "step")
    same_values(found["kid"], np.array(kernel_id), "kernel id")
    same_values(found["rt"], np.array(record_type), "record type")
    same_bits(found["payload"], payload[rows].astype(np.float32), "payload")


@trace_write.law
def head_counts_every_record(out: Any, head: Array, R: int) -> None:
    """Head is the number of records ever written, those that were overwritten included."""
    same_values(out.head, head + R, "head")


@trace_write.law
def other_slots_keep_their_bits(out: Any, slots: Array, head: Array, R: int, C: int) -> None:
    """What no record came to stays as it was."""
    mine = (np.arange(C) - head[0]) % C < R
    kept = np.where(mine[:, None], 0, out.slots)
    same_values(kept, np.where(mine[:, None], 0, slots), "slots of no record")


@trace_write.law
def records_can_be_written_in_parts(
    out: Any, slots: Array, head: Array, payload: Array, rerun: Rerun
) -> None:
    """Two launches leave what one does."""
    half = len(payload) // 2
    first = rerun(payload=payload[:half])
    second = rerun(slots=first.slots, head=first.head, payload=payload[half:])
    same_values(second.slots, out.slots, "slots after two launches")
    same_values(second.head, out.head, "head after two launches")


@trace_write.law
def values_that_are_no_numbers_come_through(head: Array, C: int, rerun: Rerun) -> None:
    """Infinities, NaN, subnormals and -0.0 are the same bits in the record."""
    given = np.array([[np.inf, -np.inf, np.nan, -0.0, 1e-45, -1e-40, *range(7)]], np.float32)
    found = records(rerun(payload=given).slots)[head[0] % C]
    same_bits(found["payload"], given[0], "payload")


trace_write_per_horizon = Contract(
    kernel=kernels.write_per_horizon,
    oracles=[oracles.write_per_horizon, oracles.write_per_horizon_scalar],
    dims=RING | {"N": sizes(1, 20, production=5)},
    args={
        "slots": SLOTS,
        "head": COUNTER,
        "step": COUNTER,
        "values": Tensor("N", domain=ANY_REAL),
        "more": Tensor("N", domain=ANY_REAL),
        **IDS,
    },
    raises=BAD_RING + BAD_IDS,
)


@trace_write_per_horizon.law
def every_horizon_comes_back_once(
    head: Array, values: Array, more: Array, N: int, rerun: Rerun
) -> None:
    """Six horizons a record, in order; places without a horizon hold +0.0."""
    count = -(-N // 6)
    slots = np.zeros((count, 16), np.int64)
    out = rerun(slots=slots, head=np.zeros_like(head))
    found = records(out.slots)["payload"]
    padded = np.zeros((2, 6 * count), np.float32)
    padded[:, :N] = values, more
    wanted = np.concatenate([padded[0].reshape(-1, 6), padded[1].reshape(-1, 6)], axis=1)
    same_bits(found[:, :12], wanted, "values of the horizons")
    same_values(found[:, 12], 6 * np.arange(count), "first horizon of the records")
    same_values(out.head, np.array([count]), "records")


@trace_write_per_horizon.law
def signs_of_zeros_and_what_is_no_number_come_through(head: Array, rerun: Rerun) -> None:
    """Horizons are handed on bitwise: gathering them adds nothing to them."""
    given = np.array([-0.0, np.inf, np.nan, -np.inf, 1e-45], np.float32)
    out = rerun(slots=np.zeros((1, 16), np.int64), values=given, more=-given)
    found = records(out.slots)["payload"][0]
    same_bits(found[:5], given, "values")
    same_bits(found[6:11], -given, "more")
