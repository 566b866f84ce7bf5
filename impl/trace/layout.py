"""The ring of trace records: the one definition of its bytes, for kernels, host and drainer."""

import dataclasses
from typing import Self

import numpy as np
import torch
import triton.language as tl

from trivet.impl import _checks

# Bytes of a record, and the record: magic, step, kernel id, record type, 2 zero bytes, 13 values.
STRIDE = 64
MAGIC = 0x54524956
VALUES = 13
RECORD = np.dtype(
    {
        "names": ["magic", "step", "kid", "rt", "payload"],
        "formats": ["<u4", "<u4", "u1", "u1", f"({VALUES},)<f4"],
        "offsets": [0, 4, 8, 9, 12],
        "itemsize": STRIDE,
    }
)
INPUT, STATE, OUTPUT = 0, 1, 2
TYPES = ("INPUT", "STATE", "OUTPUT")
CAPACITY = 32768
# The numbers of a ring's header.
CAPACITY_AT, HEAD_AT, STEP_AT = 0, 1, 2

# A record that is about horizons holds two values of up to six of them, and the first one's number.
HORIZONS_EACH = 6
WORDS = tl.constexpr(STRIDE // 4)
MAGIC_WORD = tl.constexpr(MAGIC)
LANES = tl.constexpr(16)
VALUE_LANES = tl.constexpr(VALUES)
FIRST_VALUE_WORD = tl.constexpr(3)
HORIZON_LANES = tl.constexpr(HORIZONS_EACH)


@dataclasses.dataclass(frozen=True, eq=False)
class Ring:
    """A ring on one device: header (3,) int64, slots (C, 16) int32.

    The header is capacity, head (records ever written, whole) and the step counter. `create`
    makes a fresh one. One program at a time writes, a drainer reads beside it.
    """

    header: torch.Tensor
    slots: torch.Tensor

    @classmethod
    def create(
        cls, capacity: int = CAPACITY, device: torch.device | str = "cpu", step: int = 0
    ) -> Self:
        """Return an empty ring of `capacity` slots whose counter stands at `step`."""
        _checks.count("capacity", capacity, 1)
        _checks.count("step", step, 0)
        header = torch.tensor([capacity, 0, step], dtype=torch.int64, device=device)
        slots = torch.zeros((capacity, STRIDE // 4), dtype=torch.int32, device=device)
        return cls(header, slots)

    @property
    def capacity(self) -> int:
        """How many records it holds."""
        return self.slots.shape[0]

    @property
    def head(self) -> torch.Tensor:
        """Records ever written, (1,) int64, a view."""
        return self.header[HEAD_AT : HEAD_AT + 1]

    @property
    def step(self) -> torch.Tensor:
        """The step counter, (1,) int64, a view; records hold its low 32 bits."""
        return self.header[STEP_AT : STEP_AT + 1]
