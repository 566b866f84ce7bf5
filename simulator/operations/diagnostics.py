"""Assertions, prints, hints and barriers."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from trivet.simulator._rounding import CARRIER
from trivet.simulator.arithmetic import Arithmetic
from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Compiler, as_column, program_coordinates
from trivet.simulator.ir import Operation, Type
from trivet.simulator.operations.registry import Handler, Unsupported, effect, unpacked
from trivet.simulator.values import INTEGERS, UNSIGNED, Value, lanes

_MOST_LINES, _MOST_ELEMENTS, _WIDE = 256, 64, 1_000_000
_NO_OPERATION = re.compile(r"(\\09|\s)*(griddepcontrol|nanosleep|fence|membar|prefetch)\b")
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
    """A line per program, up to a limit a launch; hexadecimal floats are their bits."""
    prefix = operation.words[0].strip() if operation.words else ""
    texts = [_text_of(operation, compiler, number) for number in range(len(operation.operands))]
    kernel = compiler.module.entry.name

    def run(chunk: Chunk, *operands: Value) -> None:
        launch = chunk.launch
        if not launch.sanitize:
            return
        for row, number in enumerate(chunk.programs.tolist()):
            if chunk.active is not None and not chunk.active[row]:
                continue
            launch.printed += 1
            if launch.printed > _MOST_LINES:
                if launch.printed == _MOST_LINES + 1:
                    print(f"{kernel} prints more; the rest is left out")
                return
            words = [text(value, row) for text, value in zip(texts, operands, strict=True)]
            place = program_coordinates(number, launch.grid)
            print(f"program {place}", " ".join([prefix, *words]).strip())

    return run


def _text_of(operation: Operation, compiler: Compiler, number: int) -> Callable[[Value, int], str]:
    """Function of (value, row) that writes an operand of one program."""
    kind, arithmetic = operation.operand_types[number], compiler.arithmetic
    hexadecimal = operation.attributes.get("hex") is True
    signs = operation.attributes.get("isSigned")
    signed = not isinstance(signs, list) or bool(signs[number])

    def plain(value: Value) -> np.ndarray:
        if kind.is_pointer:
            offsets: np.ndarray = value.offsets
            return offsets
        if kind.is_float:
            stored = np.dtype(CARRIER[kind.element])
            element = arithmetic.bits(kind.element) if hexadecimal else None
            return np.asarray(element(value) if element else arithmetic.store(value, stored))
        array = np.asarray(value)
        return array if signed and not hexadecimal else array.view(UNSIGNED[array.dtype])

    def text(value: Value, row: int) -> str:
        array = plain(value)
        one = np.broadcast_to(array[row if array.shape[0] > 1 else 0], kind.shape)
        if not hexadecimal:
            return np.array2string(one, threshold=_MOST_ELEMENTS, max_line_width=_WIDE)
        width, mask = 2 * array.itemsize, (1 << 8 * array.itemsize) - 1

        def form(number: np.generic) -> str:
            return f"0x{int(number) & mask:0{width}x}"

        return np.array2string(
            one, threshold=_MOST_ELEMENTS, max_line_width=_WIDE, formatter={"int": form}
        )

    return text


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
    """PTX that computes nothing, such as ``griddepcontrol``, which orders nothing here.

    A result, which Triton asks for, is a dummy: zero.
    """
    text = operation.words[0] if operation.words else ""
    lines = (line.partition("//")[0].strip() for line in re.split(r"\\0A|\n", text))
    instructions = [part.strip() for line in lines for part in line.split(";") if part.strip()]
    if operation.operands or not all(map(_NO_OPERATION.match, instructions)):
        raise Unsupported(f"inline assembly {text!r}")
    kinds = operation.result_types
    zeros = [
        compiler.mover(kind)(
            partial(as_column, rank=len(kind.shape)), _zero(kind, compiler.arithmetic)
        )
        for kind in kinds
    ]
    return lambda chunk: unpacked(operation, zeros) if zeros else None


def _zero(kind: Type, arithmetic: Arithmetic) -> Value:
    if kind.is_float:
        return arithmetic.constant(0.0, kind.element)
    return np.zeros((), INTEGERS[kind.element])
