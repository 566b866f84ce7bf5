"""Gates and scan element by element: a state is the sum over the paths that lead to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
Vector = Sequence[float]
Matrix = Sequence[Vector]
Cube = Sequence[Matrix]


def _exact(number: float) -> Any:
    return mpmath.mpf(float(number))


def _total(terms: Iterable[Any]) -> Any:
    return mpmath.fsum(terms)


def scan_gates_scalar(index: tuple[int, ...], output: str, delta: Cube, A_log: Vector) -> Any:
    """One step or one a."""
    row, time, channel = index
    with mpmath.workprec(_BITS):
        step = _softplus(delta[row][time][channel])
        return step if output == "step" else mpmath.exp(-step * mpmath.exp(_exact(A_log[channel])))


def _softplus(value: float) -> Any:
    return mpmath.log1p(mpmath.exp(_exact(value)))


def scan_gates_backward_scalar(
    index: tuple[int, ...],
    output: str,
    g_step: Cube,
    g_a: Cube,
    delta: Cube,
    A_log: Vector,
) -> Any:
    """One element of ddelta or of dA_log."""
    with mpmath.workprec(_BITS):
        if output == "ddelta":
            row, time, channel = index
            raw = _exact(delta[row][time][channel])
            to_step = _exact(g_step[row][time][channel])
            to_step += _to_product(g_a, delta, A_log, row, time, channel)
            return to_step / (1 + mpmath.exp(-raw))
        (channel,) = index
        return _total(
            _to_product(g_a, delta, A_log, row, time, channel) * _softplus(each[channel])
            for row, window in enumerate(delta)
            for time, each in enumerate(window)
        )


def _to_product(g_a: Cube, delta: Cube, A_log: Vector, row: int, time: int, channel: int) -> Any:
    """The derivative of the loss, through a, by step at this place: -g_a a exp(A_log)."""
    rate = mpmath.exp(_exact(A_log[channel]))
    a = mpmath.exp(-_softplus(delta[row][time][channel]) * rate)
    return -_exact(g_a[row][time][channel]) * a * rate


@dataclass(frozen=True)
class _Row:
    """One row of a batch, numbers as they are; g_y and g_x_T where a gradient is asked for."""

    a: Matrix
    step: Matrix
    B: Matrix
    C: Matrix
    D: Vector
    u: Matrix
    x_0: Matrix
    reset: Sequence[bool] | None
    g_y: Matrix = ()
    g_x_T: Matrix = ()

    def cut(self, time: int) -> bool:
        """Whether the state is replaced by 0 before this step."""
        return self.reset is not None and bool(self.reset[time])

    def gained(self, time: int, channel: int, state: int) -> Any:
        """step B u."""
        size = _exact(self.step[time][channel]) * _exact(self.u[time][channel])
        return size * _exact(self.B[time][state])

    def x(self, time: int, channel: int, state: int) -> Any:
        """x_t: what each earlier step gained, times every a since; `time` -1 is x_0."""
        terms: list[Any] = []
        since = mpmath.mpf(1)
        for earlier in range(time, -1, -1):
            terms.append(since * self.gained(earlier, channel, state))
            if self.cut(earlier):
                return _total(terms)
            since *= _exact(self.a[earlier][channel])
        return _total([*terms, since * _exact(self.x_0[channel][state])])

    def before(self, time: int, channel: int, state: int) -> Any:
        """x_(t-1) as step t sees it."""
        return mpmath.mpf(0) if self.cut(time) else self.x(time - 1, channel, state)

    def pull(self, time: int, channel: int, state: int) -> Any:
        """dL/dx_t: what each later output asks for, times every a on the way there."""
        terms: list[Any] = []
        between = mpmath.mpf(1)
        for later in range(time, len(self.u)):
            if later > time:
                if self.cut(later):
                    return _total(terms)
                between *= _exact(self.a[later][channel])
            asked = _exact(self.C[later][state]) * _exact(self.g_y[later][channel])
            terms.append(between * asked)
        return _total([*terms, between * _exact(self.g_x_T[channel][state])])

    def to_start(self, channel: int, state: int) -> Any:
        """The gradient to x_0."""
        if not len(self.u):
            return _exact(self.g_x_T[channel][state])
        if self.cut(0):
            return mpmath.mpf(0)
        return _exact(self.a[0][channel]) * self.pull(0, channel, state)

    def to_gain(self, time: int, channel: int) -> Any:
        """The gradient to step_t u_t of a channel, through all its states."""
        return _total(
            self.pull(time, channel, state) * _exact(each)
            for state, each in enumerate(self.B[time])
        )


def scan_chunked_scalar(
    index: tuple[int, ...],
    output: str,
    a: Cube,
    step: Cube,
    B: Cube,
    C: Cube,
    D: Vector,
    u: Cube,
    x_0: Cube,
    reset: Sequence[Sequence[bool]] | None,
) -> Any:
    """One y or one element of the terminal state."""
    row = index[0]
    cuts = None if reset is None else reset[row]
    window = _Row(a[row], step[row], B[row], C[row], D, u[row], x_0[row], cuts)
    with mpmath.workprec(_BITS):
        if output == "x_T":
            _, channel, state = index
            return window.x(len(window.u) - 1, channel, state)
        return _output(window, *index[1:])


def _output(window: _Row, time: int, channel: int) -> Any:
    """y_t of a channel."""
    direct = _exact(window.D[channel]) * _exact(window.u[time][channel])
    read = (
        _exact(each) * window.x(time, channel, state) for state, each in enumerate(window.C[time])
    )
    return direct + _total(read)


def scan_chunked_backward_scalar(
    index: tuple[int, ...],
    output: str,
    g_y: Cube,
    g_x_T: Cube,
    a: Cube,
    step: Cube,
    B: Cube,
    C: Cube,
    D: Vector,
    u: Cube,
    x_0: Cube,
    reset: Sequence[Sequence[bool]] | None,
) -> Any:
    """One element of the gradient that ``output`` names: da, dstep, dB, dC, dD, du or dx_0."""
    with mpmath.workprec(_BITS):
        if output == "dD":
            (channel,) = index
            return _total(
                _exact(slopes[channel]) * _exact(entries[channel])
                for row_slopes, row_entries in zip(g_y, u, strict=True)
                for slopes, entries in zip(row_slopes, row_entries, strict=True)
            )
        row = index[0]
        cuts = None if reset is None else reset[row]
        window = _Row(
            a[row], step[row], B[row], C[row], D, u[row], x_0[row], cuts, g_y[row], g_x_T[row]
        )
        return _gradient(window, output, *index[1:])


def _gradient(window: _Row, output: str, time: int, place: int) -> Any:
    """One element of a gradient of one row; place is a channel, or for dB and dC a state.

    Of dx_0 the two numbers are channel and state.
    """
    channels = range(len(window.D))
    match output:
        case "da":
            return _total(
                window.pull(time, place, n) * window.before(time, place, n)
                for n in range(len(window.x_0[place]))
            )
        case "dstep":
            return window.to_gain(time, place) * _exact(window.u[time][place])
        case "du":
            direct = _exact(window.D[place]) * _exact(window.g_y[time][place])
            return direct + window.to_gain(time, place) * _exact(window.step[time][place])
        case "dB":
            return _total(
                window.pull(time, d, place)
                * _exact(window.step[time][d])
                * _exact(window.u[time][d])
                for d in channels
            )
        case "dC":
            return _total(window.x(time, d, place) * _exact(window.g_y[time][d]) for d in channels)
        case "dx_0":
            return window.to_start(time, place)
    raise AssertionError(f"{output} is no gradient of the scan")


def scan_step_scalar(
    index: tuple[int, ...],
    output: str,
    a: Matrix,
    step: Matrix,
    B: Matrix,
    C: Matrix,
    D: Vector,
    u: Matrix,
    x: Cube,
    reset: Sequence[bool] | None,
) -> Any:
    """One y or one element of the next state: a window of one event."""
    row, *place = index
    cuts = None if reset is None else [reset[row]]
    event = _Row([a[row]], [step[row]], [B[row]], [C[row]], D, [u[row]], x[row], cuts)
    with mpmath.workprec(_BITS):
        return _output(event, 0, *place) if output == "y" else event.x(0, *place)


def scan_step_backward_scalar(
    index: tuple[int, ...],
    output: str,
    g_y: Matrix,
    g_x: Cube,
    a: Matrix,
    step: Matrix,
    B: Matrix,
    C: Matrix,
    D: Vector,
    u: Matrix,
    x: Cube,
    reset: Sequence[bool] | None,
) -> Any:
    """One element of the gradient that ``output`` names: da, dstep, dB, dC, dD, du or dx."""
    with mpmath.workprec(_BITS):
        if output == "dD":
            (channel,) = index
            pairs = zip(g_y, u, strict=True)
            return _total(_exact(slope[channel]) * _exact(entry[channel]) for slope, entry in pairs)
        row, *place = index
        cuts = None if reset is None else [reset[row]]
        event = _Row(
            [a[row]], [step[row]], [B[row]], [C[row]], D, [u[row]], x[row], cuts, [g_y[row]],
            g_x[row],
        )  # fmt: skip
        return event.to_start(*place) if output == "dx" else _gradient(event, output, 0, *place)
