"""Kernels compiled for GPUs that are not there: what the compiler made of a recorded launch.

``measure`` compiles launches as they were launched, in a child process, and reads metrics off the
artifacts; ``compare`` says which got worse. Nothing here needs a GPU, and no number depends on the
machine.
"""

from trivet.simulator.compiled.measure import Measurement, measure
from trivet.simulator.compiled.metrics import Value
from trivet.simulator.compiled.rules import Change, compare
from trivet.simulator.compiled.targets import (
    LOCKED,
    TARGETS,
    CompilerError,
    CompilerMissingError,
    missing,
    toolchain,
)

__all__ = [
    "LOCKED",
    "TARGETS",
    "Change",
    "CompilerError",
    "CompilerMissingError",
    "Measurement",
    "Value",
    "compare",
    "measure",
    "missing",
    "toolchain",
]
