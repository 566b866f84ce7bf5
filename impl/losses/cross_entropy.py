"""Binary cross entropy per horizon over present labels, in two stages and without atomics."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._elementwise import log1p, sigmoid
from trivet.impl._sums import parts_of


@triton.jit
def _cross_entropy(logit: tl.tensor, label: tl.tensor) -> tl.tensor:
    """-label log(p) - (1 - label) log(1 - p) of p = sigmoid(logit), without cancellation.

    -log(p) is max(-logit, 0) and -log(1 - p) is max(logit, 0), each plus log1p(exp(-|logit|)).
    """
    shared = log1p(tl.exp(-tl.abs(logit)))
    return label * tl.maximum(-logit, 0.0) + (1.0 - label) * tl.maximum(logit, 0.0) + shared


@triton.jit(do_not_specialize=["rows", "rows_per_part"])
def _entropy_partials_kernel(
    logits: tl.tensor,
    labels: tl.tensor,
    sums: tl.tensor,
    counts: tl.tensor,
    rows: int,
    N: int,
    rows_per_part: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    """One part's sum and number of present labels, per horizon."""
    part = tl.program_id(0).to(tl.int64)
    horizon = tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_ROWS, BLOCK_N], tl.float32)
    count = tl.zeros([BLOCK_ROWS, BLOCK_N], tl.int64)
    first = part * rows_per_part
    last = tl.minimum(first + rows_per_part, rows)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)[:, None]
        live = (row < last) & (horizon < N)[None, :]
        place = row * N + horizon[None, :]
        label = tl.load(labels + place, mask=live, other=float("nan"))
        logit = tl.load(logits + place, mask=live, other=0.0)
        present = label == label
        total += tl.where(present, _cross_entropy(logit, label), 0.0)
        count += present.to(tl.int64)
    place = part * N + horizon
    tl.store(sums + place, tl.sum(total, axis=0), mask=horizon < N)
    tl.store(counts + place, tl.sum(count, axis=0), mask=horizon < N)


@triton.jit
def _mean_kernel(
    sums: tl.tensor,
    counts: tl.tensor,
    loss: tl.tensor,
    parts: int,
    N: int,
    BLOCK_N: tl.constexpr,
) -> None:
    """Add the parts, in order, and divide by the number of present labels; 0 without any."""
    horizon = tl.arange(0, BLOCK_N)
    live = horizon < N
    total = tl.zeros([BLOCK_N], tl.float32)
    count = tl.zeros([BLOCK_N], tl.int64)
    for part in range(parts):
        total += tl.load(sums + part * N + horizon, mask=live, other=0.0)
        count += tl.load(counts + part * N + horizon, mask=live, other=0)
    tl.store(loss + horizon, total / tl.maximum(count, 1).to(tl.float32), mask=live)


@triton.jit(do_not_specialize=["rows", "rows_per_part"])
def _count_partials_kernel(
    labels: tl.tensor,
    counts: tl.tensor,
    rows: int,
    N: int,
    rows_per_part: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    """One part's number of present labels, per horizon."""
    part = tl.program_id(0).to(tl.int64)
    horizon = tl.arange(0, BLOCK_N)
    count = tl.zeros([BLOCK_ROWS, BLOCK_N], tl.int64)
    first = part * rows_per_part
    last = tl.minimum(first + rows_per_part, rows)
    for start in range(first, last, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)[:, None]
        live = (row < last) & (horizon < N)[None, :]
        label = tl.load(labels + row * N + horizon[None, :], mask=live, other=float("nan"))
        count += (label == label).to(tl.int64)
    tl.store(counts + part * N + horizon, tl.sum(count, axis=0), mask=horizon < N)


@triton.jit(do_not_specialize=["rows"])
def _entropy_backward_kernel(
    g_loss: tl.tensor,
    logits: tl.tensor,
    labels: tl.tensor,
    counts: tl.tensor,
    dlogits: tl.tensor,
    rows: int,
    parts: int,
    N: int,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:
    horizon = tl.arange(0, BLOCK_N)
    count = tl.zeros([BLOCK_N], tl.int64)
    for part in range(parts):
        count += tl.load(counts + part * N + horizon, mask=horizon < N, other=0)
    scale = tl.load(g_loss + horizon, mask=horizon < N, other=0.0)
    scale = scale / tl.maximum(count, 1).to(tl.float32)
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    live = (row < rows) & (horizon < N)[None, :]
    place = row * N + horizon[None, :]
    label = tl.load(labels + place, mask=live, other=float("nan"))
    logit = tl.load(logits + place, mask=live, other=0.0)
    slope = (1.0 - label) * sigmoid(logit) - label * sigmoid(-logit)
    tl.store(dlogits + place, tl.where(label == label, scale[None, :] * slope, 0.0), mask=live)


def bce_multi_horizon(
    logits: torch.Tensor, labels: torch.Tensor, *, block_rows: int = 64, parts: int = 64
) -> torch.Tensor:
    """Return loss (N,) float32: per horizon the mean cross entropy of its present labels.

    logits and labels (K, B, N) float32; a NaN label is absent, whatever its logit. A horizon
    without a present label has loss 0. Two launches: the rows in at most `parts` parts, then
    their sum; no atomics. Raises TypeError or ValueError naming the argument: another shape,
    dtype or device, or a label outside [0, 1].
    """
    N = _check(logits, labels, block_rows, parts)
    if not logits.numel():
        return logits.new_zeros(N)
    rows = logits.shape[0] * logits.shape[1]
    rows_per_part, parts = parts_of(rows, block_rows, parts)
    sums = logits.new_empty((parts, N))
    counts = logits.new_empty((parts, N), dtype=torch.int64)
    loss = logits.new_empty(N)
    block_n = triton.next_power_of_2(N)
    _entropy_partials_kernel[(parts,)](
        logits, labels, sums, counts, rows, N, rows_per_part, block_rows, block_n, num_warps=2
    )
    _mean_kernel[(1,)](sums, counts, loss, parts, N, block_n, num_warps=1)
    return loss


def bce_multi_horizon_backward(
    g_loss: torch.Tensor,
    logits: torch.Tensor,
    labels: torch.Tensor,
    *,
    block_rows: int = 64,
    parts: int = 64,
) -> dict[str, torch.Tensor]:
    """Return {"logits": gradient (K, B, N)} of `bce_multi_horizon` from g_loss (N,) float32.

    d loss_k / d logit = (p - label) / present labels of k, 0 where the label is absent. Two
    launches: the number of present labels in at most `parts` parts, the gradient. Raises as
    `bce_multi_horizon`.
    """
    N = _check(logits, labels, block_rows, parts)
    arguments = _checks.Arguments(N=N)
    arguments.device = logits.device
    arguments.tensor("g_loss", g_loss, "N", torch.float32)
    dlogits = torch.empty_like(logits)
    if logits.numel():
        rows = logits.shape[0] * logits.shape[1]
        rows_per_part, parts = parts_of(rows, block_rows, parts)
        counts = logits.new_empty((parts, N), dtype=torch.int64)
        block_n = triton.next_power_of_2(N)
        _count_partials_kernel[(parts,)](
            labels, counts, rows, N, rows_per_part, block_rows, block_n, num_warps=2
        )
        _entropy_backward_kernel[(triton.cdiv(rows, block_rows),)](
            g_loss, logits, labels, counts, dlogits, rows, parts, N, block_rows, block_n,
            num_warps=2,
        )  # fmt: skip
    return {"logits": dlogits}


def _check(logits: torch.Tensor, labels: torch.Tensor, block_rows: int, parts: int) -> int:
    """Check what forward and backward share; returns N."""
    arguments = _checks.Arguments()
    arguments.tensor("logits", logits, "K B N", torch.float32)
    arguments.tensor("labels", labels, "K B N", torch.float32)
    N = arguments.sizes["N"]
    _checks.horizons(N)
    _checks.blocks(block_rows=block_rows)
    _checks.count("parts", parts, 1)
    absent = labels.isnan()
    _checks.every("labels", labels, absent | ((labels >= 0) & (labels <= 1)), "NaN or in [0, 1]")
    return N
