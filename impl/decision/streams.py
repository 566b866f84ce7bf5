"""A stream of probabilities turned into signals and targets, many events a launch."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.decision.averages import (
    FIELDS,
    load_average,
    observe,
    store_average,
)
from trivet.impl.decision.signals import (
    check_cost,
    columns_of,
    target_of,
    weigh,
    weights,
)

MOST_LOTS = 1 << 20


@triton.jit
def centred(p: tl.tensor, inside: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Return p - 0.5 with NaN as 0, and how many of those inside were NaN; (B, C) and (B,)."""
    missing = inside & (p != p)
    return tl.where(missing, 0.0, p - 0.5), tl.sum(missing.to(tl.int64), axis=1)


@triton.jit(do_not_specialize=["E", "N"])
def _follow_kernel(
    p: tl.tensor,
    net_edge: tl.tensor,
    var: tl.tensor,
    cost: tl.tensor,
    threshold: tl.tensor,
    max_lots: tl.tensor,
    horizon_floor: tl.tensor,
    conviction_floor: tl.tensor,
    horizon_average: tl.tensor,
    conviction_average: tl.tensor,
    q: tl.tensor,
    signed: tl.tensor,
    conviction: tl.tensor,
    target: tl.tensor,
    missing: tl.tensor,
    S: int,
    E: int,
    N: int,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    simulation = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, COLUMNS)
    live = simulation < S
    inside = live[:, None] & (column < N)[None, :]
    place = simulation[:, None] * N + column[None, :]
    variance = tl.load(var + place, mask=inside, other=0.0)
    weight = weights(
        tl.load(net_edge + place, mask=inside, other=0.0),
        variance,
        tl.load(cost + simulation, mask=live, other=1.0),
    )
    least = tl.load(threshold + simulation, mask=live, other=0.0)
    most = tl.load(max_lots + simulation, mask=live, other=1)
    horizon_gain = tl.load(horizon_floor + simulation, mask=live, other=0.0)[:, None]
    conviction_gain = tl.load(conviction_floor + simulation, mask=live, other=0.0)
    horizons = load_average(horizon_average, place, S * N, inside)
    smoothed = load_average(conviction_average, simulation, S, live)
    absent = tl.zeros([BLOCK], tl.int64)
    for event in range(E):
        raw = tl.load(p + event * N + column, mask=column < N, other=0.5)
        move, count = centred(raw[None, :] + tl.zeros([BLOCK, COLUMNS], tl.float32), inside)
        absent += count
        horizons = observe(horizons, move, horizon_gain)
        signal = weigh(horizons.mean, weight, variance, column, N)
        smoothed = observe(smoothed, tl.abs(signal.signed), conviction_gain)
        row = tl.cast(event, tl.int64) * S
        tl.store(q + row * N + place, horizons.mean, mask=inside)
        tl.store(signed + row + simulation, signal.signed, mask=live)
        tl.store(conviction + row + simulation, smoothed.mean, mask=live)
        lots = target_of(signal.signed, smoothed.mean, least, most)
        tl.store(target + row + simulation, lots.to(tl.int32), mask=live)
    store_average(horizon_average, place, S * N, horizons, inside)
    store_average(conviction_average, simulation, S, smoothed, live)
    tl.store(missing + simulation, absent, mask=live)


def follow(
    p: torch.Tensor,
    net_edge: torch.Tensor,
    var: torch.Tensor,
    cost: torch.Tensor,
    threshold: torch.Tensor,
    max_lots: torch.Tensor,
    horizon_floor: torch.Tensor,
    conviction_floor: torch.Tensor,
    horizon_average: torch.Tensor,
    conviction_average: torch.Tensor,
    *,
    block: int = 32,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Run S simulations over E events: q (E, S, N), signed, conviction, target (E, S), missing.

    p (E, N) float32 in [0, 1], NaN counts as 0.5; net_edge and var (S, N), cost, threshold and the
    two floors (S,) float32; max_lots (S,) int32, 1 to 2^20. horizon_average (5, S, N) and
    conviction_average (5, S) are the averages' states: read first, and written with what they are
    after the last event, so that a stream may be cut anywhere. Outputs are float32, target int32,
    missing (S,) int64 the NaN seen (backtest.md, 2). One launch.
    """
    state = {"horizon_average": horizon_average, "conviction_average": conviction_average}
    floors = {"horizon_floor": horizon_floor, "conviction_floor": conviction_floor}
    _check_stream(
        p, (net_edge, var), {"cost": cost, "threshold": threshold} | floors, max_lots, state
    )
    _checks.blocks(block=block)
    (events, horizons), simulations = p.shape, len(cost)
    q = p.new_empty((events, simulations, horizons))
    signed, conviction = (p.new_empty((events, simulations)) for _ in range(2))
    target, missing = max_lots.new_empty((events, simulations)), _counts(cost)
    if simulations:
        given = (p, net_edge, var, cost, threshold, max_lots, *floors.values(), *state.values())
        outputs = (q, signed, conviction, target, missing)
        sizes = (simulations, events, horizons, block, columns_of(horizons))
        _follow_kernel[(triton.cdiv(simulations, block),)](
            *given, *outputs, *sizes, num_warps=1, enable_fp_fusion=False
        )
    return q, signed, conviction, target, missing


def _check_stream(
    p: torch.Tensor,
    edges: tuple[torch.Tensor, torch.Tensor],
    numbers: dict[str, torch.Tensor],
    max_lots: torch.Tensor,
    state: dict[str, torch.Tensor],
) -> None:
    """TypeError or ValueError naming the argument of `follow` that is wrong."""
    arguments = _checks.Arguments(A=len(FIELDS))
    arguments.tensor("p", p, "E N", torch.float32)
    for name, value in zip(("net_edge", "var"), edges, strict=True):
        arguments.tensor(name, value, "S N", torch.float32)
    arguments.tensor("max_lots", max_lots, "S", torch.int32)
    for (name, value), dims in zip(state.items(), ("A S N", "A S"), strict=True):
        arguments.tensor(name, value, dims, torch.float32)
    for name, value in numbers.items():
        arguments.tensor(name, value, "S", torch.float32)
    _checks.count("N", p.shape[1], 1)
    check_probabilities(p)
    check_cost(numbers["cost"])
    check_floors({name: value for name, value in numbers.items() if name.endswith("floor")})
    threshold = numbers["threshold"]
    _checks.every("threshold", threshold, threshold == threshold, "a number")
    _checks.within("max_lots", max_lots, 1, MOST_LOTS)


def _counts(cost: torch.Tensor) -> torch.Tensor:
    """A number for each simulation, not written yet."""
    return torch.empty_like(cost, dtype=torch.int64)


def check_probabilities(p: torch.Tensor) -> None:
    """ValueError naming the first p that is neither NaN nor in [0, 1]."""
    _checks.every("p", p, ((p >= 0) & (p <= 1)) | p.isnan(), "from 0 to 1, or NaN")


def check_floors(floors: dict[str, torch.Tensor]) -> None:
    """ValueError naming the first floor of a gain outside [0, 1]."""
    for name, floor in floors.items():
        _checks.every(name, floor, (floor >= 0) & (floor <= 1), "from 0 to 1")
