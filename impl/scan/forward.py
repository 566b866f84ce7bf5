"""The selective scan forward: a window in chunks, and one event; one launch and one kernel."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.scan.recurrence import load_chunk, load_steps, row_of, run

MOST_STATES = 128


@triton.jit(do_not_specialize=["T"])
def _scan_kernel(
    a: tl.tensor,
    step: tl.tensor,
    b: tl.tensor,
    c: tl.tensor,
    d: tl.tensor,
    u: tl.tensor,
    x_0: tl.tensor,
    reset: tl.tensor,
    y: tl.tensor,
    x_end: tl.tensor,
    T: int,
    H: int,
    S: int,
    HAS_RESET: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
    BLOCK_STATES: tl.constexpr,
) -> None:
    """One program a row and block of channels; its chunks follow one another."""
    row = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    state = tl.arange(0, BLOCK_STATES)
    live = (channel < H)[:, None] & (state < S)[None, :]
    place = (row * H + channel)[:, None] * S + state[None, :]
    carried = tl.load(x_0 + place, mask=live, other=0.0)
    past = tl.load(d + channel, mask=channel < H, other=0.0)[None, :]
    for start in range(0, T, CHUNK):
        time = start + tl.arange(0, CHUNK)
        decay, gained, cut = load_chunk(
            a, step, b, u, reset, row, time, channel, state, T, H, S, HAS_RESET
        )
        states = run(decay, gained, cut, carried, False, HAS_RESET)
        read = load_steps(c, row, time, state, T, S, 0.0)
        seen = tl.sum(states * read[:, None, :], axis=2)
        seen += past * load_steps(u, row, time, channel, T, H, 0.0)
        inside = (time < T)[:, None] & (channel < H)[None, :]
        tl.store(y + (row * T + time)[:, None] * H + channel[None, :], seen, mask=inside)
        carried = row_of(states, CHUNK - 1)
    tl.store(x_end + place, carried, mask=live)


def scan_chunked(
    a: torch.Tensor,
    step: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    u: torch.Tensor,
    x_0: torch.Tensor,
    reset: torch.Tensor | None = None,
    *,
    chunk: int = 16,
    block_channels: int = 16,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return y (B, T, H) and the terminal state (B, H, S) of a selective scan over a window.

    x_t[d, n] = a_t[d] x_(t-1)[d, n] + step_t[d] B_t[n] u_t[d] from x_0 (B, H, S), and
    y_t[d] = sum over n of C_t[n] x_t[d, n] + D[d] u_t[d]; a, step and u (B, T, H), B and C
    (B, T, S), D (H,), float32, a in [0, 1], up to 128 states. Where reset (B, T) bool is set, the
    carried state is replaced by 0 before the step. T = 0 returns x_0.

    One launch; `chunk` steps at a time, chunk and block_channels powers of two. The order of
    the sums depends on chunk and S alone. Raises TypeError or ValueError naming the argument.
    """
    check_window(a, step, B, C, D, u, x_0, reset)
    check_tile(chunk, block_channels, x_0.shape[2])
    return _scanned((a, step, B, C, D, u, x_0), reset, chunk, block_channels)


def _scanned(
    window: tuple[torch.Tensor, ...], reset: torch.Tensor | None, chunk: int, block_channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return y and the terminal state of a window that has been checked."""
    *inputs, u, x_0 = window
    rows, T, H = u.shape
    S = x_0.shape[2]
    y, x_end = torch.empty_like(u), torch.empty_like(x_0)
    if x_0.numel():
        _scan_kernel[(rows, triton.cdiv(H, block_channels))](
            *inputs, u, x_0, reset, y, x_end, T, H, S, reset is not None,
            chunk, block_channels, triton.next_power_of_2(S), num_warps=4,
        )  # fmt: skip
    return y, x_end


def scan_step(
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
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return y (B, H) and the next state (B, H, S) of one event: `scan_chunked` where T = 1.

    a, step and u (B, H), B and C (B, S), D (H,), x (B, H, S), reset (B,). Replayed over a window
    it gives what `scan_chunked` does with a chunk of 1, bitwise. One launch. Raises as that.
    """
    check_event(a, step, B, C, D, u, x, reset)
    check_tile(1, block_channels, x.shape[2])
    window = one_event_window(a, step, B, C, D, u, x)
    y, x_next = _scanned(window, None if reset is None else reset[:, None], 1, block_channels)
    return y[:, 0], x_next


def one_event_window(
    a: torch.Tensor,
    step: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    u: torch.Tensor,
    x: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """The arguments of one event as views of a window with T = 1."""
    return a[:, None], step[:, None], B[:, None], C[:, None], D, u[:, None], x


def check_window(
    a: torch.Tensor,
    step: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    u: torch.Tensor,
    x_0: torch.Tensor,
    reset: torch.Tensor | None,
) -> tuple[int, int, int, int]:
    """Check the arguments of a window against each other; returns rows, T, H and S."""
    arguments = _checks.Arguments()
    arguments.tensor("a", a, "B T H", torch.float32)
    arguments.tensor("step", step, "B T H", torch.float32)
    arguments.tensor("B", B, "B T S", torch.float32)
    arguments.tensor("C", C, "B T S", torch.float32)
    arguments.tensor("D", D, "H", torch.float32)
    arguments.tensor("u", u, "B T H", torch.float32)
    arguments.tensor("x_0", x_0, "B H S", torch.float32)
    if reset is not None:
        arguments.tensor("reset", reset, "B T", torch.bool)
    rows, T, H = u.shape
    return rows, T, H, x_0.shape[2]


def check_event(
    a: torch.Tensor,
    step: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    u: torch.Tensor,
    x: torch.Tensor,
    reset: torch.Tensor | None,
) -> _checks.Arguments:
    """Check the arguments of one event against each other."""
    arguments = _checks.Arguments()
    arguments.tensor("a", a, "B H", torch.float32)
    arguments.tensor("step", step, "B H", torch.float32)
    arguments.tensor("B", B, "B S", torch.float32)
    arguments.tensor("C", C, "B S", torch.float32)
    arguments.tensor("D", D, "H", torch.float32)
    arguments.tensor("u", u, "B H", torch.float32)
    arguments.tensor("x", x, "B H S", torch.float32)
    if reset is not None:
        arguments.tensor("reset", reset, "B", torch.bool)
    return arguments


def check_tile(chunk: int, block_channels: int, S: int) -> None:
    """A tile of steps, channels and states has a legal size; ValueError or TypeError otherwise."""
    if S > MOST_STATES:
        raise ValueError(f"x_0 must have at most {MOST_STATES} states a channel (S), got {S}")
    _checks.blocks(chunk=chunk, block_channels=block_channels, states=triton.next_power_of_2(S))
