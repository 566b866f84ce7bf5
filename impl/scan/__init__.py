"""The selective state-space scan: gates, a window in chunks, one event; forward and backward.

scan_gates             step and a from delta and A_log
scan_gates_backward    its gradients
scan_chunked           outputs and terminal state of a window
scan_chunked_backward  its gradients
scan_step              output and next state of one event
scan_step_backward     its gradients
ScanGates              scan_gates as an autograd function
ScanChunked            scan_chunked as an autograd function
"""

from trivet.impl.scan.backward import scan_chunked_backward, scan_step_backward
from trivet.impl.scan.forward import scan_chunked, scan_step
from trivet.impl.scan.functions import ScanChunked, ScanGates
from trivet.impl.scan.gates import scan_gates, scan_gates_backward

__all__ = [
    "ScanChunked",
    "ScanGates",
    "scan_chunked",
    "scan_chunked_backward",
    "scan_gates",
    "scan_gates_backward",
    "scan_step",
    "scan_step_backward",
]
