"""The stack machine of policy programs, one simulation and one instruction at a time.

An instruction is two words of 4 bytes: op, arg and two zeros, then a float32.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trivet.oracles._pinned import pinned

Single = np.float32
ZERO, ONE = Single(0), Single(1)
Values = list[np.float32]
_NAMES = (
    *("HALT", "PUSH_P", "PUSH_MAG", "PUSH_DIR", "PUSH_WEIGHT", "CONST", "DUP", "AGG"),
    *("NEG", "ABS", "CLAMP01", "ADD", "SUB", "MUL", "DIV", "MIN", "MAX", "GT"),
    *("SELECT", "POP", "EMIT", "WRITE", "SWAP"),
)


def _divided(second: Single, first: Single) -> Single:
    return ZERO if first == 0 else second / first


def _smaller(second: Single, first: Single) -> Single:
    if np.isnan(first) or np.isnan(second):
        return Single(np.nan)
    return first if first < second else second


def _larger(second: Single, first: Single) -> Single:
    if np.isnan(first) or np.isnan(second):
        return Single(np.nan)
    return first if first > second else second


BINARY: dict[str, Callable[[Single, Single], Single]] = {
    "ADD": lambda second, first: second + first,
    "SUB": lambda second, first: second - first,
    "MUL": lambda second, first: second * first,
    "DIV": _divided,
    "MIN": _smaller,
    "MAX": _larger,
    "GT": lambda second, first: ONE if second > first else ZERO,
}
UNARY: dict[str, Callable[[Single], Single]] = {
    "NEG": lambda x: -x,
    "ABS": abs,
    "CLAMP01": lambda x: min(x, ONE) if x > 0 else ZERO,
}
SIGNS = {True: ONE, False: ZERO}


class Machine:
    """One program on one simulation's horizons."""

    def __init__(self, q: Sequence[Single], weight: Sequence[Single]) -> None:
        self.q, self.weight = q, weight
        self.stack: Values = []
        self.sizes: Values = [ZERO] * len(q)
        self.written = ZERO

    def run(self, words: Any) -> None:
        """Execute instructions up to HALT."""
        for first, second in words:
            raw = struct.pack("<2i", int(first), int(second))
            op, arg, _, immediate = struct.unpack("<BBHf", raw)
            if _NAMES[op] == "HALT":
                return
            self._step(_NAMES[op], arg, Single(immediate))

    def _step(self, name: str, arg: int, immediate: Single) -> None:
        stack = self.stack
        if name in BINARY:
            first, second = stack.pop(), stack.pop()
            stack.append(BINARY[name](second, first))
        elif name in UNARY:
            stack.append(UNARY[name](stack.pop()))
        elif name == "SELECT":
            c, b, a = stack.pop(), stack.pop(), stack.pop()
            stack.append(a if c > 0 else b)
        elif name == "SWAP":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif name == "POP":
            stack.pop()
        elif name == "EMIT":
            self.sizes[arg] = stack.pop()
        elif name == "WRITE":
            self.written = stack.pop()
        else:
            stack.append(self._pushed(name, arg, immediate))

    def _pushed(self, name: str, arg: int, immediate: Single) -> Single:
        if name == "CONST":
            return immediate
        if name == "DUP":
            return self.stack[-1]
        if name == "AGG":
            above = below = ZERO
            for size, weight in zip(self.sizes, self.weight, strict=True):
                above, below = above + size * weight, below + weight
            return above / below
        q = self.q[arg]
        if name == "PUSH_P":
            return q + Single(0.5)
        if name == "PUSH_MAG":
            return Single(2) * abs(q)
        if name == "PUSH_DIR":
            return SIGNS[bool(q > 0)] - SIGNS[bool(q < 0)]
        return self.weight[arg]

    @property
    def undefined(self) -> bool:
        """Whether NaN was written, which counts as 0."""
        return bool(np.isnan(self.written))

    @property
    def signed(self) -> Single:
        """What takes the place of the built-in signal."""
        return ZERO if self.undefined else min(max(self.written, -ONE), ONE)

    @property
    def dominant(self) -> int:
        """The horizon of the largest |size weight|, ties to the lowest."""
        best, strongest = 0, -ONE
        for h, (size, weight) in enumerate(zip(self.sizes, self.weight, strict=True)):
            if abs(size * weight) > strongest:
                best, strongest = h, abs(size * weight)
        return best


@pinned
def evaluate(programs: Any, program: Any, q: Any, weight: Any) -> tuple[Any, Any, Any]:
    """signed, dominant and undefined (S,)."""
    count = len(program)
    signed = np.zeros(count, Single)
    dominant, undefined = np.zeros((2, count), np.int64)
    for s in range(count):
        if program[s] >= 0:
            machine = Machine(list(q[s]), list(weight[s]))
            machine.run(programs[program[s]])
            signed[s], dominant[s] = machine.signed, machine.dominant
            undefined[s] = machine.undefined
    return signed, dominant, undefined
