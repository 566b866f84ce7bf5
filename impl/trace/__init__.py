"""The per-step trace: a ring of 64-byte records that kernels write and the host drains.

log_tick           advance the step counter
write              one record for each row of a table
write_per_horizon  records of two values of each horizon
Ring               header and slots on a device
"""

from trivet.impl.trace.layout import INPUT, OUTPUT, RECORD, STATE, Ring
from trivet.impl.trace.ring import log_tick, write, write_per_horizon

__all__ = [
    "INPUT",
    "OUTPUT",
    "RECORD",
    "STATE",
    "Ring",
    "log_tick",
    "write",
    "write_per_horizon",
]
