"""Sampling the raw probabilities at every so many events: moments and histograms by horizon."""

import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl.decision.streams import check_probabilities
from trivet.impl.diagnosis.counters import UNIT_BINS, bump, unit_bin
from trivet.impl.trades.credit import load_edges, observe_value, store_edges

MOMENTS = ("mean", "square", "min", "max")


@triton.jit(do_not_specialize=["E", "N", "first", "stop", "stride"])
def _accumulate_kernel(
    p: tl.tensor,
    counts: tl.tensor,
    moments: tl.tensor,
    bins: tl.tensor,
    LANES: int,
    E: int,
    N: int,
    first: int,
    stop: int,
    stride: int,
    BLOCK: tl.constexpr,
) -> None:
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = lane < LANES
    own = (lane // N) * E * N + lane % N
    sums = load_edges(counts, moments, moments + LANES, lane, live)
    least = tl.load(moments + 2 * LANES + lane, mask=live, other=0.0)
    most = tl.load(moments + 3 * LANES + lane, mask=live, other=0.0)
    for event in range(first, stop, stride):
        raw = tl.load(p + own + tl.cast(event, tl.int64) * N, mask=live, other=0.5)
        x = tl.where(raw == raw, raw, 0.5)
        begins = sums.closed == 0
        least = tl.where(begins, x, tl.minimum(least, x))
        most = tl.where(begins, x, tl.maximum(most, x))
        sums = observe_value(sums, x, live)
        bump(bins + unit_bin(x) * LANES + lane, live)
    store_edges(counts, moments, moments + LANES, lane, sums, live)
    tl.store(moments + 2 * LANES + lane, least, mask=live)
    tl.store(moments + 3 * LANES + lane, most, mask=live)


def accumulate(
    p: torch.Tensor,
    counts: torch.Tensor,
    moments: torch.Tensor,
    bins: torch.Tensor,
    stride: int,
    start: int = 0,
    stop: int | None = None,
    *,
    block: int = 32,
) -> None:
    """Take the ticks 0, stride, 2 stride ... that lie in start to stop - 1, in place.

    p (T, E, N) float32 in [0, 1], NaN counts as 0.5; counts (T, N) int64; moments (4, T, N)
    float32: mean, sum of squared distances from it, min, max, all 0 before the first tick; bins
    (10, T, N) int64, tenths (backtest.md, 7). One launch. Raises ValueError.
    """
    arguments = _checks.Arguments(M=len(MOMENTS), U=UNIT_BINS)
    arguments.tensor("p", p, "T E N", torch.float32)
    arguments.tensor("counts", counts, "T N", torch.int64)
    arguments.tensor("moments", moments, "M T N", torch.float32)
    arguments.tensor("bins", bins, "U T N", torch.int64)
    _checks.count("stride", stride, 1)
    _checks.blocks(block=block)
    check_probabilities(p)
    tapes, events, horizons = p.shape
    last = events if stop is None else stop
    if not 0 <= start <= last <= events:
        raise ValueError(f"start to stop must lie in 0 to {events}, got {start} to {last}")
    first = triton.cdiv(start, stride) * stride
    lanes = tapes * horizons
    if lanes:
        sizes = (lanes, events, horizons, first, last, stride, block)
        _accumulate_kernel[(triton.cdiv(lanes, block),)](
            p, counts, moments, bins, *sizes, num_warps=1, enable_fp_fusion=False
        )


class Sampler:
    """Samples of a run: the sampled probabilities in one reused host buffer, and their moments.

    Made only where sampling is on: without one nothing is copied and no buffer exists.
    """

    def __init__(self, stride: int) -> None:
        self.stride = _checks.count("stride", stride, 1)
        self.buffer: torch.Tensor | None = None
        self.counts: torch.Tensor | None = None

    def take(self, p: torch.Tensor, start: int, stop: int) -> None:
        """Take the ticks of events start to stop - 1 of p (T, E, N); the next range goes on."""
        tapes, _, horizons = p.shape
        if self.counts is None:
            self.counts = torch.zeros((tapes, horizons), dtype=torch.int64, device=p.device)
            self.moments = p.new_zeros((len(MOMENTS), tapes, horizons))
            self.bins = self.counts.new_zeros((UNIT_BINS, tapes, horizons))
        accumulate(p, self.counts, self.moments, self.bins, self.stride, start, stop)
        first = triton.cdiv(start, self.stride) * self.stride
        self._keep(p[:, first : stop : self.stride])

    def _keep(self, rows: torch.Tensor) -> None:
        """Copy the ticks (T, K, N) to the host buffer, which grows when they do not fit."""
        if self.buffer is None or self.buffer.numel() < rows.numel():
            self.buffer = torch.empty(
                rows.numel(), dtype=rows.dtype, pin_memory=rows.device.type == "cuda"
            )
        self.buffer[: rows.numel()].view(rows.shape).copy_(rows)

    def lines(self, labels: list[str], tape: int = 0) -> list[str]:
        """Return one line for each horizon: count, mean, population std, min, max, histogram."""
        if self.counts is None:
            return []
        counts = self.counts[tape].tolist()
        mean, square, least, most = self.moments[:, tape].double().cpu().numpy()
        bins = self.bins[:, tape].cpu().numpy()
        return [
            f"per_horizon_logit_diag {label}: count={counts[h]} mean={mean[h]:.6f} "
            f"std={(square[h] / max(counts[h], 1)) ** 0.5:.6f} min={least[h]:.6f} "
            f"max={most[h]:.6f} hist=[{','.join(map(str, bins[:, h]))}]"
            for h, label in enumerate(labels)
        ]


__all__ = ["Sampler", "accumulate"]
