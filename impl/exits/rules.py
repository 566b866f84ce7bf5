"""When an open trade is given up: composite, stop, maximum hold, in this order."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.decision.signals import check_cost

STAYS = tl.constexpr(0)
COMPOSITE = tl.constexpr(1)
STOP = tl.constexpr(2)
HOLD = tl.constexpr(3)


class Levels(NamedTuple):
    """What exits are judged by, float32 (BLOCK,)."""

    unrealised: tl.tensor
    composite: tl.tensor
    stop: tl.tensor


@triton.jit
def unrealised_of(
    position: tl.tensor, basis: tl.tensor, bid: tl.tensor, ask: tl.tensor
) -> tl.tensor:
    """Return the open profit at the mid in hundredths, float32, costs excluded; int64 in."""
    return 0.5 * (position * (bid + ask) - 2 * basis).to(tl.float32)


@triton.jit
def levels(
    unrealised: tl.tensor,
    size: tl.tensor,
    at_entry: tl.tensor,
    conviction: tl.tensor,
    pnl: tl.tensor,
    disagreement: tl.tensor,
    mean_var: tl.tensor,
    cost: tl.tensor,
    stop_multiple: tl.tensor,
) -> Levels:
    """Return the composite and the stop level; size is |position|, disagreement counts events."""
    faded = tl.div_rn(1.0 - tl.div_rn(conviction, tl.where(at_entry == 0.0, 1.0, at_entry)), 2.0)
    degradation = tl.where(at_entry == 0.0, 0.0, faded)
    disputed = tl.div_rn(disagreement.to(tl.float32), 32.0)
    decay = tl.maximum(-pnl, 0.0)
    spread = tl.sqrt_rn(mean_var + cost * cost)
    return Levels(
        unrealised,
        tl.maximum(tl.maximum(degradation, disputed), decay),
        -((stop_multiple * spread) * size.to(tl.float32)),
    )


@triton.jit
def reason_of(level: Levels, held: tl.tensor, max_hold: tl.tensor, is_open: tl.tensor) -> tl.tensor:
    """Return which rule fires first, 0 for none; held and max_hold in ns, int64."""
    rule = tl.where(held >= max_hold, HOLD, STAYS)
    rule = tl.where(level.unrealised <= level.stop, STOP, rule)
    rule = tl.where(level.composite >= 1.0, COMPOSITE, rule)
    return tl.where(is_open, rule, STAYS)


@triton.jit
def _judge_kernel(
    position: tl.tensor,
    basis: tl.tensor,
    bid: tl.tensor,
    ask: tl.tensor,
    held: tl.tensor,
    at_entry: tl.tensor,
    conviction: tl.tensor,
    pnl: tl.tensor,
    disagreement: tl.tensor,
    mean_var: tl.tensor,
    cost: tl.tensor,
    stop_multiple: tl.tensor,
    max_hold: tl.tensor,
    unrealised_out: tl.tensor,
    composite_out: tl.tensor,
    stop_out: tl.tensor,
    reason_out: tl.tensor,
    S: int,
    BLOCK: tl.constexpr,
) -> None:
    one = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = one < S
    own = tl.load(position + one, mask=live, other=0)
    unrealised = unrealised_of(
        own,
        tl.load(basis + one, mask=live, other=0),
        tl.load(bid + one, mask=live, other=0).to(tl.int64),
        tl.load(ask + one, mask=live, other=0).to(tl.int64),
    )
    level = levels(
        unrealised,
        tl.abs(own),
        tl.load(at_entry + one, mask=live, other=0.0),
        tl.load(conviction + one, mask=live, other=0.0),
        tl.load(pnl + one, mask=live, other=0.0),
        tl.load(disagreement + one, mask=live, other=0),
        tl.load(mean_var + one, mask=live, other=0.0),
        tl.load(cost + one, mask=live, other=1.0),
        tl.load(stop_multiple + one, mask=live, other=1.0),
    )
    elapsed = tl.load(held + one, mask=live, other=0)
    reason = reason_of(level, elapsed, tl.load(max_hold + one, mask=live, other=1), own != 0)
    tl.store(unrealised_out + one, level.unrealised, mask=live)
    tl.store(composite_out + one, level.composite, mask=live)
    tl.store(stop_out + one, level.stop, mask=live)
    tl.store(reason_out + one, reason, mask=live)


def judge(
    position: torch.Tensor,
    basis: torch.Tensor,
    bid: torch.Tensor,
    ask: torch.Tensor,
    held: torch.Tensor,
    at_entry: torch.Tensor,
    conviction: torch.Tensor,
    pnl: torch.Tensor,
    disagreement: torch.Tensor,
    mean_var: torch.Tensor,
    cost: torch.Tensor,
    stop_multiple: torch.Tensor,
    max_hold: torch.Tensor,
    *,
    block: int = 128,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Judge S open trades: unrealised, composite, stop level, float32, and reason int32, all (S,).

    position, basis, held and max_hold (ns) int64; bid, ask, disagreement int32; the others float32:
    at_entry, conviction, pnl of the trade record, mean_var the horizons' mean variance, cost, and
    stop_multiple (inf: no stop). reason is 0 none or no position, 1 composite, 2 stop, 3 hold
    (backtest.md, 5). One launch. Raises ValueError.
    """
    _check_trades(
        (position, basis, held, max_hold),
        (bid, ask, disagreement),
        (at_entry, conviction, pnl, mean_var, cost, stop_multiple),
    )
    _checks.blocks(block=block)
    simulations = position.shape[0]
    unrealised, composite, stop = numbers = [torch.empty_like(cost) for _ in range(3)]
    reason = torch.empty_like(bid)
    if simulations:
        trade = (position, basis, bid, ask, held, at_entry, conviction, pnl, disagreement)
        rules = (mean_var, cost, stop_multiple, max_hold, *numbers, reason)
        _judge_kernel[(triton.cdiv(simulations, block),)](
            *trade, *rules, simulations, block, num_warps=1, enable_fp_fusion=False
        )
    return unrealised, composite, stop, reason


def _check_trades(
    longs: tuple[torch.Tensor, ...],
    ints: tuple[torch.Tensor, ...],
    floats: tuple[torch.Tensor, ...],
) -> None:
    """TypeError or ValueError naming the argument of `judge` that is wrong."""
    arguments = _checks.Arguments()
    kinds = (
        (("position", "basis", "held", "max_hold"), longs, torch.int64),
        (("bid", "ask", "disagreement"), ints, torch.int32),
        (
            ("at_entry", "conviction", "pnl", "mean_var", "cost", "stop_multiple"),
            floats,
            torch.float32,
        ),
    )
    for names, values, dtype in kinds:
        for name, value in zip(names, values, strict=True):
            arguments.tensor(name, value, "S", dtype)
    *_, mean_var, cost, stop_multiple = floats
    check_cost(cost)
    check_limits(stop_multiple, longs[-1])
    _checks.finite_not_negative("mean_var", mean_var)


def levels_of(
    position: torch.Tensor,
    basis: torch.Tensor,
    bid: torch.Tensor,
    ask: torch.Tensor,
    at_entry: torch.Tensor,
    conviction: torch.Tensor,
    pnl: torch.Tensor,
    disagreement: torch.Tensor,
    mean_var: torch.Tensor,
    cost: torch.Tensor,
    stop_multiple: torch.Tensor,
    *,
    block: int = 128,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return unrealised, composite and stop level (S,) float32 of S trades, as `judge` has them.

    Arguments, launch and errors as there, without the hold.
    """
    trade = (position, basis, bid, ask, torch.zeros_like(position), at_entry, conviction, pnl)
    rest = (disagreement, mean_var, cost, stop_multiple, torch.ones_like(position))
    unrealised, composite, stop, _ = judge(*trade, *rest, block=block)
    return unrealised, composite, stop


def check_limits(stop_multiple: torch.Tensor, max_hold: torch.Tensor) -> None:
    """ValueError unless every stop multiple and every maximum hold is positive."""
    _checks.every("stop_multiple", stop_multiple, stop_multiple > 0, "positive (inf: off)")
    _checks.every("max_hold", max_hold, max_hold > 0, "positive")
