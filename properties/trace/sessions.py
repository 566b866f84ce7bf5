"""Whole traced runs: nothing is lost silently, and nothing of the host is frozen."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, sizes
from trivet.impl._trace import sessions as kernels
from trivet.oracles import trace as oracles
from trivet.properties._expect import same_bits, same_values
from trivet.properties.trace.inputs import (
    ANY_REAL,
    BAD_PAYLOAD,
    BYTE,
    COUNTER,
    SLOTS,
    Array,
    Rerun,
    records,
)

trace_traced = Contract(
    kernel=kernels.traced,
    oracles=[oracles.traced, oracles.traced_scalar],
    dims={"R": sizes(0, 14), "C": sizes(2, 9), "T": "min(R, C - 1)"},
    args={"payload": Tensor("R 13", domain=ANY_REAL)},
    outputs={
        "counts": Tensor("2", dtypes=("int64",)),
        "steps": Tensor("T", dtypes=("int64",)),
        "values": Tensor("T 13"),
    },
    raises=BAD_PAYLOAD,
)
trace_traced.without(
    "logic_matches", "records hold the bits of float32: there is no run of them in float64"
)


@trace_traced.law
def written_is_drained_plus_lost(out: Any, R: int) -> None:
    """Every record is a line of the file, or in a loss that was reported."""
    same_values(out.counts[:1], np.array([R]), "records written")
    same_values(out.counts[1:], out.counts[:1], "lines and losses reported")


@trace_traced.law
def a_short_run_is_complete(payload: Array, C: int, rerun: Rerun) -> None:
    """A run that fits the ring and ends before the first poll has every line, from step 1 on.

    Traced from a plain synchronous program: no event loop runs here.
    """
    short = payload[: C - 1]
    counts, steps, values = rerun(payload=short)
    same_values(counts, np.full(2, len(short)), "records written, and lines")
    same_values(steps, 1 + np.arange(len(short)), "steps of the lines")
    same_bits(values, short.astype(np.float32), "values of the lines")


trace_planned = Contract(
    kernel=kernels.planned,
    oracles=[oracles.planned, oracles.planned_scalar],
    dims={"R": sizes(0, 6), "C": sizes(1, 20)},
    args={
        "slots": SLOTS,
        "head": COUNTER,
        "step": COUNTER,
        "payload": Tensor("R 13", domain=ANY_REAL),
        "first": BYTE,
        "second": BYTE,
    },
)


@trace_planned.law
def replay_equals_eager_under_changed_host_state(
    head: Array, payload: Array, first: int, second: int, rerun: Rerun
) -> None:
    """Two steps carry the first kernel id, the third, recorded anew, the second one."""
    rows = len(payload)
    out = rerun(slots=np.zeros((3 * rows + 1, 16), np.int64), head=np.zeros_like(head))
    found = records(out.slots)["kid"][: 3 * rows]
    same_values(found, np.repeat([first, first, second], rows), "kernel ids")


@trace_planned.law
def every_replay_ticks(out: Any, head: Array, step: Array, R: int) -> None:
    """The counters of the device go on with each replay."""
    same_values(out.step, step + 3, "step after three steps")
    same_values(out.head, head + 3 * R, "records after three steps")
