"""From smoothed horizons to one signal: weights, the summed direction, the target in lots."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from trivet.impl import _checks

# Below a thousandth of a hundredth per lot the square of the cost, which weights divide by, loses
# all meaning; above a billion it leaves float32 together with the squares of profits.
LEAST_COST = 1e-3
LARGEST_COST = 1e9


class Signal(NamedTuple):
    """What a block of simulations sees of its horizons, all (BLOCK,).

    signed in [-1, 1]; first and last: the signed weighted terms summed over the first and the
    last N // 2 horizons; mean_var: the mean variance of profit; dominant: the horizon of the
    largest magnitude times weight, int32.
    """

    signed: tl.tensor
    first: tl.tensor
    last: tl.tensor
    mean_var: tl.tensor
    dominant: tl.tensor


@triton.jit
def pick(tile: tl.tensor, column: tl.tensor, h: int) -> tl.tensor:
    """Return column h of a tile (BLOCK, COLUMNS); adding zeros changes no bit of it."""
    return tl.sum(tl.where(column[None, :] == h, tile, 0), axis=1)


@triton.jit
def sign(x: tl.tensor) -> tl.tensor:
    """Return 1, 0 or -1, float32."""
    return (x > 0.0).to(tl.float32) - (x < 0.0).to(tl.float32)


@triton.jit
def weights(net_edge: tl.tensor, var: tl.tensor, cost: tl.tensor) -> tl.tensor:
    """Return max(net_edge, eps) / (var + cost^2), eps = 0.01 cost; tiles (BLOCK, COLUMNS)."""
    least = (0.01 * cost)[:, None]
    return tl.div_rn(tl.maximum(net_edge, least), var + (cost * cost)[:, None])


@triton.jit
def weigh(
    q: tl.tensor, weight: tl.tensor, var: tl.tensor, column: tl.tensor, N: tl.tensor
) -> Signal:
    """Sum the horizons 0 to N - 1, in ascending order; tiles (BLOCK, COLUMNS)."""
    strength = (2.0 * tl.abs(q)) * weight
    terms = strength * sign(q)
    above = tl.zeros([q.shape[0]], tl.float32)
    below = above
    first = above
    last = above
    variance = above
    strongest = above - 1.0
    dominant = tl.zeros([q.shape[0]], tl.int32)
    for h in range(N):
        term = pick(terms, column, h)
        above += term
        below += pick(tl.abs(weight), column, h)
        variance += pick(var, column, h)
        first += tl.where(h < N // 2, term, 0.0)
        last += tl.where(h >= N - N // 2, term, 0.0)
        here = pick(strength, column, h)
        dominant = tl.where(here > strongest, h, dominant)
        strongest = tl.maximum(here, strongest)
    signed = tl.minimum(tl.maximum(tl.div_rn(above, below), -1.0), 1.0)
    return Signal(signed, first, last, tl.div_rn(variance, N.to(tl.float32)), dominant)


@triton.jit
def round_half_even(x: tl.tensor) -> tl.tensor:
    """Return the nearest whole number, ties to the even one; float32, exact."""
    below = tl.floor(x)
    part = x - below
    odd = below - 2.0 * tl.floor(0.5 * below)
    up = (part > 0.5) | ((part == 0.5) & (odd == 1.0))
    return below + up.to(tl.float32)


@triton.jit
def target_of(
    signed: tl.tensor, conviction: tl.tensor, threshold: tl.tensor, max_lots: tl.tensor
) -> tl.tensor:
    """Return the target in lots, int64: conviction decides the size, signed the side."""
    most = max_lots.to(tl.float32)
    lots = round_half_even((sign(signed) * conviction) * most)
    lots = tl.minimum(tl.maximum(lots, -most), most)
    return tl.where(conviction < threshold, 0, lots.to(tl.int64))


@triton.jit(do_not_specialize=["N"])
def _weigh_kernel(
    q: tl.tensor,
    net_edge: tl.tensor,
    var: tl.tensor,
    cost: tl.tensor,
    weight_out: tl.tensor,
    signed_out: tl.tensor,
    S: int,
    N: int,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    simulation = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, COLUMNS)
    live = simulation < S
    place = simulation[:, None] * N + column[None, :]
    inside = live[:, None] & (column < N)[None, :]
    smoothed = tl.load(q + place, mask=inside, other=0.0)
    edge = tl.load(net_edge + place, mask=inside, other=0.0)
    variance = tl.load(var + place, mask=inside, other=0.0)
    weight = weights(edge, variance, tl.load(cost + simulation, mask=live, other=1.0))
    signal = weigh(smoothed, weight, variance, column, N)
    tl.store(weight_out + place, weight, mask=inside)
    tl.store(signed_out + simulation, signal.signed, mask=live)


def weighted(
    q: torch.Tensor,
    net_edge: torch.Tensor,
    var: torch.Tensor,
    cost: torch.Tensor,
    *,
    block: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weight (S, N) and signed (S,), both float32.

    q (S, N) are smoothed p - 0.5, net_edge and var (S, N) the mean and variance of net profit per
    closed lot, cost (S,) in hundredths per lot and side; all float32 (backtest.md, 2). One launch.
    Raises ValueError for a q outside [-0.5, 0.5], a cost under 1e-3 or over 1e9, an edge that is
    not finite and a variance that is not finite and not negative, and for no horizon.
    """
    arguments = _checks.Arguments()
    arguments.tensor("q", q, "S N", torch.float32)
    arguments.tensor("net_edge", net_edge, "S N", torch.float32)
    arguments.tensor("var", var, "S N", torch.float32)
    arguments.tensor("cost", cost, "S", torch.float32)
    _checks.blocks(block=block)
    simulations, horizons = q.shape
    _checks.count("N", horizons, 1)
    _checks.every("q", q, q.abs() <= 0.5, "from -0.5 to 0.5")
    check_cost(cost)
    _checks.every("net_edge", net_edge, net_edge.isfinite(), "finite")
    _checks.finite_not_negative("var", var)
    weight = torch.empty_like(q)
    signed = torch.empty_like(cost)
    if simulations:
        sizes = (simulations, horizons, block, columns_of(horizons))
        _weigh_kernel[(triton.cdiv(simulations, block),)](
            q, net_edge, var, cost, weight, signed, *sizes, num_warps=1, enable_fp_fusion=False
        )
    return weight, signed


def columns_of(horizons: int) -> int:
    """Return the columns of a tile that holds so many horizons, and the record's four."""
    return max(4, int(triton.next_power_of_2(horizons)))


def check_cost(cost: torch.Tensor) -> None:
    """ValueError unless every cost lies from 1e-3 to 1e9: every weight divides by its square."""
    single = torch.tensor((LEAST_COST, LARGEST_COST)).tolist()
    good = (cost >= single[0]) & (cost <= single[1])
    _checks.every("cost", cost, good, f"from {LEAST_COST:g} to {LARGEST_COST:g}")
