"""The model element by element: each quantity is defined by what it is made of, and kept."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import mpmath

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
Index = tuple[int, ...]


def features_scalar(index: Index, x: Any, **weights: Any) -> Any:
    """One channel of the blocks' output at one event of one row."""
    with mpmath.workprec(_BITS):
        row, event, channel = index
        return _Model(weights, x).u(len(weights["W_delta"]), row, event, channel)


def window_dense_scalar(index: Index, output: str, x: Any, dt: Any, **weights: Any) -> Any:
    """One logit, probability or recurrent state of a window in phase 1."""
    with mpmath.workprec(_BITS):
        everything = [list(range(len(row))) for row in weights["w_skip"]]
        return _Model(weights, x, dt, everything).output(output, index)


def window_scalar(index: Index, output: str, x: Any, dt: Any, **weights: Any) -> Any:
    """The same per branch, each bucket with its own skip weights."""
    with mpmath.workprec(_BITS):
        owners = [[int(c) for c in row if int(c) >= 0] for row in weights["table"]]
        return _Model(weights, x, dt, owners, routed=True).output(output, index)


def after_window_scalar(
    index: Index, output: str, x: Any, dt: Any, x_next: Any, dt_next: Any, **weights: Any
) -> Any:
    """One logit, probability, state or scan state of the event after a window."""
    with mpmath.workprec(_BITS):
        events = [[*rows, last] for rows, last in zip(x, x_next, strict=True)]
        times = [[*row, last] for row, last in zip(dt, dt_next, strict=True)]
        owners = [[int(c) for c in row if int(c) >= 0] for row in weights["table"]]
        pooled = len(events[0]) - 1
        model = _Model(weights, events, times, owners, routed=True, pooled=pooled)
        if output == "scan_after":
            block, row, channel, place = index
            return model.scanned(block, row, pooled, channel, place)
        return model.output(output, (pooled, *index))


def step_scalar(
    index: Index, output: str, x: Any, dt: Any, state: Any, scan_states: Any, **weights: Any
) -> Any:
    """One logit, probability, state or scan state after one event."""
    with mpmath.workprec(_BITS):
        owners = [[int(c) for c in row if int(c) >= 0] for row in weights["table"]]
        packed = iter(weights["w_compact"])
        skip = [[0.0] * len(weights["tau"]) for _ in owners]
        for own, full in zip(owners, skip, strict=True):
            for channel in own:
                full[channel] = next(packed)
        model = _Model(
            weights | {"w_skip": skip},
            [[row] for row in x],
            [[seconds] for seconds in dt],
            owners,
            routed=True,
            before=(state, scan_states),
        )
        if output == "scan_after":
            block, row, channel, place = index
            return model.scanned(block, row, 0, channel, place)
        return model.output(output, (0, *index))


def _real(value: Any) -> Any:
    return mpmath.mpf(float(value))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


class _Model:
    """One call's quantities; the recursion over events and blocks is that of the definitions."""

    def __init__(
        self,
        weights: Any,
        x: Any,
        dt: Any = (),
        owners: Sequence[Sequence[int]] = (),
        routed: bool = False,
        pooled: int | None = None,
        before: tuple[Any, Any] | None = None,
    ) -> None:
        self._w, self._x, self._dt, self._owners = weights, x, dt, owners
        self._served = {c for own in owners for c in own} if routed else None
        self._before = before
        self.channels = range(len(weights["b_x"]))
        self.pooled = pooled if pooled is not None else (len(x[0]) if len(x) else 0)
        for name in ("u", "drive", "scanned", "h", "logit", "_scores"):
            setattr(self, name, cache(getattr(self, name)))

    def output(self, output: str, index: Index) -> Any:
        """The element of logits, p or states at (event, row, horizon or channel)."""
        event, row, place = index
        if output == "states":
            return self.h(event, row, place)
        logit = self.logit(event, row, place)
        return logit if output == "logits" else _sigmoid(logit)

    def drive(self, name: str, block: int, row: int, event: int, place: int) -> Any:
        """One product of a block's projection with its input."""
        weights = self._w[name][block][place]
        return mpmath.fsum(_real(weights[c]) * self.u(block, row, event, c) for c in self.channels)

    def u(self, block: int, row: int, event: int, channel: int) -> Any:
        """The input of a block, the output of the one before."""
        if block == 0:
            terms = zip(self._w["W_x"][channel], self._x[row][event], strict=True)
            bias = _real(self._w["b_x"][channel])
            return mpmath.fsum(_real(w) * _real(value) for w, value in terms) + bias
        before = block - 1
        own = self.u(before, row, event, channel)
        seen = mpmath.fsum(
            self.drive("W_C", before, row, event, n) * self.scanned(before, row, event, channel, n)
            for n in range(len(self._w["W_C"][before]))
        )
        return own + seen + _real(self._w["D_u"][before][channel]) * own

    def scanned(self, block: int, row: int, event: int, channel: int, place: int) -> Any:
        """A scan state after an event; -1 is before the first."""
        if event < 0:
            if self._before is None:
                return mpmath.mpf(0)
            return _real(self._before[1][block][row][channel][place])
        delta = self.drive("W_delta", block, row, event, channel)
        delta += _real(self._w["b_delta"][block][channel])
        length = mpmath.log1p(mpmath.exp(delta))
        decay = mpmath.exp(-length * mpmath.exp(_real(self._w["A_log"][block][channel])))
        entering = self.drive("W_B", block, row, event, place)
        gained = length * entering * self.u(block, row, event, channel)
        return decay * self.scanned(block, row, event - 1, channel, place) + gained

    def _scores(self, row: int) -> list[Any]:
        """The pool's weights over the events that it sees."""
        top = len(self._w["W_delta"])
        products = [
            mpmath.fsum(_real(self._w["q"][c]) * self.u(top, row, t, c) for c in self.channels)
            for t in range(self.pooled)
        ]
        terms = [mpmath.exp(product / mpmath.sqrt(len(self.channels))) for product in products]
        total = mpmath.fsum(terms)
        return [term / total for term in terms]

    def h(self, event: int, row: int, channel: int) -> Any:
        """A recurrent state after an event; -1 is before the first."""
        top = len(self._w["W_delta"])
        if event < 0 and self._before is not None:
            return _real(self._before[0][row][channel])
        if event < 0:
            weights = enumerate(self._scores(row))
            return mpmath.fsum(weight * self.u(top, row, t, channel) for t, weight in weights)
        if self._served is not None and channel not in self._served:
            return self.h(-1, row, channel) if self._before is not None else mpmath.mpf(0)
        driven = mpmath.fsum(
            _real(self._w["W_in"][channel][c]) * self.u(top, row, event, c)
            + _real(self._w["W_rec"][channel][c]) * self.h(event - 1, row, c)
            for c in self.channels
        )
        age = _real(self._dt[row][event]) / _real(self._w["tau"][channel])
        fresh = -mpmath.expm1(-age) * mpmath.tanh(driven + _real(self._w["b"][channel]))
        return mpmath.exp(-age) * self.h(event - 1, row, channel) + fresh

    def logit(self, event: int, row: int, k: int) -> Any:
        """The head of one horizon."""
        state = [self.h(event, row, c) for c in self.channels]
        z = [self._row("W1", "b1", k, i, state) for i in range(len(self._w["b1"][k]))]
        active = [value if value > 0 else mpmath.expm1(value) for value in z]
        e = [self._row("W2", "b2", k, j, active) for j in range(len(active))]
        gate = self._dot(self._w["w_gate"][k], e) + _real(self._w["bg"][k])
        main = self._dot(self._w["w_main"][k], e) + _real(self._w["bm"][k])
        own = self._owners[k]
        skip = mpmath.fsum(_real(self._w["w_skip"][k][c]) * state[c] for c in own)
        return skip + _sigmoid(gate) * main

    def _row(self, weights: str, bias: str, k: int, place: int, values: Sequence[Any]) -> Any:
        return self._dot(self._w[weights][k][place], values) + _real(self._w[bias][k][place])

    @staticmethod
    def _dot(weights: Any, values: Sequence[Any]) -> Any:
        return mpmath.fsum(_real(w) * value for w, value in zip(weights, values, strict=True))
