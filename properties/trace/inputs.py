"""Domains and bad inputs that the contracts of the trace share."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import Scalar, Tensor, integers, reals, sizes
from trivet.impl.trace import RECORD

Array = NDArray[Any]
Rerun = Any

RING = {"C": sizes(1, 12, production=2**28)}
ANY_REAL = reals(-1e30, 1e30)
# A record has the low 32 bits of the step, and its number decides its slot: both go beyond.
COUNTER = Tensor("1", dtypes=("int64",), domain=integers(0, 2**40), role="inout")
SLOTS = Tensor("C 16", dtypes=("int32",), domain=integers(-(2**31), 2**31 - 1), role="inout")
BYTE = Scalar(int, 0, 255)


def records(slots: Array) -> Array:
    """The records (C,) of words (C, 16)."""
    return np.ascontiguousarray(slots.astype("<i4")).view(RECORD)[:, 0]


def payload_of_twelve() -> dict[str, object]:
    """A value too few."""
    return {"payload": torch.zeros(2, 12)}


def payload_in_float64(payload: torch.Tensor) -> dict[str, object]:
    """Values of another dtype."""
    return {"payload": payload.double()}


def no_slot() -> dict[str, object]:
    """A ring that holds nothing."""
    return {"slots": torch.zeros(0, 16, dtype=torch.int32)}


def id_of_two_bytes() -> dict[str, object]:
    """A kernel id that a record has no place for."""
    return {"kernel_id": 256}


BAD_PAYLOAD = (
    (ValueError, "payload", payload_of_twelve),
    (TypeError, "payload", payload_in_float64),
)
BAD_RING = ((ValueError, "slots", no_slot),)
BAD_IDS = ((ValueError, "kernel_id", id_of_two_bytes),)
