"""The gradients of the selective scan: states anew, then backwards in time; no atomics.

The first launch keeps the state that each chunk starts from. The second walks the chunks of a
part of the batch from the last to the first; what it sums over channels or rows it leaves in
shares, which the last launches add up.
"""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._sums import parts_of, sum_parts
from trivet.impl.scan.forward import check_event, check_tile, check_window, one_event_window
from trivet.impl.scan.recurrence import load_chunk, load_cuts, load_steps, row_of, run

NAMES = ("a", "step", "B", "C", "D", "u", "x_0")


@triton.jit(do_not_specialize=["T"])
def _chunk_starts_kernel(
    a: tl.tensor,
    step: tl.tensor,
    b: tl.tensor,
    u: tl.tensor,
    x_0: tl.tensor,
    reset: tl.tensor,
    starts: tl.tensor,
    T: int,
    H: int,
    S: int,
    HAS_RESET: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_STATES: tl.constexpr,
) -> None:
    """Write the state before each chunk, starts (B, chunks, H, S)."""
    row = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    state = tl.arange(0, BLOCK_STATES)
    live = (channel < H)[:, None] & (state < S)[None, :]
    offset = channel[:, None] * S + state[None, :]
    carried = tl.load(x_0 + row * H * S + offset, mask=live, other=0.0)
    target = starts + row * tl.cdiv(T, CHUNK) * H * S
    for start in range(0, T, CHUNK):
        tl.store(target + offset, carried, mask=live)
        target += H * S
        time = start + tl.arange(0, CHUNK)
        decay, gained, cut = load_chunk(
            a, step, b, u, reset, row, time, channel, state, T, H, S, HAS_RESET
        )
        carried = row_of(run(decay, gained, cut, carried, False, HAS_RESET), CHUNK - 1)


@triton.jit
def _states_before(
    a: tl.tensor,
    step: tl.tensor,
    b: tl.tensor,
    u: tl.tensor,
    reset: tl.tensor,
    carried: tl.tensor,
    row: tl.tensor,
    start: tl.tensor,
    channel: tl.tensor,
    state: tl.tensor,
    T: int,
    H: int,
    S: int,
    HAS_RESET: tl.constexpr,
    CHUNK: tl.constexpr,
) -> tl.tensor:
    """The state before each step of a chunk, as if no reset replaced it there.

    They are those of the steps one earlier, of which the first, before the chunk, changes nothing.
    """
    lane = tl.arange(0, CHUNK)
    earlier = tl.where(lane == 0, -1, start + lane - 1)
    decay, gained, cut = load_chunk(
        a, step, b, u, reset, row, earlier, channel, state, T, H, S, HAS_RESET
    )
    return run(decay, gained, cut, carried, False, HAS_RESET)


@triton.jit
def _to_states(
    g_y: tl.tensor,
    a: tl.tensor,
    c: tl.tensor,
    reset: tl.tensor,
    later: tl.tensor,
    row: tl.tensor,
    time: tl.tensor,
    channel: tl.tensor,
    state: tl.tensor,
    T: int,
    H: int,
    S: int,
    HAS_RESET: tl.constexpr,
) -> tl.tensor:
    """The gradient to the state of each step of a chunk, given the one of the step after it.

    The scan of C_t g_t backwards in time, with the decay of the step after each.
    """
    decay = load_steps(a, row, time + 1, channel, T, H, 1.0)
    slope = load_steps(g_y, row, time, channel, T, H, 0.0)
    gained = slope[:, :, None] * load_steps(c, row, time, state, T, S, 0.0)[:, None, :]
    cut = load_cuts(reset, row, time + 1, T, HAS_RESET)
    return run(decay, gained, cut, later, True, HAS_RESET)


@triton.jit(do_not_specialize=["rows", "T", "rows_per_part"])
def _scan_backward_kernel(
    g_y: tl.tensor,
    g_end: tl.tensor,
    a: tl.tensor,
    step: tl.tensor,
    b: tl.tensor,
    c: tl.tensor,
    d: tl.tensor,
    u: tl.tensor,
    reset: tl.tensor,
    starts: tl.tensor,
    da: tl.tensor,
    dstep: tl.tensor,
    du: tl.tensor,
    dx_0: tl.tensor,
    b_shares: tl.tensor,
    c_shares: tl.tensor,
    d_shares: tl.tensor,
    rows: int,
    T: int,
    H: int,
    S: int,
    rows_per_part: int,
    HAS_RESET: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_STATES: tl.constexpr,
) -> None:
    """All gradients of a part's rows and a block of channels, and their shares of dB, dC, dD."""
    part = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    channel = block * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    state = tl.arange(0, BLOCK_STATES)
    live = (channel < H)[:, None] & (state < S)[None, :]
    offset = channel[:, None] * S + state[None, :]
    past = tl.load(d + channel, mask=channel < H, other=0.0)[None, :]
    d_share = tl.zeros([CHUNK, BLOCK_CHANNELS], tl.float32)
    chunks = tl.cdiv(T, CHUNK)
    first = part * rows_per_part
    for row in range(first, tl.minimum(first + rows_per_part, rows)):
        later = tl.load(g_end + row * H * S + offset, mask=live, other=0.0)
        for left in range(chunks):
            start = (chunks - 1 - left) * CHUNK
            time = start + tl.arange(0, CHUNK)
            carried = tl.load(
                starts + (row * chunks + chunks - 1 - left) * H * S + offset, mask=live, other=0.0
            )
            before = _states_before(
                a, step, b, u, reset, carried, row, start, channel, state, T, H, S,
                HAS_RESET, CHUNK,
            )  # fmt: skip
            decay, gained, cut = load_chunk(
                a, step, b, u, reset, row, time, channel, state, T, H, S, HAS_RESET
            )
            to_states = _to_states(
                g_y, a, c, reset, later, row, time, channel, state, T, H, S, HAS_RESET
            )
            later = row_of(to_states, 0)
            slope = load_steps(g_y, row, time, channel, T, H, 0.0)
            size = load_steps(step, row, time, channel, T, H, 0.0)
            entry = load_steps(u, row, time, channel, T, H, 0.0)
            written = load_steps(b, row, time, state, T, S, 0.0)
            to_gain = tl.sum(to_states * written[:, None, :], axis=2)
            inside = (time < T)[:, None] & (channel < H)[None, :]
            place = (row * T + time)[:, None] * H + channel[None, :]
            to_decay = tl.sum(to_states * before, axis=2)
            states = decay[:, :, None] * before + gained
            if HAS_RESET:
                # Selects, since what comes from the other side of a reset may not be finite.
                to_decay = tl.where((cut != 0)[:, None], 0.0, to_decay)
                states = tl.where((cut != 0)[:, None, None], gained, states)
            tl.store(da + place, to_decay, mask=inside)
            tl.store(dstep + place, to_gain * entry, mask=inside)
            tl.store(du + place, to_gain * size + past * slope, mask=inside)
            d_share += slope * entry
            share = ((block * rows + row) * T + time)[:, None] * S + state[None, :]
            within = (time < T)[:, None] & (state < S)[None, :]
            b_share = tl.sum(to_states * (size * entry)[:, :, None], axis=1)
            tl.store(b_shares + share, b_share, mask=within)
            tl.store(c_shares + share, tl.sum(states * slope[:, :, None], axis=1), mask=within)
        decay = tl.load(a + row * T * H + channel, mask=(channel < H) & (T > 0), other=1.0)
        earliest = decay[:, None] * later
        if HAS_RESET:
            cut = tl.load(reset + row * T, mask=T > 0, other=0).to(tl.int32)
            earliest = tl.where(cut != 0, 0.0, earliest)
        tl.store(dx_0 + row * H * S + offset, earliest, mask=live)
    tl.store(d_shares + part * H + channel, tl.sum(d_share, axis=0), mask=channel < H)


def scan_chunked_backward(
    g_y: torch.Tensor,
    g_x_T: torch.Tensor,
    a: torch.Tensor,
    step: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    u: torch.Tensor,
    x_0: torch.Tensor,
    reset: torch.Tensor | None = None,
    *,
    chunk: int = 8,
    block_channels: int = 16,
    parts: int = 256,
) -> dict[str, torch.Tensor]:
    """Return the gradients of `scan_chunked` to a, step, B, C, D, u and x_0.

    g_y (B, T, H) and g_x_T (B, H, S) are the loss's gradients to y and the terminal state; the
    rest as for `scan_chunked`, keys are the names of its arguments. With G_t = C_t g_t + a_(t+1)
    G_(t+1), from g_x_T at the end and 0 across a reset: da_t = G_t . x_(t-1), dx_0 = a_1 G_1, and
    the gradients of step_t B_t u_t through G_t. dC_t = g_t . x_t, dD sums g u.

    Five launches: the states between chunks, the batch in at most `parts` parts, the sums of dB
    and dC over blocks of channels, of dD over parts. Raises as `scan_chunked`.
    """
    rows, T, H, S = check_window(a, step, B, C, D, u, x_0, reset)
    check_tile(chunk, block_channels, S)
    arguments = _checks.Arguments(B=rows, T=T, H=H, S=S)
    arguments.device = u.device
    arguments.tensor("g_y", g_y, "B T H", torch.float32)
    arguments.tensor("g_x_T", g_x_T, "B H S", torch.float32)
    _checks.count("parts", parts, 1)
    window = (a, step, B, C, D, u, x_0)
    return _gradients(g_y, g_x_T, window, reset, chunk, block_channels, parts)


def _gradients(
    g_y: torch.Tensor,
    g_x_T: torch.Tensor,
    window: tuple[torch.Tensor, ...],
    reset: torch.Tensor | None,
    chunk: int,
    block_channels: int,
    parts: int,
) -> dict[str, torch.Tensor]:
    """Return the gradients of a window that has been checked."""
    a, step, B, C, D, u, x_0 = window
    if not x_0.numel():
        return {name: torch.zeros_like(each) for name, each in zip(NAMES, window, strict=True)}
    rows, T, H = u.shape
    S = x_0.shape[2]
    blocks = triton.cdiv(H, block_channels)
    tile = (reset is not None, chunk, block_channels, triton.next_power_of_2(S))
    starts = x_0.new_empty((rows, triton.cdiv(T, chunk), H, S))
    _chunk_starts_kernel[(rows, blocks)](
        a, step, B, u, x_0, reset, starts, T, H, S, *tile, num_warps=4
    )
    da, dstep, du, dx_0 = (torch.empty_like(tensor) for tensor in (a, step, u, x_0))
    rows_per_part, parts = parts_of(rows, 1, parts)
    b_shares, c_shares = (B.new_empty((blocks, *B.shape)) for _ in range(2))
    d_shares = D.new_empty((parts, H))
    _scan_backward_kernel[(parts, blocks)](
        g_y, g_x_T, a, step, B, C, D, u, reset, starts, da, dstep, du, dx_0,
        b_shares, c_shares, d_shares, rows, T, H, S, rows_per_part, *tile, num_warps=2,
    )  # fmt: skip
    dB, dC = (sum_parts(shares.flatten(1)).view(B.shape) for shares in (b_shares, c_shares))
    found = (da, dstep, dB, dC, sum_parts(d_shares), du, dx_0)
    return dict(zip(NAMES, found, strict=True))


def scan_step_backward(
    g_y: torch.Tensor,
    g_x: torch.Tensor,
    a: torch.Tensor,
    step: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    u: torch.Tensor,
    x: torch.Tensor,
    reset: torch.Tensor | None = None,
    *,
    block_channels: int = 16,
    parts: int = 256,
) -> dict[str, torch.Tensor]:
    """Return the gradients of `scan_step` to a, step, B, C, D, u and x.

    g_y (B, H) and g_x (B, H, S) are the loss's gradients to y and the next state. Launches and
    errors as for `scan_chunked_backward`, where T = 1.
    """
    arguments = check_event(a, step, B, C, D, u, x, reset)
    check_tile(1, block_channels, x.shape[2])
    arguments.tensor("g_y", g_y, "B H", torch.float32)
    arguments.tensor("g_x", g_x, "B H S", torch.float32)
    _checks.count("parts", parts, 1)
    window = one_event_window(a, step, B, C, D, u, x)
    cut = None if reset is None else reset[:, None]
    gradients = _gradients(g_y[:, None], g_x, window, cut, 1, block_channels, parts)
    shaped = {
        name: gradients[name].view(each.shape)
        for name, each in zip(NAMES, (a, step, B, C, D, u, x), strict=True)
    }
    shaped["x"] = shaped.pop("x_0")
    return shaped
