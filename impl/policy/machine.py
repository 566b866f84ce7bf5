"""The stack machine: every simulation its own program, all in step, one instruction at a time."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.decision.signals import Signal, columns_of, pick, sign
from trivet.impl.policy.programs import STACK, Op, check_programs

_STACK = tl.constexpr(STACK)
_PUSH_P = tl.constexpr(int(Op.PUSH_P))
_PUSH_MAG = tl.constexpr(int(Op.PUSH_MAG))
_PUSH_DIR = tl.constexpr(int(Op.PUSH_DIR))
_PUSH_WEIGHT = tl.constexpr(int(Op.PUSH_WEIGHT))
_CONST = tl.constexpr(int(Op.CONST))
_DUP = tl.constexpr(int(Op.DUP))
_AGG = tl.constexpr(int(Op.AGG_WEIGHTED_SHARPE))
_NEG = tl.constexpr(int(Op.NEG))
_ABS = tl.constexpr(int(Op.ABS))
_CLAMP01 = tl.constexpr(int(Op.CLAMP01))
_ADD = tl.constexpr(int(Op.ADD))
_SUB = tl.constexpr(int(Op.SUB))
_MUL = tl.constexpr(int(Op.MUL))
_DIV = tl.constexpr(int(Op.DIV))
_MIN = tl.constexpr(int(Op.MIN))
_MAX = tl.constexpr(int(Op.MAX))
_GT = tl.constexpr(int(Op.GT))
_SELECT = tl.constexpr(int(Op.SELECT))
_POP = tl.constexpr(int(Op.POP))
_EMIT = tl.constexpr(int(Op.EMIT_PER_HORIZON_SIZE))
_WRITE = tl.constexpr(int(Op.WRITE_ORDER))
_SWAP = tl.constexpr(int(Op.SWAP))


@triton.jit
def _own(tile: tl.tensor, column: tl.tensor, which: tl.tensor) -> tl.tensor:
    """Return of each row the column it names, 0 where there is none."""
    return tl.sum(tl.where(column[None, :] == which[:, None], tile, 0.0), axis=1)


@triton.jit
def _computed(op: tl.tensor, one: tl.tensor, two: tl.tensor, three: tl.tensor) -> tl.tensor:
    """Return what ops of values give: two op one, where one is the top of the stack."""
    value = tl.where(op == _DUP, one, 0.0)
    value = tl.where(op == _NEG, -one, value)
    value = tl.where(op == _ABS, tl.abs(one), value)
    value = tl.where(op == _CLAMP01, tl.where(one > 0.0, tl.minimum(one, 1.0), 0.0), value)
    value = tl.where(op == _ADD, two + one, value)
    value = tl.where(op == _SUB, two - one, value)
    value = tl.where(op == _MUL, two * one, value)
    quotient = tl.div_rn(two, tl.where(one == 0.0, 1.0, one))
    value = tl.where(op == _DIV, tl.where(one == 0.0, 0.0, quotient), value)
    unknown = (one != one) | (two != two)
    value = tl.where(op == _MIN, tl.where(one < two, one, two), value)
    value = tl.where(op == _MAX, tl.where(one > two, one, two), value)
    value = tl.where(((op == _MIN) | (op == _MAX)) & unknown, two + one, value)
    value = tl.where(op == _GT, (two > one).to(tl.float32), value)
    return tl.where(op == _SELECT, tl.where(one > 0.0, three, two), value)


@triton.jit
def _of_horizon(
    op: tl.tensor,
    arg: tl.tensor,
    immediate: tl.tensor,
    q: tl.tensor,
    weight: tl.tensor,
    column: tl.tensor,
    value: tl.tensor,
) -> tl.tensor:
    """Return what ops that read a horizon or their immediate push, value for the others."""
    smoothed = _own(q, column, arg)
    value = tl.where(op == _PUSH_P, smoothed + 0.5, value)
    value = tl.where(op == _PUSH_MAG, 2.0 * tl.abs(smoothed), value)
    value = tl.where(op == _PUSH_DIR, sign(smoothed), value)
    value = tl.where(op == _PUSH_WEIGHT, _own(weight, column, arg), value)
    return tl.where(op == _CONST, immediate, value)


@triton.jit
def _share(sizes: tl.tensor, weight: tl.tensor, column: tl.tensor, N: tl.tensor) -> tl.tensor:
    """Return the sum of size times weight over that of weight, horizons in ascending order."""
    above = tl.zeros([sizes.shape[0]], tl.float32)
    below = above
    for h in range(N):
        above += pick(sizes * weight, column, h)
        below += pick(weight, column, h)
    return tl.div_rn(above, below)


@triton.jit
def _ran(
    q: tl.tensor,
    weight: tl.tensor,
    programs: tl.tensor,
    chosen: tl.tensor,
    length: tl.tensor,
    column: tl.tensor,
    N: tl.tensor,
) -> tuple[tl.tensor, tl.tensor]:
    """Run the chosen programs (BLOCK,), -1 for none; the value written and the sizes emitted.

    Verified programs never leave the stack, so nothing here checks its depth.
    """
    has = chosen >= 0
    level = tl.arange(0, _STACK)
    stack = tl.zeros([chosen.shape[0], _STACK], tl.float32)
    depth = tl.zeros([chosen.shape[0]], tl.int32)
    written = tl.zeros([chosen.shape[0]], tl.float32)
    sizes = tl.zeros_like(q)
    first = programs + tl.where(has, chosen, 0).to(tl.int64) * length * 2
    for step in range(length):
        word = tl.load(first + 2 * step, mask=has, other=0)
        bits = tl.load(first + 2 * step + 1, mask=has, other=0)
        op = word & 0xFF
        arg = (word >> 8) & 0xFF
        one = _own(stack, level, depth - 1)
        two = _own(stack, level, depth - 2)
        value = _computed(op, one, two, _own(stack, level, depth - 3))
        value = _of_horizon(op, arg, bits.to(tl.float32, bitcast=True), q, weight, column, value)
        value = tl.where(op == _AGG, _share(sizes, weight, column, N), value)
        written = tl.where(op == _WRITE, one, written)
        emits = (op == _EMIT)[:, None] & (column[None, :] == arg[:, None])
        sizes = tl.where(emits, one[:, None], sizes)
        pops = ((op >= _NEG) & (op != _SWAP)).to(tl.int32) + ((op >= _ADD) & (op <= _SELECT)).to(
            tl.int32
        )
        pops += (op == _SELECT).to(tl.int32)
        pushes = (op >= _PUSH_P) & (op <= _SELECT)
        depth -= pops
        top = pushes[:, None] & (level[None, :] == depth[:, None])
        stack = tl.where(top, value[:, None], stack)
        swaps = (op == _SWAP)[:, None]
        stack = tl.where(swaps & (level[None, :] == depth[:, None] - 1), two[:, None], stack)
        stack = tl.where(swaps & (level[None, :] == depth[:, None] - 2), one[:, None], stack)
        depth += pushes.to(tl.int32)
    return written, sizes


@triton.jit
def overruled(
    signal: Signal,
    q: tl.tensor,
    weight: tl.tensor,
    programs: tl.tensor,
    chosen: tl.tensor,
    length: tl.tensor,
    column: tl.tensor,
    N: tl.tensor,
) -> tuple[Signal, tl.tensor]:
    """Let programs take the place of the built-in signal where one is chosen.

    Also returns where what a program wrote was NaN, and counts as 0.
    """
    has = chosen >= 0
    written, sizes = _ran(q, weight, programs, chosen, length, column, N)
    undefined = has & (written != written)
    value = tl.where(undefined, 0.0, tl.minimum(tl.maximum(written, -1.0), 1.0))
    strength = tl.abs(sizes * weight)
    strongest = tl.full([chosen.shape[0]], -1.0, tl.float32)
    dominant = tl.zeros([chosen.shape[0]], tl.int32)
    for h in range(N):
        here = pick(strength, column, h)
        dominant = tl.where(here > strongest, h, dominant)
        strongest = tl.where(here > strongest, here, strongest)
    return Signal(
        tl.where(has, value, signal.signed),
        signal.first,
        signal.last,
        signal.mean_var,
        tl.where(has, dominant, signal.dominant),
    ), undefined


@triton.jit(do_not_specialize=["length", "N"])
def _evaluate_kernel(
    programs: tl.tensor,
    program: tl.tensor,
    q: tl.tensor,
    weight: tl.tensor,
    signed: tl.tensor,
    dominant: tl.tensor,
    undefined: tl.tensor,
    S: int,
    N: int,
    length: int,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    simulation = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, COLUMNS)
    live = simulation < S
    place = simulation[:, None] * N + column[None, :]
    inside = live[:, None] & (column < N)[None, :]
    nothing = tl.zeros([BLOCK], tl.float32)
    none = Signal(nothing, nothing, nothing, nothing, nothing.to(tl.int32))
    signal, bad = overruled(
        none,
        tl.load(q + place, mask=inside, other=0.0),
        tl.load(weight + place, mask=inside, other=0.0),
        programs,
        tl.load(program + simulation, mask=live, other=-1),
        length,
        column,
        N,
    )
    tl.store(signed + simulation, signal.signed, mask=live)
    tl.store(dominant + simulation, signal.dominant, mask=live)
    tl.store(undefined + simulation, bad.to(tl.int32), mask=live)


def evaluate(
    programs: torch.Tensor,
    program: torch.Tensor,
    q: torch.Tensor,
    weight: torch.Tensor,
    *,
    block: int = 32,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Run a program for each simulation: signed (S,) float32, dominant and undefined (S,) int32.

    programs (P, L, 2) int32 as `encode` has them; program (S,) int32 chooses, -1 for none, which
    gives zeros; q and weight (S, N) float32, weights positive (backtest.md, 6). undefined is 1
    where a program wrote NaN. One launch. Raises ValueError naming program and instruction.
    """
    arguments = _checks.Arguments(W=2)
    arguments.tensor("q", q, "S N", torch.float32)
    arguments.tensor("weight", weight, "S N", torch.float32)
    arguments.tensor("program", program, "S", torch.int32)
    arguments.tensor("programs", programs, "P L W", torch.int32)
    _checks.blocks(block=block)
    simulations, horizons = q.shape
    _checks.count("N", horizons, 1)
    _checks.finite_positive("weight", weight)
    _checks.within("program", program, -1, programs.shape[0] - 1)
    check_programs(programs, horizons)
    signed = q.new_empty(simulations)
    dominant, undefined = torch.empty_like(program), torch.empty_like(program)
    if simulations:
        given = (programs, program, q, weight, signed, dominant, undefined)
        sizes = (simulations, horizons, programs.shape[1], block, columns_of(horizons))
        _evaluate_kernel[(triton.cdiv(simulations, block),)](
            *given, *sizes, num_warps=1, enable_fp_fusion=False
        )
    return signed, dominant, undefined
