"""The state of simulations as the kernels lay it out, so that whole runs compare bit by bit."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trivet.oracles._pinned import pinned
from trivet.oracles._simulation import Simulation, simulate
from trivet.oracles.decision import Average
from trivet.oracles.diagnosis import Runs
from trivet.oracles.orders import write_desk


@pinned
def replay(
    ts: Any,
    bid: Any,
    ask: Any,
    bid_size: Any,
    ask_size: Any,
    p: Any,
    tape: Any,
    threshold: Any,
    cost: Any,
    delta_floor: Any,
    stop_multiple: Any,
    horizon_floor: Any,
    conviction_floor: Any,
    trade_floor: Any,
    max_lots: Any,
    latency_ns: Any,
    max_hold_ns: Any,
    Q: int,
) -> tuple[Any, ...]:
    """The state of every simulation after its tape."""
    settings = {
        "tape": tape,
        "threshold": threshold,
        "cost": cost,
        "delta_floor": delta_floor,
        "stop_multiple": stop_multiple,
        "horizon_floor": horizon_floor,
        "conviction_floor": conviction_floor,
        "trade_floor": trade_floor,
        "max_lots": max_lots,
        "latency_ns": latency_ns,
        "max_hold_ns": max_hold_ns,
    }
    events = {"ts": ts, "bid": bid, "ask": ask, "bid_size": bid_size, "ask_size": ask_size, "p": p}
    return tuple(state_of(simulate(events, settings, Q), p.shape[2], Q).values())


def state_of(simulations: Sequence[Simulation], horizons: int, slots: int) -> dict[str, Any]:
    """The state's arrays by name, simulations along their axis S."""
    count = len(simulations)
    shapes: dict[str, tuple[type, tuple[int, ...]]] = {
        "book": (np.int64, (7, count)),
        "slots": (np.int64, (5, slots, count)),
        "record": (np.int64, (count, 16)),
        "aside": (np.float32, (20, count)),
        "opened": (np.int64, (2, count)),
        "horizon_average": (np.float32, (5, horizons, count)),
        "conviction_average": (np.float32, (5, count)),
        "edge_closed": (np.int64, (horizons, count)),
        "edge_moments": (np.float32, (2, horizons, count)),
        "counts": (np.int64, (10, count)),
        "results": (np.float32, (4, count)),
        "runs": (np.int64, (2, 4, horizons, count)),
        "run_bins": (np.int64, (2, 5, horizons, count)),
        "bins": (np.int64, (36, count)),
        "outcome_profit": (np.float32, (10, count)),
    }
    state: dict[str, Any] = {name: np.zeros(shape, kind) for name, (kind, shape) in shapes.items()}
    for s, simulation in enumerate(simulations):
        _write(state, s, simulation)
    return state


def _write(state: dict[str, Any], s: int, simulation: Simulation) -> None:
    write_desk(simulation.desk, state["book"][:, s], state["slots"][:, :, s])
    _write_trade(state, s, simulation)
    for h, average in enumerate(simulation.decider.q):
        state["horizon_average"][:, h, s] = _numbers(average)
    state["conviction_average"][:, s] = _numbers(simulation.decider.conviction)
    for h, moments in enumerate(simulation.edges):
        state["edge_closed"][h, s] = moments.count
        state["edge_moments"][:, h, s] = moments.mean, moments.square
    returns = simulation.returns
    signs = simulation.events, simulation.missing, simulation.undefined, simulation.dominant
    state["counts"][:, s] = *signs, returns.count, simulation.wins, *simulation.causes
    state["results"][:, s] = returns.mean, returns.square, simulation.peak, simulation.deepest
    for stream, runs in enumerate((simulation.raw, simulation.smoothed)):
        _write_runs(state, stream, s, runs)
    hists = (simulation.conviction_bins, simulation.hold_bins)
    outcomes = (simulation.outcomes, simulation.outcome_wins)
    state["bins"][:, s] = np.concatenate([*hists, *outcomes])
    state["outcome_profit"][:, s] = simulation.outcome_profit


def _write_trade(state: dict[str, Any], s: int, simulation: Simulation) -> None:
    trade = simulation.trade
    if trade is None:
        return
    state["record"][s] = trade.words()
    for h, average in enumerate(trade.magnitudes):
        state["aside"][h:16:4, s] = _numbers(average)[1:]
    state["aside"][16:, s] = _numbers(trade.pnl)[1:]
    state["opened"][:, s] = trade.realised, trade.filled


def _write_runs(state: dict[str, Any], stream: int, s: int, runs: Sequence[Runs]) -> None:
    for h, own in enumerate(runs):
        state["runs"][stream, :, h, s] = own.numbers
        state["run_bins"][stream, :, h, s] = own.bins


def _numbers(average: Average) -> tuple[Any, ...]:
    seen = np.float32(average.seen)
    return average.mean, average.diff_var, average.sample_var, average.last, seen
