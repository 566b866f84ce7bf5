"""The selective scan: what its kernels promise."""

from trivet.properties.scan.event import scan_step, scan_step_backward
from trivet.properties.scan.gates import scan_gates, scan_gates_backward
from trivet.properties.scan.gradients import scan_chunked_backward
from trivet.properties.scan.window import scan_chunked

__all__ = [
    "scan_chunked",
    "scan_chunked_backward",
    "scan_gates",
    "scan_gates_backward",
    "scan_step",
    "scan_step_backward",
]
