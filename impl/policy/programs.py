"""Policy programs: straight-line code for a small stack machine, written, verified and encoded."""

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import torch

LONGEST = 64
STACK = 16


class Op(IntEnum):
    """What an instruction does; padding with zeros is HALT.

    Grouped by effect on the stack: 1 to 7 push, 8 to 10 replace one, 11 to 17 replace two by one,
    SELECT three by one, 19 to 21 pop.
    """

    HALT = 0
    PUSH_P = 1
    PUSH_MAG = 2
    PUSH_DIR = 3
    PUSH_WEIGHT = 4
    CONST = 5
    DUP = 6
    AGG_WEIGHTED_SHARPE = 7
    NEG = 8
    ABS = 9
    CLAMP01 = 10
    ADD = 11
    SUB = 12
    MUL = 13
    DIV = 14
    MIN = 15
    MAX = 16
    GT = 17
    SELECT = 18
    POP = 19
    EMIT_PER_HORIZON_SIZE = 20
    WRITE_ORDER = 21
    SWAP = 22


_HORIZON = (Op.PUSH_P, Op.PUSH_MAG, Op.PUSH_DIR, Op.PUSH_WEIGHT, Op.EMIT_PER_HORIZON_SIZE)


@dataclass(frozen=True)
class Instruction:
    """op, arg (a horizon, else 0) and an immediate (of CONST, else 0)."""

    op: Op
    arg: int = 0
    immediate: float = 0.0

    @property
    def needs(self) -> int:
        """How many values must be on the stack."""
        if self.op in (Op.DUP,) or Op.NEG <= self.op <= Op.CLAMP01:
            return 1
        if Op.ADD <= self.op <= Op.GT or self.op is Op.SWAP:
            return 2
        if self.op is Op.SELECT:
            return 3
        return 1 if Op.POP <= self.op <= Op.WRITE_ORDER else 0

    @property
    def change(self) -> int:
        """By how much the stack grows."""
        if Op.PUSH_P <= self.op <= Op.AGG_WEIGHTED_SHARPE:
            return 1
        if Op.ADD <= self.op <= Op.GT or Op.POP <= self.op <= Op.WRITE_ORDER:
            return -1
        return -2 if self.op is Op.SELECT else 0

    def __str__(self) -> str:
        rest = f" {self.arg}" if self.op in _HORIZON else ""
        return self.op.name + (f" {self.immediate:g}" if self.op is Op.CONST else rest)


def parse(text: str) -> list[Instruction]:
    """Return the instructions of a text, one a line: ``PUSH_MAG 0``, ``CONST 0.5``, ``HALT``.

    Raises ValueError naming the line.
    """
    return [
        _parsed(number, line.split())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]


def _parsed(number: int, words: Sequence[str]) -> Instruction:
    name, *rest = words
    if name not in Op.__members__:
        raise ValueError(
            f"line {number}: unknown op {name!r}; known are {', '.join(Op.__members__)}"
        )
    op = Op[name]
    wanted = "a horizon" if op in _HORIZON else "a number" if op is Op.CONST else ""
    if len(rest) != bool(wanted):
        raise ValueError(f"line {number}: {name} takes {wanted or 'nothing'}, got {rest}")
    try:
        if op is Op.CONST:
            return Instruction(op, immediate=float(rest[0]))
        return Instruction(op, int(rest[0]) if rest else 0)
    except ValueError:
        raise ValueError(f"line {number}: {name} takes {wanted}, got {rest[0]!r}") from None


def verify(program: Sequence[Instruction], horizons: int) -> None:
    """ValueError naming the first instruction that no machine of so many horizons can run."""
    if not program or len(program) > LONGEST:
        raise ValueError(f"a program has 1 to {LONGEST} instructions, got {len(program)}")
    depth = orders = 0
    for place, each in enumerate(program):
        where = f"instruction {place} ({each})"
        if each.op in _HORIZON and not 0 <= each.arg < horizons:
            raise ValueError(f"{where}: horizon {each.arg} is not from 0 to {horizons - 1}")
        if each.op not in _HORIZON and each.arg:
            raise ValueError(f"{where}: takes no argument, got {each.arg}")
        if not math.isfinite(np.float32(each.immediate)):
            raise ValueError(f"{where}: the immediate must be finite in float32")
        if depth < each.needs:
            raise ValueError(f"{where}: needs {each.needs} values, the stack has {depth}")
        depth += each.change
        if depth > STACK:
            raise ValueError(f"{where}: the stack holds at most {STACK} values")
        orders += each.op is Op.WRITE_ORDER
        if orders > 1:
            raise ValueError(f"{where}: a second WRITE_ORDER; a program has exactly one")
        if each.op is Op.HALT and place + 1 < len(program):
            raise ValueError(f"{where}: HALT must be the last instruction, and the only one")
    if program[-1].op is not Op.HALT:
        last = f"instruction {len(program) - 1} ({program[-1]})"
        raise ValueError(f"{last}: a program ends with HALT")
    if not orders:
        raise ValueError(f"instruction {len(program) - 1} (HALT): no WRITE_ORDER before it")


def default_program(horizons: int) -> list[Instruction]:
    """Return the built-in decision as a program."""
    body = []
    for h in range(horizons):
        body += [Instruction(Op.PUSH_MAG, h), Instruction(Op.PUSH_DIR, h), Instruction(Op.MUL)]
        body.append(Instruction(Op.EMIT_PER_HORIZON_SIZE, h))
    ending = (Op.AGG_WEIGHTED_SHARPE, Op.WRITE_ORDER, Op.HALT)
    return body + [Instruction(op) for op in ending]


def encode(programs: Iterable[Sequence[Instruction]], horizons: int) -> torch.Tensor:
    """Return programs (P, L, 2) int32, 8 bytes an instruction: op, arg, two zeros, float32.

    Shorter ones are padded with zeros. Each is verified: raises ValueError naming program and
    instruction.
    """
    listed = list(programs)
    for number, program in enumerate(listed):
        try:
            verify(program, horizons)
        except ValueError as error:
            raise ValueError(f"program {number}: {error}") from None
    longest = max(map(len, listed), default=1)
    words = np.zeros((len(listed), longest, 2), np.int32)
    for row, program in zip(words, listed, strict=True):
        for place, each in enumerate(program):
            row[place] = struct.unpack(
                "<2i", struct.pack("<BBHf", each.op, each.arg, 0, each.immediate)
            )
    return torch.from_numpy(words)


def decode(words: np.ndarray) -> list[Instruction]:
    """Return the instructions of one program (L, 2) int32, up to the first HALT.

    Raises ValueError naming an instruction with an unknown op or bytes that must be zero.
    """
    program = []
    for place, row in enumerate(words):
        op, arg, zero, immediate = struct.unpack("<BBHf", struct.pack("<2i", *map(int, row)))
        if op not in Op._value2member_map_:
            raise ValueError(f"instruction {place}: unknown op {op}; known are 0 to {max(Op)}")
        if zero:
            raise ValueError(f"instruction {place} ({Op(op).name}): bytes 2 and 3 must be zero")
        program.append(Instruction(Op(op), arg, immediate))
        if op == Op.HALT:
            if words[place + 1 :].any():
                raise ValueError(f"instruction {place} (HALT): must be the last one")
            break
    return program


def check_programs(programs: torch.Tensor, horizons: int) -> None:
    """TypeError or ValueError unless every program (P, L, 2) int32 can be run."""
    if programs.dtype != torch.int32 or programs.ndim != 3 or programs.shape[2] != 2:
        raise TypeError(
            f"programs must be int32 (P, L, 2), got {programs.dtype} {tuple(programs.shape)}"
        )
    for number, words in enumerate(programs.cpu().numpy()):
        try:
            verify(decode(words), horizons)
        except ValueError as error:
            raise ValueError(f"programs: program {number}: {error}") from None
