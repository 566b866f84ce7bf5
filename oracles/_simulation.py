"""The whole backtest, one simulation and one event after another, in plain Python.

Integers are Python's own, floats are float32 scalars in the order of the specification.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trivet.oracles import exits
from trivet.oracles.decision import (
    Average,
    Decider,
    sign,
    signal_of,
    signed_terms,
    target_of,
    total,
    weights_of,
)
from trivet.oracles.diagnosis import Runs, hold_bin, unit_bin
from trivet.oracles.orders import Book, Desk, Quote
from trivet.oracles.policy import Machine
from trivet.oracles.trades import words_of

Single = np.float32
ZERO, ONE = Single(0), Single(1)
BY_ORDERS = 0


@dataclass
class Moments:
    """A running mean and sum of squared distances from it (Welford)."""

    count: int = 0
    mean: Single = ZERO
    square: Single = ZERO

    def observe(self, x: Single) -> None:
        """Take one more number."""
        self.count += 1
        gap = x - self.mean
        self.mean = self.mean + gap / Single(self.count)
        self.square = self.square + gap * (x - self.mean)

    @property
    def var(self) -> Single:
        """The population variance, 0 before the first number."""
        return self.square / Single(self.count) if self.count else ZERO


@dataclass
class Trade:
    """An open trade: what stands in its record, and what is kept beside it."""

    entry_ts: int
    price: int
    size: int
    realised: int
    filled: int
    at_entry: Single
    conviction: Single
    magnitudes: list[Average]
    pnl: Average
    dominant: int
    peak: Single = ZERO
    degradation: int = 0
    disagreement: int = 0

    def words(self) -> list[int]:
        """The 64 bytes."""
        shown = [float(average.mean) for average in self.magnitudes]
        return words_of(
            self.entry_ts,
            self.price,
            self.size,
            float(Single(np.int64(self.realised))),
            float(self.at_entry),
            float(self.conviction),
            *(shown + [0.0] * 4)[:4],
            float(self.pnl.mean),
            float(self.peak),
            self.degradation,
            self.disagreement,
            self.dominant,
        )


@dataclass
class Setting:
    """The settings of one simulation; program is the words of its policy, None for none."""

    threshold: Single
    cost: Single
    delta_floor: Single
    stop_multiple: Single
    horizon_floor: Single
    conviction_floor: Single
    trade_floor: Single
    max_lots: int
    latency_ns: int
    max_hold_ns: int
    program: Any = None


@dataclass
class Simulation:
    """One simulation and all its counters."""

    setting: Setting
    horizons: int
    slots: int
    trade: Trade | None = None
    dominant: int = 0
    events: int = 0
    missing: int = 0
    undefined: int = 0
    wins: int = 0
    causes: list[int] = field(default_factory=lambda: [0] * 4)
    peak: Single = ZERO
    deepest: Single = ZERO

    def __post_init__(self) -> None:
        rules = self.setting
        self.desk = Desk([None] * self.slots)
        self.decider = Decider(rules.horizon_floor, rules.conviction_floor, self.horizons)
        self.edges = [Moments() for _ in range(self.horizons)]
        self.returns = Moments()
        self.raw = [Runs() for _ in range(self.horizons)]
        self.smoothed = [Runs() for _ in range(self.horizons)]
        self.conviction_bins, self.hold_bins = [0] * 10, [0] * 6
        self.outcomes, self.outcome_wins = [0] * 10, [0] * 10
        self.outcome_profit = [ZERO] * 10

    @property
    def book(self) -> Book:
        """The books."""
        return self.desk.book

    def event(self, quote: Quote, p: Sequence[Single]) -> None:
        """Go through one event, in the order of the specification."""
        known = self.trade
        for lots, price in self.desk.fills(quote):
            self._fill(lots, price, quote.ts)
        if self.trade is not known:
            known = None
        q = self.decider.smooth(p)
        var = [moments.var for moments in self.edges]
        weight = weights_of([moments.mean for moments in self.edges], var, self.setting.cost)
        signed = self._signal(q, weight)
        conviction = self.decider.conviction.observe(abs(signed))
        left = False
        if known is not None:
            unrealised = self._follow(known, quote, conviction, q, weight)
            left = self._exit(known, quote, unrealised, var)
        if not left:
            target = target_of(signed, conviction, self.setting.threshold, self.setting.max_lots)
            floor = float(self.setting.delta_floor)
            self.desk.seed(target, floor, self.setting.latency_ns, quote)
        self._count(quote, p, q, conviction)

    # -------------------------------------------------------------------------- fills

    def _fill(self, lots: int, price: int, ts: int, cause: int = BY_ORDERS) -> None:
        book, before = self.book, self.book.position
        closing = max(-abs(before), min(abs(before), lots)) if before * lots < 0 else 0
        if closing:
            book.fill(closing, price)
            if book.position == 0:
                self._close(ts, cause)
        if lots - closing:
            opens = book.position == 0
            filled = book.filled
            book.fill(lots - closing, price)
            if opens:
                self.trade = self._opened(price, ts, filled)

    def _opened(self, price: int, ts: int, filled: int) -> Trade:
        conviction = self.decider.conviction.mean
        floor = self.setting.trade_floor
        seen = [Average(floor) for _ in self.decider.q]
        for average, q in zip(seen, self.decider.q, strict=True):
            average.observe(Single(2) * abs(q.mean))
        book = self.book
        return Trade(
            ts,
            price,
            book.position,
            book.realised,
            filled,
            conviction,
            conviction,
            seen[:4],
            Average(floor),
            self.dominant,
        )

    def _close(self, ts: int, cause: int) -> None:
        trade, cost = self.trade, self.setting.cost
        assert trade is not None
        lots = self.book.filled - trade.filled
        gross = Single(np.int64(self.book.realised - trade.realised))
        profit = gross - cost * Single(np.int64(lots))
        self.edges[trade.dominant].observe(profit / Single(np.int64(lots // 2)))
        self.returns.observe(profit)
        self.wins += bool(profit > 0)
        self.causes[cause] += 1
        self.hold_bins[hold_bin(ts - trade.entry_ts)] += 1
        place = unit_bin(trade.at_entry)
        self.outcomes[place] += 1
        self.outcome_wins[place] += bool(profit > 0)
        self.outcome_profit[place] = self.outcome_profit[place] + profit
        self.trade = None

    # -------------------------------------------------------------------------- signal and exits

    def _signal(self, q: Sequence[Single], weight: Sequence[Single]) -> Single:
        if self.setting.program is not None:
            machine = Machine(q, weight)
            machine.run(self.setting.program)
            self.undefined += machine.undefined
            self.dominant = machine.dominant
            return machine.signed
        strength = [(Single(2) * abs(x)) * w for x, w in zip(q, weight, strict=True)]
        self.dominant = strength.index(max(strength))
        return signal_of(q, weight)

    def _follow(
        self,
        trade: Trade,
        quote: Quote,
        conviction: Single,
        q: Sequence[Single],
        weight: Sequence[Single],
    ) -> Single:
        book = self.book
        unrealised = exits.unrealised_of(book.position, book.basis, quote.bid, quote.ask)
        trade.conviction = conviction
        for average, x in zip(trade.magnitudes, q, strict=False):
            average.observe(Single(2) * abs(x))
        share = unrealised / (self.setting.cost * Single(abs(book.position)))
        trade.pnl.observe(conviction * min(max(share, -ONE), ONE))
        trade.peak = max(trade.peak, unrealised)
        faded = conviction < trade.at_entry / Single(2)
        trade.degradation = trade.degradation + 1 if faded else 0
        half = self.horizons // 2
        terms = signed_terms(q, weight)
        sides = sign(total(terms[:half])) * sign(total(terms[self.horizons - half :]))
        trade.disagreement = trade.disagreement + 1 if sides < 0 else 0
        return unrealised

    def _exit(self, trade: Trade, quote: Quote, unrealised: Single, var: Sequence[Single]) -> bool:
        rules = self.setting
        mean_var = total(var) / Single(self.horizons)
        size = abs(self.book.position)
        composite = exits.composite_of(
            trade.at_entry, trade.conviction, trade.pnl.mean, trade.disagreement
        )
        stop = exits.stop_of(rules.stop_multiple, mean_var, rules.cost, size)
        held = quote.ts - trade.entry_ts
        reason = exits.reason_of(unrealised, composite, stop, held, rules.max_hold_ns)
        if reason == exits.STAYS:
            return False
        self._fill(*self.desk.closing(quote), quote.ts, reason)
        self.desk.cancel()
        return True

    # -------------------------------------------------------------------------- counters

    def _count(
        self, quote: Quote, p: Sequence[Single], q: Sequence[Single], conviction: Single
    ) -> None:
        self.events += 1
        for h, x in enumerate(p):
            self.missing += bool(np.isnan(x))
            self.raw[h].observe(0.0 if np.isnan(x) else float(x - Single(0.5)))
            self.smoothed[h].observe(float(q[h]))
        self.conviction_bins[unit_bin(conviction)] += 1
        book = self.book
        marked = np.int64(2 * book.cash + book.position * (quote.bid + quote.ask))
        fees = self.setting.cost * Single(np.int64(book.filled))
        equity = Single(0.5) * Single(marked) - fees
        self.peak = max(self.peak, equity)
        self.deepest = max(self.deepest, self.peak - equity)


def simulate(
    events: Mapping[str, Any], settings: Mapping[str, Any], slots: int, programs: Any = None
) -> list[Simulation]:
    """Every simulation of `settings` (S,) over its tape of `events` (T, E), from the start."""
    found = []
    names = ("ts", "bid", "ask", "bid_size", "ask_size")
    horizons = events["p"].shape[2]
    for s in range(len(settings["cost"])):
        own = {name: settings[name][s] for name in Setting.__dataclass_fields__ if name in settings}
        chosen = int(settings["program"][s]) if programs is not None else -1
        whole = {name: int(own[name]) for name in ("max_lots", "latency_ns", "max_hold_ns")}
        own |= whole | {"program": programs[chosen] if chosen >= 0 else None}
        simulation = Simulation(Setting(**own), horizons, slots)
        tape = int(settings["tape"][s])
        rows = zip(*(events[name][tape] for name in names), strict=True)
        for row, p in zip(rows, events["p"][tape], strict=True):
            simulation.event(Quote(*map(int, row)), list(p))
        found.append(simulation)
    return found
