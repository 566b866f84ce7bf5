"""Which buckets are dead: mean activity, its average, and the counters that escalate."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.controllers.averages import GAIN_FLOOR, observe_finite
from trivet.impl.decision.averages import FIELDS, load_average, store_average
from trivet.impl.routing.record import RoutingRecord, slots_of

# Rows of the counters: dead and live steps in a row, level, steps, whether the average fell under
# half its floor, the window in force (0 before the first step), observations passed over.
COUNTERS = ("dead_run", "live_run", "level", "steps", "fell", "window", "rejected")
HIGHEST_LEVEL = 3
_HIGHEST = tl.constexpr(HIGHEST_LEVEL)
E = tl.constexpr(2.7182817459106445)


@triton.jit(do_not_specialize=["B"])
def _h_mag_kernel(
    h: tl.tensor,
    table: tl.tensor,
    h_mag: tl.tensor,
    B: int,
    H: int,
    M: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_SLOTS: tl.constexpr,
) -> None:
    bucket = tl.program_id(0)
    total = tl.zeros([BLOCK_ROWS, BLOCK_SLOTS], tl.float32)
    size = tl.zeros([], tl.int32)
    for first in range(0, M, BLOCK_SLOTS):
        slot = first + tl.arange(0, BLOCK_SLOTS)
        channel = tl.load(table + bucket * M + slot, mask=slot < M, other=-1)
        size += tl.sum((channel >= 0).to(tl.int32), axis=0)
        for start in range(0, B, BLOCK_ROWS):
            row = (start + tl.arange(0, BLOCK_ROWS)).to(tl.int64)
            live = (row < B)[:, None] & (channel >= 0)[None, :]
            place = row[:, None] * H + channel[None, :]
            total += tl.abs(tl.load(h + place, mask=live, other=0.0))
    whole = tl.sum(tl.sum(total, axis=1), axis=0)
    number = tl.maximum(size.to(tl.int64) * B, 1)
    tl.store(h_mag + bucket, tl.div_rn(whole, number.to(tl.float32)))


@triton.jit(do_not_specialize=["B"])
def _channel_activity_kernel(
    h: tl.tensor,
    activity: tl.tensor,
    B: int,
    H: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    channel = tl.program_id(0) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    total = tl.zeros([BLOCK_ROWS, BLOCK_CHANNELS], tl.float32)
    for start in range(0, B, BLOCK_ROWS):
        row = (start + tl.arange(0, BLOCK_ROWS)).to(tl.int64)
        live = (row < B)[:, None] & (channel < H)[None, :]
        total += tl.abs(tl.load(h + row[:, None] * H + channel[None, :], mask=live, other=0.0))
    mean = tl.sum(total, axis=0) / tl.maximum(B, 1).to(tl.float32)
    tl.store(activity + channel, mean, mask=channel < H)


@triton.jit(do_not_specialize=["T", "window"])
def _dead_buckets_kernel(
    h_mag: tl.tensor,
    average: tl.tensor,
    floor: tl.tensor,
    counters: tl.tensor,
    fired: tl.tensor,
    T: int,
    N: int,
    window: int,
    BLOCK_N: tl.constexpr,
) -> None:
    bucket = tl.arange(0, BLOCK_N)
    live = bucket < N
    state = load_average(average, bucket, N, live)
    least = tl.load(floor + bucket, mask=live, other=0.0)
    dead_run = tl.load(counters + bucket, mask=live, other=0)
    live_run = tl.load(counters + N + bucket, mask=live, other=0)
    level = tl.load(counters + 2 * N + bucket, mask=live, other=0)
    steps = tl.load(counters + 3 * N + bucket, mask=live, other=0)
    fell = tl.load(counters + 4 * N + bucket, mask=live, other=0)
    span = tl.load(counters + 5 * N + bucket, mask=live, other=0)
    rejected = tl.load(counters + 6 * N + bucket, mask=live, other=0)
    span = tl.where(span == 0, window, span)
    for t in range(T):
        x = tl.load(h_mag + t * N + bucket, mask=live, other=0.0)
        first = state.seen == 0.0
        state, counted = observe_finite(state, x, GAIN_FLOOR)
        taken = counted.to(tl.int32)
        rejected += 1 - taken
        steps += taken
        least = tl.where(counted & first, x, least)
        dead = state.mean < tl.div_rn(least, E)
        fell = tl.where(counted & (state.mean < 0.5 * least), 1, fell)
        dead_run = tl.where(counted, tl.where(dead, dead_run + 1, 0), dead_run)
        live_run = tl.where(counted, tl.where(dead, 0, live_run + 1), live_run)
        span = tl.where(counted & (steps == window) & (fell == 0), 2 * window, span)
        fires = dead_run >= span
        level = tl.where(fires, tl.minimum(level + 1, _HIGHEST), level)
        tl.store(fired + t * N + bucket, tl.where(fires, level, 0), mask=live)
        dead_run = tl.where(fires, 0, dead_run)
        level = tl.where(live_run >= span, 0, level)
    store_average(average, bucket, N, state, live)
    tl.store(floor + bucket, least, mask=live)
    tl.store(counters + bucket, dead_run, mask=live)
    tl.store(counters + N + bucket, live_run, mask=live)
    tl.store(counters + 2 * N + bucket, level, mask=live)
    tl.store(counters + 3 * N + bucket, steps, mask=live)
    tl.store(counters + 4 * N + bucket, fell, mask=live)
    tl.store(counters + 5 * N + bucket, span, mask=live)
    tl.store(counters + 6 * N + bucket, rejected, mask=live)


def h_mag_per_bucket(
    h: torch.Tensor,
    table: torch.Tensor | RoutingRecord,
    *,
    block_rows: int = 32,
    block_slots: int = 32,
) -> torch.Tensor:
    """Return the mean over batch and bucket of |h|, (N,) float32; 0 for an empty bucket or batch.

    h (B, H) float32 is the state at the window's last event, table (N, M) int32 or a record the
    channels of each bucket. One launch, a tree reduction in a fixed order. Raises TypeError or
    ValueError naming the argument.
    """
    arguments = _checks.Arguments()
    arguments.tensor("h", h, "B H", torch.float32)
    B, H = h.shape
    slots = arguments.tensor("table", slots_of(table, H, h.device), "N M", torch.int32)
    _checks.blocks(block_rows=block_rows, block_slots=block_slots)
    buckets, capacity = slots.shape
    h_mag = h.new_empty(buckets)
    if buckets:
        _h_mag_kernel[(buckets,)](
            h, slots, h_mag, B, H, capacity, block_rows, block_slots, num_warps=2
        )
    return h_mag


def channel_activity(
    h: torch.Tensor, *, block_rows: int = 32, block_channels: int = 32
) -> torch.Tensor:
    """Return the mean over the batch of |h|, (H,) float32, of h (B, H) float32; 0 if B = 0.

    One launch, a tree reduction in a fixed order. Raises TypeError or ValueError naming the
    argument.
    """
    _checks.Arguments().tensor("h", h, "B H", torch.float32)
    _checks.blocks(block_rows=block_rows, block_channels=block_channels)
    B, H = h.shape
    activity = h.new_empty(H)
    if H:
        _channel_activity_kernel[(triton.cdiv(H, block_channels),)](
            h, activity, B, H, block_rows, block_channels, num_warps=2
        )
    return activity


def dead_buckets(
    h_mag: torch.Tensor,
    average: torch.Tensor,
    floor: torch.Tensor,
    counters: torch.Tensor,
    window: int,
) -> torch.Tensor:
    """Observe h_mag (T, N) float32, step after step; return the level fired (T, N) int32, or 0.

    In place: averages (5, N) float32 with gain at least 0.4; floor (N,) float32, the first
    observation; counters (7, N) int32, whose rows are COUNTERS. A bucket is dead while its mean
    is under floor / e. After `window` dead steps in a row it fires, one level higher each time up
    to 3, and counts anew; as many live steps in a row take it back to level 0. At its observation
    number `window` the window doubles, once, if the mean never fell under half the floor. What is
    not finite changes nothing but the count of such. Every expression is rounded as written in
    float32. One launch of one program. Raises TypeError or ValueError naming the argument.
    """
    arguments = _checks.Arguments(F=len(FIELDS), C=len(COUNTERS))
    arguments.tensor("h_mag", h_mag, "T N", torch.float32)
    T, N = h_mag.shape
    _check_levels(arguments, average, floor, counters, window)
    fired = torch.empty((T, N), dtype=torch.int32, device=h_mag.device)
    _dead_buckets_kernel[(1,)](
        h_mag, average, floor, counters, fired, T, N, window, triton.next_power_of_2(N),
        num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip
    return fired


def _check_levels(
    arguments: _checks.Arguments,
    average: torch.Tensor,
    floor: torch.Tensor,
    counters: torch.Tensor,
    window: int,
) -> None:
    """Check what is kept from step to step."""
    arguments.tensor("average", average, "F N", torch.float32)
    arguments.tensor("floor", floor, "N", torch.float32)
    arguments.tensor("counters", counters, "C N", torch.int32)
    _checks.count("window", window, 1)
    _checks.horizons(arguments.sizes["N"])


def watch_buckets(
    h: torch.Tensor,
    table: torch.Tensor | RoutingRecord,
    average: torch.Tensor,
    floor: torch.Tensor,
    counters: torch.Tensor,
    window: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of the controller: h_mag (N,) float32 of h, and the level fired (N,) int32, or 0.

    `h_mag_per_bucket`, then `dead_buckets` of what it found. Raises as they do.
    """
    arguments = _checks.Arguments(F=len(FIELDS), C=len(COUNTERS))
    arguments.tensor("h", h, "B H", torch.float32)
    arguments.tensor("table", slots_of(table, h.shape[1], h.device), "N M", torch.int32)
    _check_levels(arguments, average, floor, counters, window)
    h_mag = h_mag_per_bucket(h, table)
    return h_mag, dead_buckets(h_mag[None], average, floor, counters, window)[0]
