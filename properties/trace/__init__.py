"""The per-step trace: what its kernels promise, and whole traced runs."""

from trivet.properties.trace.ring import trace_log_tick, trace_write, trace_write_per_horizon
from trivet.properties.trace.sessions import trace_planned, trace_traced

__all__ = [
    "trace_log_tick",
    "trace_planned",
    "trace_traced",
    "trace_write",
    "trace_write_per_horizon",
]
