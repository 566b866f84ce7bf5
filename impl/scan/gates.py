"""The gates of the scan: how far an event moves the state and how much of the old one is kept."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._elementwise import log1p, sigmoid
from trivet.impl._sums import parts_of, sum_parts


@triton.jit
def softplus(x: tl.tensor) -> tl.tensor:
    """log(1 + exp(x)), elementwise, float32, accurate relative to itself; nothing overflows."""
    return tl.maximum(x, 0.0) + log1p(tl.exp(-tl.abs(x)))


@triton.jit
def _gates_of(
    delta: tl.tensor,
    a_log: tl.tensor,
    row: tl.tensor,
    channel: tl.tensor,
    last: int,
    H: int,
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """delta, step and a (rows, channels), and exp(A_log) (1, channels)."""
    live = (row < last)[:, None] & (channel < H)[None, :]
    raw = tl.load(delta + row[:, None] * H + channel[None, :], mask=live, other=0.0)
    rate = tl.exp(tl.load(a_log + channel, mask=channel < H, other=0.0))[None, :]
    step = softplus(raw)
    return raw, step, tl.exp(-step * rate), rate


@triton.jit(do_not_specialize=["rows"])
def _gates_kernel(
    delta: tl.tensor,
    a_log: tl.tensor,
    step: tl.tensor,
    a: tl.tensor,
    rows: int,
    H: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    channel = tl.program_id(1) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    live = (row < rows)[:, None] & (channel < H)[None, :]
    place = row[:, None] * H + channel[None, :]
    _, size, kept, _ = _gates_of(delta, a_log, row, channel, rows, H)
    tl.store(step + place, size, mask=live)
    tl.store(a + place, kept, mask=live)


@triton.jit(do_not_specialize=["rows", "rows_per_part"])
def _gates_backward_kernel(
    g_step: tl.tensor,
    g_a: tl.tensor,
    delta: tl.tensor,
    a_log: tl.tensor,
    ddelta: tl.tensor,
    shares: tl.tensor,
    rows: int,
    H: int,
    rows_per_part: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    """ddelta of a part's rows, and the part's share of dA_log."""
    part = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    share = tl.zeros([BLOCK_ROWS, BLOCK_CHANNELS], tl.float32)
    first = part * rows_per_part
    last = tl.minimum(first + rows_per_part, rows)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)
        live = (row < last)[:, None] & (channel < H)[None, :]
        place = row[:, None] * H + channel[None, :]
        raw, size, kept, rate = _gates_of(delta, a_log, row, channel, last, H)
        to_a = tl.load(g_a + place, mask=live, other=0.0)
        to_step = tl.load(g_step + place, mask=live, other=0.0)
        to_exponent = to_a * kept * rate
        tl.store(ddelta + place, (to_step - to_exponent) * sigmoid(raw), mask=live)
        share -= to_exponent * size
    tl.store(shares + part * H + channel, tl.sum(share, axis=0), mask=channel < H)


def scan_gates(
    delta: torch.Tensor,
    A_log: torch.Tensor,
    *,
    block_rows: int = 16,
    block_channels: int = 64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return step = softplus(delta) and a = exp(-step exp(A_log)), both (B, T, H).

    delta (B, T, H) and A_log (H,), float32. One launch, elementwise. Block sizes are powers of
    two. Raises TypeError or ValueError naming the argument.
    """
    rows, H = _check(delta, A_log, block_rows, block_channels)
    step, a = torch.empty_like(delta), torch.empty_like(delta)
    if delta.numel():
        grid = (triton.cdiv(rows, block_rows), triton.cdiv(H, block_channels))
        _gates_kernel[grid](delta, A_log, step, a, rows, H, block_rows, block_channels, num_warps=4)
    return step, a


def scan_gates_backward(
    g_step: torch.Tensor,
    g_a: torch.Tensor,
    delta: torch.Tensor,
    A_log: torch.Tensor,
    *,
    block_rows: int = 16,
    block_channels: int = 64,
    parts: int = 128,
) -> dict[str, torch.Tensor]:
    """Return the gradients {"delta": (B, T, H), "A_log": (H,)} of `scan_gates`.

    g_step and g_a (B, T, H) are the loss's gradients to step and a. ddelta = (g_step - g_a a
    exp(A_log)) sigmoid(delta); dA_log sums -g_a a step exp(A_log) over batch and time, in at most
    `parts` parts and then over them: two launches, no atomics. Raises as `scan_gates`.
    """
    rows, H = _check(delta, A_log, block_rows, block_channels)
    arguments = _checks.Arguments(**dict(zip("BTH", delta.shape, strict=True)))
    arguments.device = delta.device
    arguments.tensor("g_step", g_step, "B T H", torch.float32)
    arguments.tensor("g_a", g_a, "B T H", torch.float32)
    _checks.count("parts", parts, 1)
    ddelta = torch.empty_like(delta)
    if not delta.numel():
        return {"delta": ddelta, "A_log": torch.zeros_like(A_log)}
    rows_per_part, parts = parts_of(rows, block_rows, parts)
    shares = A_log.new_empty((parts, H))
    _gates_backward_kernel[(parts, triton.cdiv(H, block_channels))](
        g_step, g_a, delta, A_log, ddelta, shares, rows, H, rows_per_part,
        block_rows, block_channels, num_warps=4,
    )  # fmt: skip
    return {"delta": ddelta, "A_log": sum_parts(shares)}


def _check(
    delta: torch.Tensor, A_log: torch.Tensor, block_rows: int, block_channels: int
) -> tuple[int, int]:
    """Check what forward and backward share; returns rows (B times T) and H."""
    arguments = _checks.Arguments()
    arguments.tensor("delta", delta, "B T H", torch.float32)
    arguments.tensor("A_log", A_log, "H", torch.float32)
    _checks.blocks(block_rows=block_rows, block_channels=block_channels)
    return delta.shape[0] * delta.shape[1], len(A_log)
