"""The recurrence x_t = a_t x_(t-1) + b_t over one chunk of steps, as a tree of multiplications.

Nothing is divided and no logarithm taken, so a = 0 and long products that underflow do no harm.
"""

import triton
import triton.language as tl


@triton.jit
def _one_after_the_other(
    a_first: tl.tensor, x_first: tl.tensor, a_second: tl.tensor, x_second: tl.tensor
) -> tuple[tl.tensor, tl.tensor]:
    """Two runs of steps as one: the product of their a, and the state that they reach from 0."""
    return a_first * a_second, a_second * x_first + x_second


@triton.jit
def _one_after_the_other_with_cuts(
    a_first: tl.tensor,
    x_first: tl.tensor,
    cut_first: tl.tensor,
    a_second: tl.tensor,
    x_second: tl.tensor,
    cut_second: tl.tensor,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """As `_one_after_the_other`; behind a cut nothing of the first run is left, NaN included."""
    x = tl.where(cut_second != 0, x_second, a_second * x_first + x_second)
    return a_first * a_second, x, cut_first | cut_second


@triton.jit
def row_of(tile: tl.tensor, index: int) -> tl.tensor:
    """One row (channels, states) of a tile (steps, channels, states), whatever the others hold."""
    step = tl.arange(0, tile.shape[0])[:, None, None]
    return tl.sum(tl.where(step == index, tile, 0.0), axis=0)


@triton.jit
def run(
    a: tl.tensor,
    gained: tl.tensor,
    cut: tl.tensor,
    before: tl.tensor,
    REVERSE: tl.constexpr,
    HAS_CUTS: tl.constexpr,
) -> tl.tensor:
    """All states (steps, channels, states) of a chunk that starts from `before` (channels, states).

    a (steps, channels), gained (steps, channels, states); cut (steps,) int32, where not 0 the step
    starts from 0 in place of the state before. With REVERSE the last step is the first one.
    """
    step = tl.arange(0, gained.shape[0])[:, None, None]
    first = step == (gained.shape[0] - 1 if REVERSE else 0)
    decay = tl.broadcast_to(a[:, :, None], gained.shape)
    entered = decay * before[None, :, :] + gained
    if HAS_CUTS:
        cuts = tl.broadcast_to(cut[:, None, None], gained.shape)
        entered = tl.where(cuts != 0, gained, entered)
        gained = tl.where(first, entered, gained)
        _, states, _ = tl.associative_scan(
            (decay, gained, cuts), 0, _one_after_the_other_with_cuts, reverse=REVERSE
        )
    else:
        gained = tl.where(first, entered, gained)
        _, states = tl.associative_scan((decay, gained), 0, _one_after_the_other, reverse=REVERSE)
    return states


@triton.jit
def load_steps(
    source: tl.tensor,
    row: tl.tensor,
    time: tl.tensor,
    column: tl.tensor,
    T: int,
    width: int,
    other: float,
) -> tl.tensor:
    """A tile (steps, columns) of one row of source (B, T, width); `other` outside."""
    live = ((time >= 0) & (time < T))[:, None] & (column < width)[None, :]
    place = (row * T + time)[:, None] * width + column[None, :]
    return tl.load(source + place, mask=live, other=other)


@triton.jit
def load_cuts(
    reset: tl.tensor, row: tl.tensor, time: tl.tensor, T: int, HAS_RESET: tl.constexpr
) -> tl.tensor:
    """Where the carried state is replaced by 0 before the step, int32 (steps,); 0 outside."""
    if HAS_RESET:
        live = (time >= 0) & (time < T)
        return tl.load(reset + row * T + time, mask=live, other=0).to(tl.int32)
    return tl.zeros([time.shape[0]], tl.int32)


@triton.jit
def load_chunk(
    a: tl.tensor,
    step: tl.tensor,
    b: tl.tensor,
    u: tl.tensor,
    reset: tl.tensor,
    row: tl.tensor,
    time: tl.tensor,
    channel: tl.tensor,
    state: tl.tensor,
    T: int,
    H: int,
    S: int,
    HAS_RESET: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """a (steps, channels), step B u (steps, channels, states) and the cuts of these steps.

    Outside the window a step changes nothing: a is 1 and the rest 0.
    """
    gain = load_steps(step, row, time, channel, T, H, 0.0)
    gain *= load_steps(u, row, time, channel, T, H, 0.0)
    gained = gain[:, :, None] * load_steps(b, row, time, state, T, S, 0.0)[:, None, :]
    decay = load_steps(a, row, time, channel, T, H, 1.0)
    return decay, gained, load_cuts(reset, row, time, T, HAS_RESET)
