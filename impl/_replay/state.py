"""What a run is made of: events, settings by simulation, and the state carried between launches."""

from dataclasses import dataclass, fields
from typing import Any

import torch

from trivet.impl import _checks
from trivet.impl.decision.signals import check_cost
from trivet.impl.decision.streams import MOST_LOTS, check_floors, check_probabilities
from trivet.impl.diagnosis.counters import HOLD_BINS, RUN_BINS, UNIT_BINS
from trivet.impl.exits.rules import check_limits
from trivet.impl.orders.streams import (
    BOOK_FIELDS,
    QUOTE_DTYPES,
    SLOT_FIELDS,
    check_not_negative,
    check_quotes,
)
from trivet.impl.trades.layout import KEPT_HORIZONS, STRIDE

# Rows of State.counts.
COUNTS = (
    "events",
    "missing",
    "undefined",
    "dominant",
    "trades",
    "wins",
    "by_orders",
    "by_composite",
    "by_stop",
    "by_hold",
)
# Every setting of a simulation: its type, and its value where none is given.
DEFAULTS: dict[str, tuple[torch.dtype, float]] = {
    "tape": (torch.int32, 0),
    "program": (torch.int32, -1),
    "threshold": (torch.float32, 0.0),
    "cost": (torch.float32, 1.0),
    "delta_floor": (torch.float32, 1.0),
    "stop_multiple": (torch.float32, float("inf")),
    "horizon_floor": (torch.float32, 0.1),
    "conviction_floor": (torch.float32, 0.4),
    "trade_floor": (torch.float32, 0.4),
    "max_lots": (torch.int32, 1),
    "latency_ns": (torch.int64, 0),
    "max_hold_ns": (torch.int64, 1 << 62),
}


@dataclass(frozen=True)
class Events:
    """T tapes of E events: ts (T, E) int64 ns; bid, ask, bid_size, ask_size (T, E) int32; p
    (T, E, N) float32 in [0, 1], or NaN. Prices in hundredths, sizes in lots."""

    ts: torch.Tensor
    bid: torch.Tensor
    ask: torch.Tensor
    bid_size: torch.Tensor
    ask_size: torch.Tensor
    p: torch.Tensor

    @property
    def quotes(self) -> dict[str, torch.Tensor]:
        """The tensors of the book, by name."""
        return {name: getattr(self, name) for name in QUOTE_DTYPES}

    def check(self, arguments: _checks.Arguments) -> None:
        """ValueError or TypeError naming the tensor, and the event that is malformed."""
        for name, value in self.quotes.items():
            arguments.tensor(name, value, "T E", QUOTE_DTYPES[name])
        arguments.tensor("p", self.p, "T E N", torch.float32)
        _checks.count("N", self.p.shape[2], 1)
        check_quotes(self.ts, self.bid_size, self.ask_size)
        check_probabilities(self.p)


@dataclass(frozen=True)
class Settings:
    """One value for each of S simulations, (S,) each; DEFAULTS has the dtypes.

    tape chooses the events, program the policy program (-1: the built-in decision). cost is in
    hundredths per lot and side; a delta_floor of 0 turns the band off, a stop_multiple of
    infinity the stop.
    """

    tape: torch.Tensor
    program: torch.Tensor
    threshold: torch.Tensor
    cost: torch.Tensor
    delta_floor: torch.Tensor
    stop_multiple: torch.Tensor
    horizon_floor: torch.Tensor
    conviction_floor: torch.Tensor
    trade_floor: torch.Tensor
    max_lots: torch.Tensor
    latency_ns: torch.Tensor
    max_hold_ns: torch.Tensor

    @classmethod
    def of(cls, simulations: int, device: Any = None, **given: Any) -> "Settings":
        """Settings of S simulations: each value given as a number for all, or one for each.

        What is given wins, 0 included; what is not has its default. Raises TypeError for an
        unknown name, ValueError for another number of values.
        """
        unknown = sorted(given.keys() - DEFAULTS.keys())
        if unknown:
            raise TypeError(f"no setting {unknown[0]!r}; known are {', '.join(DEFAULTS)}")
        values = {}
        for name, (dtype, default) in DEFAULTS.items():
            value = _as_tensor(name, given.get(name, default), dtype, device)
            if value.ndim and tuple(value.shape) != (simulations,):
                raise ValueError(
                    f"{name} must be one value or {simulations}, got {tuple(value.shape)}"
                )
            values[name] = value.expand(simulations).contiguous()
        return cls(**values)

    def check(self, arguments: _checks.Arguments, tapes: int, programs: int) -> None:
        """TypeError or ValueError naming the setting and the simulation."""
        for name, (dtype, _) in DEFAULTS.items():
            arguments.tensor(name, getattr(self, name), "S", dtype)
        _checks.within("tape", self.tape, 0, tapes - 1)
        _checks.within("program", self.program, -1, programs - 1)
        check_cost(self.cost)
        _checks.every("threshold", self.threshold, self.threshold == self.threshold, "a number")
        _checks.every("delta_floor", self.delta_floor, self.delta_floor >= 0, "not negative")
        names = ("horizon_floor", "conviction_floor", "trade_floor")
        check_floors({name: getattr(self, name) for name in names})
        _checks.within("max_lots", self.max_lots, 1, MOST_LOTS)
        check_not_negative("latency_ns", self.latency_ns)
        check_limits(self.stop_multiple, self.max_hold_ns)


def _as_tensor(name: str, value: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """Numbers in a setting's dtype; a tensor is left as it is, and checked with the others."""
    if isinstance(value, torch.Tensor):
        return value
    try:
        return torch.as_tensor(value, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be a number, or numbers, got {value!r}") from error


@dataclass(frozen=True)
class State:
    """All that a run carries from one launch to the next, for S simulations of N horizons.

    book (7, S) and slots (5, Q, S) int64, as `orders.work` has them; record (S, 16) int32, 64
    bytes each, aside (20, S) float32 and opened (2, S) int64, as `trades.life` has them;
    horizon_average (5, N, S), conviction_average (5, S) float32; edge_closed (N, S) int64 and
    edge_moments (2, N, S) float32, mean and square; counts (10, S) int64, rows COUNTS; results
    (4, S) float32: mean and square of net profit per trade, peak and deepest fall of equity;
    runs (2, 4, N, S) and run_bins (2, 5, N, S) int64, raw and smoothed; bins (36, S) int64:
    conviction 10, hold time 6, trades 10 and wins 10 by entry conviction; outcome_profit (10, S)
    float32.
    """

    book: torch.Tensor
    slots: torch.Tensor
    record: torch.Tensor
    aside: torch.Tensor
    opened: torch.Tensor
    horizon_average: torch.Tensor
    conviction_average: torch.Tensor
    edge_closed: torch.Tensor
    edge_moments: torch.Tensor
    counts: torch.Tensor
    results: torch.Tensor
    runs: torch.Tensor
    run_bins: torch.Tensor
    bins: torch.Tensor
    outcome_profit: torch.Tensor

    @classmethod
    def fresh(cls, simulations: int, horizons: int, slots: int, device: Any = None) -> "State":
        """The state before the first event: zeros."""
        sizes = {"S": simulations, "N": horizons, "Q": slots}
        return cls(
            **{
                name: torch.zeros([sizes.get(d, d) for d in shape], dtype=dtype, device=device)
                for name, (dtype, shape) in SHAPES.items()
            }
        )

    def tensors(self) -> list[torch.Tensor]:
        """The tensors, in order."""
        return [getattr(self, field.name) for field in fields(self)]

    def check(self, arguments: _checks.Arguments) -> None:
        """TypeError or ValueError naming the tensor."""
        for name, (dtype, shape) in SHAPES.items():
            dims = [f"{name}{i}" if isinstance(d, int) else d for i, d in enumerate(shape)]
            arguments.sizes |= {f"{name}{i}": d for i, d in enumerate(shape) if isinstance(d, int)}
            arguments.tensor(name, getattr(self, name), " ".join(dims), dtype)
        _checks.count("Q", self.slots.shape[1], 1)


SHAPES: dict[str, tuple[torch.dtype, tuple[Any, ...]]] = {
    "book": (torch.int64, (len(BOOK_FIELDS), "S")),
    "slots": (torch.int64, (len(SLOT_FIELDS), "Q", "S")),
    "record": (torch.int32, ("S", STRIDE // 4)),
    "aside": (torch.float32, (4 * KEPT_HORIZONS + 4, "S")),
    "opened": (torch.int64, (2, "S")),
    "horizon_average": (torch.float32, (5, "N", "S")),
    "conviction_average": (torch.float32, (5, "S")),
    "edge_closed": (torch.int64, ("N", "S")),
    "edge_moments": (torch.float32, (2, "N", "S")),
    "counts": (torch.int64, (len(COUNTS), "S")),
    "results": (torch.float32, (4, "S")),
    "runs": (torch.int64, (2, 4, "N", "S")),
    "run_bins": (torch.int64, (2, RUN_BINS, "N", "S")),
    "bins": (torch.int64, (UNIT_BINS + HOLD_BINS + 2 * UNIT_BINS, "S")),
    "outcome_profit": (torch.float32, (UNIT_BINS, "S")),
}
