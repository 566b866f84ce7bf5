"""The weight of each horizon's smoothness loss, and its trace: the first producer of records."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.controllers.rates import excess_over, permanent_floor
from trivet.impl.decision.averages import FIELDS, load_average
from trivet.impl.trace import INPUT, OUTPUT, STATE, Ring
from trivet.impl.trace.ring import open_ring, write_horizons

KERNEL_ID = tl.constexpr(1)
_INPUT, _STATE, _OUTPUT = tl.constexpr(INPUT), tl.constexpr(STATE), tl.constexpr(OUTPUT)


@triton.jit
def _smoothness_lambda_kernel(
    jitter: tl.tensor,
    horizons: tl.tensor,
    floor: tl.tensor,
    weight: tl.tensor,
    slots: tl.tensor | None,
    head: tl.tensor | None,
    step: tl.tensor | None,
    base: float,
    N: int,
    capacity: int,
    BLOCK_N: tl.constexpr,
) -> None:
    horizon = tl.arange(0, BLOCK_N)
    live = horizon < N
    average = load_average(jitter, horizon, N, live)
    shortest = tl.load(horizons).to(tl.float32)
    events = tl.load(horizons + horizon, mask=live, other=1).to(tl.float32)
    goal = tl.load(jitter) * tl.sqrt_rn(tl.div_rn(shortest, events))
    least = tl.load(floor + horizon, mask=live, other=1.0)
    known = tl.load(jitter + (4 * N)) != 0.0
    least = permanent_floor(least, goal, known & (least == 0.0))
    tl.store(floor + horizon, least, mask=live)
    excess = excess_over(average.mean, goal, least)
    excess = tl.where(known & (average.seen != 0.0), excess, 0.0)
    tl.store(weight + horizon, base * excess, mask=live)
    if slots is not None:
        pen = open_ring(slots, head, step, capacity)
        nothing = tl.zeros([BLOCK_N], tl.float32)
        pen = write_horizons(pen, KERNEL_ID, _INPUT, horizon, N, average.last, nothing)
        pen = write_horizons(pen, KERNEL_ID, _STATE, horizon, N, average.mean, goal)
        write_horizons(pen, KERNEL_ID, _OUTPUT, horizon, N, excess, base * excess)


def smoothness_lambda(
    jitter: torch.Tensor,
    horizons: torch.Tensor,
    floor: torch.Tensor,
    base: float,
    ring: Ring | None = None,
) -> torch.Tensor:
    """Return the weight (N,) float32 of each horizon's smoothness loss.

    goal_k = J_0 sqrt(horizons_0 / horizons_k), J the means of the averages jitter (5, N) float32;
    weight_k = base max(0, J_k - goal_k) / max(goal_k, floor_k), 0 before J_0 and J_k were
    observed. horizons (N,) int32 are events, positive. floor (N,) float32 is 0 until the first
    goal sets it to max(goal, 1e-3) / 16 for ever, in place. With a ring, three records: INPUT the
    last jitter observed, STATE J and goal, OUTPUT ratio and weight, six horizons a record. One
    launch of one program. Raises TypeError or ValueError naming the argument.
    """
    arguments = _checks.Arguments(F=len(FIELDS))
    arguments.tensor("jitter", jitter, "F N", torch.float32)
    arguments.tensor("horizons", horizons, "N", torch.int32)
    arguments.tensor("floor", floor, "N", torch.float32)
    N = horizons.shape[0]
    _checks.horizons(N)
    _checks.every("horizons", horizons, horizons > 0, "positive")
    if not 0 <= base < float("inf"):
        raise ValueError(f"base must be finite and not negative, got {base}")
    weight = torch.empty_like(floor)
    given = (None, None, None) if ring is None else (ring.slots, ring.head, ring.step)
    _smoothness_lambda_kernel[(1,)](
        jitter, horizons, floor, weight, *given, base, N, 1 if ring is None else ring.capacity,
        triton.next_power_of_2(N), num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip
    return weight
