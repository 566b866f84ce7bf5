"""Policy programs: the stack machine against a plain one, and the programs it may refuse."""

from typing import Any

import numpy as np
import torch

from trivet import Contract, Tensor, integers, log_uniform, reals, sizes
from trivet.impl import policy as kernels
from trivet.impl.policy import Instruction, Op
from trivet.oracles import policy as oracles
from trivet.properties._expect import at_most, same_bits, same_values
from trivet.properties.decision.inputs import (
    BLOCK,
    PINNED,
    SIMULATIONS,
    Array,
    BadCase,
    Rerun,
    filled,
    widened,
)
from trivet.properties.orders.inputs import COUNTS

# Generated programs use the first horizons only, so that any number of four and more has them.
USED_HORIZONS = 4
IMMEDIATES = (0.0, -0.0, 1.0, -1.0, 0.5, 0.25, 3e38, 1e-40, -2.5)
HORIZON = (Op.PUSH_P, Op.PUSH_MAG, Op.PUSH_DIR, Op.PUSH_WEIGHT, Op.EMIT_PER_HORIZON_SIZE)
PUSHES = (*HORIZON[:4], Op.CONST, Op.AGG_WEIGHTED_SHARPE)
FOLDS = (Op.SUB, Op.DIV, Op.ADD, Op.MUL, Op.MIN, Op.MAX, Op.GT)
OTHERS = (Op.NEG, Op.ABS, Op.CLAMP01, Op.DUP, Op.SWAP, Op.POP, Op.EMIT_PER_HORIZON_SIZE)


def program_of(numbers: Array, row: int) -> list[Instruction]:
    """A valid program of at most as many instructions as there are numbers, drawn from them.

    At the end all values left are folded into the one that is written, so that each counts.
    """
    random = np.random.default_rng([*map(int, numbers), row])
    program: list[Instruction] = []
    depth = 0
    options: tuple[Op, ...]
    while len(program) + depth + 4 < len(numbers):
        options = PUSHES if depth < 2 else (FOLDS, PUSHES, PUSHES, OTHERS)[random.integers(4)]
        if depth > 3 and random.integers(3) == 0:
            options = (Op.SELECT,)
        program.append(_filled(options[random.integers(len(options))], random))
        depth += program[-1].change
        if random.integers(len(numbers)) == 0 and depth:
            break
    while depth > 1:
        fold = Op.SELECT if depth > 2 and random.integers(3) == 0 else FOLDS[random.integers(7)]
        program.append(Instruction(fold))
        depth += program[-1].change
    if depth < 1:
        program.append(_filled(PUSHES[random.integers(len(PUSHES))], random))
    return [*program, Instruction(Op.WRITE_ORDER), Instruction(Op.HALT)]


def _filled(op: Op, random: np.random.Generator) -> Instruction:
    if op is Op.CONST:
        return Instruction(op, immediate=IMMEDIATES[random.integers(len(IMMEDIATES))])
    return Instruction(op, int(random.integers(USED_HORIZONS)) if op in HORIZON else 0)


def as_programs(words: Array) -> Array:
    """Words (P, L, 2) of valid programs, shorter ones padded with zeros."""
    coded = np.zeros_like(words)
    for row, numbers in enumerate(words):
        code = kernels.encode([program_of(numbers[:, 0], row)], USED_HORIZONS)[0].numpy()
        coded[row, : len(code)] = code
    return coded


def coded(*lines: str) -> BadCase:
    """A case of one program, encoded without a look at it."""
    instructions = kernels.parse("\n".join(lines))
    words = [[each.op | each.arg << 8, 0] for each in instructions]

    def case(program: torch.Tensor) -> dict[str, object]:
        return {
            "programs": torch.tensor([words], dtype=torch.int32),
            "program": torch.zeros_like(program),
        }

    case.__name__ = "; ".join(lines)
    return case


def with_word(word: int, immediate: int = 0) -> BadCase:
    """A case whose first instruction is this word."""
    rest = [[Op.WRITE_ORDER, 0], [Op.HALT, 0]]

    def case(program: torch.Tensor) -> dict[str, object]:
        words = torch.tensor([[[word, immediate], *rest]], dtype=torch.int32)
        return {"programs": words, "program": torch.zeros_like(program)}

    case.__name__ = f"word {word:#x}, {immediate:#x}"
    return case


INFINITE = 0x7F800000
policy_evaluate = Contract(
    kernel=kernels.evaluate,
    oracles=[oracles.evaluate],
    dims=SIMULATIONS
    | {"N": sizes(USED_HORIZONS, 6, production=5), "P": sizes(1, 12), "L": sizes(8, 24)},
    args={
        "programs": Tensor("P L 2", dtypes=COUNTS, domain=integers(0, 2**31 - 1).map(as_programs)),
        "program": Tensor("S", dtypes=COUNTS, domain=integers(-1, "P-1")),
        "q": Tensor("S N", domain=reals(-0.5, 0.5)),
        "weight": Tensor("S N", domain=log_uniform(1e-3, 1e3)),
        "block": BLOCK,
    },
    outputs={
        "signed": Tensor("S"),
        "dominant": Tensor("S", dtypes=COUNTS),
        "undefined": Tensor("S", dtypes=COUNTS),
    },
    raises=(
        (ValueError, "instruction 0 (ADD): needs 2", coded("ADD", "WRITE_ORDER", "HALT")),
        (ValueError, "instruction 2 (HALT): no WRITE_ORDER", coded("CONST 1", "POP", "HALT")),
        (ValueError, "ends with HALT", coded("CONST 1", "WRITE_ORDER")),
        (ValueError, "second WRITE_ORDER", coded(*["CONST 1", "WRITE_ORDER"] * 2, "HALT")),
        (ValueError, "at most 16", coded(*["CONST 1"] * 17, "WRITE_ORDER", "HALT")),
        (ValueError, "horizon 9", coded("PUSH_P 9", "WRITE_ORDER", "HALT")),
        (ValueError, "unknown op 99", with_word(99)),
        (ValueError, "bytes 2 and 3", with_word(Op.CONST | 1 << 16)),
        (ValueError, "finite", with_word(Op.CONST, INFINITE)),
        (ValueError, "takes no argument", with_word(Op.CONST | 3 << 8)),
        (ValueError, "must be the last", with_word(Op.HALT)),
        (ValueError, "program must be", filled("program", 99)),
        (ValueError, "weight", filled("weight", 0.0)),
        (TypeError, "q", widened("q")),
    ),
)
policy_evaluate.without("logic_matches", PINNED)


@policy_evaluate.law
def orders_are_numbers_within_one(out: Any) -> None:
    """What a program writes is clamped to [-1, 1]; NaN counts as 0 and is counted."""
    at_most(np.abs(out.signed), np.ones_like(out.signed), "|signed|")
    same_values(np.where(out.undefined == 1, out.signed, 0), np.zeros_like(out.signed), "signed")


@policy_evaluate.law
def default_policy_is_the_built_in_decision(
    q: Array, weight: Array, program: Array, N: int, rerun: Rerun
) -> None:
    """MAG, DIR, MUL, EMIT for each horizon and AGG give the built-in signal, bitwise."""
    words = kernels.encode([kernels.default_program(N)], N).numpy().astype(np.int64)
    out = rerun(programs=words, program=np.zeros_like(program))
    single = weight.astype(np.float32)
    signed = _built_in(q.astype(np.float32), single)
    same_values(out.signed, signed, "signed of the default policy")
    strength = (2 * np.abs(q.astype(np.float32))) * single
    same_values(out.dominant, strength.argmax(axis=1), "dominant of the default policy")


def _built_in(q: Array, weight: Array) -> Array:
    """The signal in float32, horizons in ascending order."""
    above = np.zeros(len(q), np.float32)
    below = np.zeros(len(q), np.float32)
    for h in range(q.shape[1]):
        above += ((2 * np.abs(q[:, h])) * weight[:, h]) * np.sign(q[:, h])
        below += weight[:, h]
    return np.asarray(np.clip(above / below, -1, 1))


@policy_evaluate.law
def longer_padding_changes_nothing(out: Any, programs: Array, P: int, rerun: Rerun) -> None:
    """Zeros after HALT are no instructions."""
    padded = np.concatenate([programs, np.zeros((P, 3, 2), np.int64)], axis=1)
    again = rerun(programs=padded)
    for name in ("signed", "dominant", "undefined"):
        same_bits(getattr(again, name), getattr(out, name), f"{name} of padded programs")
