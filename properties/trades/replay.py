"""Whole runs: every stem of the backtest together, against the plain simulator, bit for bit."""

from typing import Any

import numpy as np
import torch

from trivet import Choice, Contract, Scalar, Tensor, integers, log_uniform, reals, sizes
from trivet.impl import _replay as kernels
from trivet.oracles import _states as oracles
from trivet.properties._expect import at_most, same_bits, same_values
from trivet.properties.decision.inputs import (
    BAD_COST,
    PINNED,
    Array,
    Rerun,
    filled,
    widened,
    with_gaps,
)
from trivet.properties.orders.inputs import COUNTS, NANOSECONDS, quotes

DTYPES = {torch.int64: ("int64",), torch.int32: ("int32",), torch.float32: ("float32",)}
SETTINGS = {
    "tape": Tensor("S", dtypes=COUNTS, domain=integers(0, "T-1")),
    "threshold": Tensor("S", domain=log_uniform(1e-3, 0.2, zero=True)),
    "cost": Tensor("S", domain=log_uniform(1e-2, 2)),
    "delta_floor": Tensor("S", domain=log_uniform(0.5, 3, zero=True)),
    "stop_multiple": Tensor("S", domain=log_uniform(0.5, 20)),
    "horizon_floor": Tensor("S", domain=reals(0, 1)),
    "conviction_floor": Tensor("S", domain=reals(0, 1)),
    "trade_floor": Tensor("S", domain=reals(0, 1)),
    "max_lots": Tensor("S", dtypes=COUNTS, domain=integers(1, 16)),
    "latency_ns": Tensor("S", dtypes=NANOSECONDS, domain=integers(0, 4)),
    "max_hold_ns": Tensor("S", dtypes=NANOSECONDS, domain=integers(3, 30)),
}
EVENTS, MISSING, UNDEFINED, DOMINANT, TRADES, WINS, ORDERS, COMPOSITE, STOP, HOLD = range(10)


def time_runs_back(ts: torch.Tensor) -> dict[str, object]:
    """The second event of the first tape is earlier than the first."""
    return {"ts": torch.arange(ts.numel(), 0, -1).reshape(ts.shape)} if ts.shape[1] > 1 else {}


trades_replay = Contract(
    kernel=kernels.replay,
    oracles=[oracles.replay],
    dims={
        "S": sizes(0, 40, production=8192),
        "T": sizes(1, 3),
        "E": sizes(0, 14),
        "N": sizes(1, 6, production=5),
        "Q": sizes(1, 3, production=8),
    },
    args={
        **quotes("T E"),
        "p": Tensor("T E N", domain=reals(0, 1).map(with_gaps)),
        **SETTINGS,
        "cut": Scalar(int, 0, "E"),
        "sampling_stride": Choice(0, 3),
        "block": Choice(32, 4),
    },
    outputs={
        name: Tensor(" ".join(map(str, shape)), dtypes=DTYPES[dtype])
        for name, (dtype, shape) in kernels.SHAPES.items()
    },
    raises=(
        *BAD_COST,
        (ValueError, "p", filled("p", 1.5)),
        (ValueError, "tape", filled("tape", 9)),
        (ValueError, "max_hold", filled("max_hold_ns", 0)),
        (ValueError, "bid_size", filled("bid_size", -1)),
        (TypeError, "latency_ns", {"latency_ns": None}),
        (TypeError, "p", widened("p")),
    ),
)
trades_replay.without("logic_matches", PINNED)


@trades_replay.law
def runs_can_be_cut_anywhere(out: Any, E: int, cut: int, rerun: Rerun) -> None:
    """Another cut, or none, changes no bit of the state."""
    again = rerun(cut=E - cut if 2 * cut != E else 0)
    for name in kernels.SHAPES:
        same_bits(getattr(again, name), getattr(out, name), f"{name} of another cut")


@trades_replay.law
def sampling_changes_nothing(out: Any, sampling_stride: int, rerun: Rerun) -> None:
    """With sampling on or off the state is the same, to the bit."""
    again = rerun(sampling_stride=0 if sampling_stride else 2)
    for name in kernels.SHAPES:
        same_bits(getattr(again, name), getattr(out, name), f"{name} with sampling on and off")


@trades_replay.law
def permuting_simulations_permutes_results(
    out: Any,
    tape: Array,
    threshold: Array,
    cost: Array,
    delta_floor: Array,
    stop_multiple: Array,
    horizon_floor: Array,
    conviction_floor: Array,
    trade_floor: Array,
    max_lots: Array,
    latency_ns: Array,
    max_hold_ns: Array,
    rerun: Rerun,
) -> None:
    """Simulations do not see each other."""
    again = rerun(
        tape=tape[::-1],
        threshold=threshold[::-1],
        cost=cost[::-1],
        delta_floor=delta_floor[::-1],
        stop_multiple=stop_multiple[::-1],
        horizon_floor=horizon_floor[::-1],
        conviction_floor=conviction_floor[::-1],
        trade_floor=trade_floor[::-1],
        max_lots=max_lots[::-1],
        latency_ns=latency_ns[::-1],
        max_hold_ns=max_hold_ns[::-1],
    )
    same_values(again.record[::-1], out.record, "record in the other order")
    for name in set(kernels.SHAPES) - {"record"}:
        same_bits(getattr(again, name)[..., ::-1], getattr(out, name), f"{name} in another order")


@trades_replay.law
def histograms_count_everything_once(out: Any, E: int) -> None:
    """Convictions count the events; hold times, outcomes and causes the closed trades.

    The lengths of runs that ended are in one bin each, and their sum, the open run and the zeros
    before the first are the events.
    """
    trades = out.counts[TRADES]
    same_values(out.bins[:10].sum(axis=0), np.full_like(trades, E), "convictions counted")
    same_values(out.bins[10:16].sum(axis=0), trades, "hold times counted")
    same_values(out.bins[16:26].sum(axis=0), trades, "outcomes counted")
    same_values(out.bins[26:].sum(axis=0), out.counts[WINS], "wins counted")
    same_values(out.counts[ORDERS:].sum(axis=0), trades, "causes counted")
    same_values(out.edge_closed.sum(axis=0), trades, "trades credited")
    _, length, flips, total = np.moveaxis(out.runs, 1, 0)
    same_values(out.run_bins.sum(axis=1), flips, "runs counted")
    at_most(total + length, np.full_like(total, E), "events in runs")


@trades_replay.law
def books_balance(out: Any, tape: Array, bid: Array, ask: Array, E: int) -> None:
    """Equity is realised and open profit, exactly; flat books have no basis and no record."""
    position, cash, basis, realised = out.book[:4]
    touch = (bid[tape, -1] + ask[tape, -1]) if E else np.zeros_like(cash)
    open_profit = position * touch - 2 * basis
    same_values(2 * cash + position * touch, 2 * realised + open_profit, "doubled equity")
    flat = position == 0
    same_values(np.where(flat, basis, 0), np.zeros_like(basis), "basis of flat books")
    left = np.abs(out.record).sum(axis=1)
    same_values(np.where(flat, left, 0), np.zeros_like(left), "record of flat books")
    at_most(np.where(flat, 0, 1), np.minimum(left, 1), "record of open trades")


@trades_replay.law
def noise_runs_differ_from_smoothed_ones(
    out: Any, p: Array, horizon_floor: Array, rerun: Rerun
) -> None:
    """On p that flips at every event the raw runs end at each, those of a slow average do not."""
    events = np.arange(p.shape[1])
    flipping = np.where(events % 2 == 0, 0.9, 0.45)[None, :, None]
    noise = rerun(p=np.broadcast_to(flipping, p.shape), horizon_floor=np.zeros_like(horizon_floor))
    _, _, flips, _ = np.moveaxis(noise.runs, 1, 0)
    same_values(flips[0], np.full_like(flips[0], max(len(events) - 1, 0)), "raw flips")
    limit = np.full_like(flips[1], max(len(events) - 2, 0))
    at_most(flips[1], limit, "smoothed flips")


@trades_replay.law
def horizons_keep_their_own_runs(p: Array, rerun: Rerun) -> None:
    """Horizon h turns every 2^h events: the slower one has fewer and longer runs."""
    _, events, horizons = p.shape
    turns = np.arange(events)[:, None] >> np.arange(horizons)
    out = rerun(p=np.broadcast_to(0.3 + 0.4 * (turns % 2), p.shape))
    wanted = max(events - 1, 0) >> np.arange(horizons)
    flips = out.runs[0, 2]
    same_values(flips, np.broadcast_to(wanted[:, None], flips.shape), "raw flips")


@trades_replay.law
def disagreement_ends_trades_at_its_thirty_second_event(
    p: Array, tape: Array, max_lots: Array, threshold: Array, N: int, rerun: Rerun
) -> None:
    """Ordered at event 0, opened at 1, followed from 2 on: 32 events of dispute end at event 33.

    On the second tape the last event has no dispute, and the trade goes on.
    """
    if N == 1:
        return
    events = 34
    sides = np.where(np.arange(N) < N - N // 2, 0.95, 0.3)
    p = np.broadcast_to(sides, (2, events, N)).copy()
    p[1, -1] = 0.5
    flat = np.full((2, events), 10_000)
    many = len(max_lots)
    out = rerun(
        p=p,
        ts=np.cumsum(np.ones_like(flat), axis=1),
        bid=flat,
        ask=flat,
        bid_size=0 * flat + 10**6,
        ask_size=0 * flat + 10**6,
        tape=np.arange(many) % 2,
        threshold=np.zeros(many),
        delta_floor=np.ones(many),
        horizon_floor=np.ones(many),
        conviction_floor=np.ones(many),
        trade_floor=np.ones(many),
        cost=np.ones(many),
        stop_multiple=np.full(many, np.inf),
        max_hold_ns=np.full(many, 1 << 40),
        latency_ns=np.zeros(many, np.int64),
        max_lots=np.full(many, 100),
        cut=0,
    )
    same_values(out.counts[COMPOSITE], 1 - np.arange(many) % 2, "trades ended by dispute")


@trades_replay.law
def latencies_of_zero_and_one_agree(ts: Array, latency_ns: Array, rerun: Rerun) -> None:
    """Where time stamps strictly increase, 1 ns comes to the same as none, bitwise."""
    rising = ts + np.arange(ts.shape[1])
    at_once, after = (
        rerun(ts=rising, latency_ns=np.full_like(latency_ns, delay)) for delay in (0, 1)
    )
    for name in set(kernels.SHAPES) - {"slots"}:
        same_bits(getattr(after, name), getattr(at_once, name), f"{name} at 1 ns")


@trades_replay.law
def mirrored_probabilities_mirror_the_positions(
    bid: Array, ask: Array, bid_size: Array, ask_size: Array, p: Array, rerun: Rerun
) -> None:
    """1 - p in a mirrored book holds the opposite position with the same profit, to the bit."""
    grid = np.round(p * 4096) / 4096
    once = rerun(p=grid)
    mirrored = {"bid": -ask, "ask": -bid, "bid_size": ask_size, "ask_size": bid_size}
    again = rerun(p=1 - grid, **mirrored)
    same_values(again.book[0], -once.book[0], "position in the mirrored book")
    for row, name in ((1, "cash"), (2, "basis"), (3, "realised"), (4, "filled")):
        same_values(again.book[row], once.book[row], f"{name} in the mirrored book")
    same_values(again.counts, once.counts, "counts in the mirrored book")
    same_bits(again.results, once.results, "results in the mirrored book")
