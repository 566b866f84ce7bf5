"""Policy programs: a simulation decides by its own straight-line code.

evaluate  run a program for each simulation
parse, verify, encode, decode, default_program   programs on the host
"""

from trivet.impl.policy.machine import evaluate
from trivet.impl.policy.programs import (
    Instruction,
    Op,
    decode,
    default_program,
    encode,
    parse,
    verify,
)

__all__ = [
    "Instruction",
    "Op",
    "decode",
    "default_program",
    "encode",
    "evaluate",
    "parse",
    "verify",
]
