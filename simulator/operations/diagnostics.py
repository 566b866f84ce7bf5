"""Assertions, prints, hints and barriers."""

from __future__ import annotations

import numpy as np

from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation
from trivet.simulator.operations.registry import Handler, Unsupported, effect
from trivet.simulator.values import Value, lanes

_HINTS = (
    "llvm.intr.assume",
    "tt.grid_dependency_wait",
    "tt.grid_dependency_launch_dependents",
)


@effect("tt.assert")
def build_assert(operation: Operation, compiler: Compiler) -> Handler:
    """Report the programs for which a lane of the condition is false; the launch goes on."""
    number = compiler.site(operation)
    message = operation.words[0] if operation.words else ""
    rank = len(operation.operand_types[0].shape)

    def run(chunk: Chunk, condition: np.ndarray, *rest: Value) -> None:
        failed = ~condition
        if chunk.active is not None:
            failed = failed & lanes(chunk.active, rank)
        if not (chunk.launch.sanitize and failed.any()):
            return
        rows = np.flatnonzero(failed.reshape(failed.shape[0], -1).any(1))
        key = int(chunk.keys[rows[0]]) + number
        chunk.launch.sanitizer.report_assertion(message, key, int(np.count_nonzero(failed)))

    return run


@effect("tt.print")
def build_print(operation: Operation, compiler: Compiler) -> Handler:
    """Nothing: the machine writes no output of its own."""
    return lambda chunk, *operands: None


@effect(*_HINTS)
def build_hint(operation: Operation, compiler: Compiler) -> Handler:
    """Nothing to do on the CPU."""
    return lambda chunk, *operands: None


@effect("ttg.barrier", "gpu.barrier", "ttg.local_barrier")
def build_barrier(operation: Operation, compiler: Compiler) -> Handler:
    """Order the threads of each program; lanes never run ahead of each other here."""

    def run(chunk: Chunk) -> None:
        if chunk.launch.ordering is not None:
            chunk.launch.ordering.barrier(int(chunk.programs[0]))
            chunk.renew_keys()

    return run


@effect("tt.elementwise_inline_asm")
def build_inline_assembly(operation: Operation, compiler: Compiler) -> Handler:
    """Only PTX without a result, such as ``griddepcontrol``, which orders nothing here."""
    if operation.results:
        text = operation.words[0] if operation.words else ""
        raise Unsupported(f"inline assembly {text!r}")
    return lambda chunk, *operands: None
