"""The controllers' formulas, one element at a time, in multiprecision."""

import math
from collections.abc import Sequence
from typing import Any

import mpmath

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 160
Row = Sequence[float]
Matrix = Sequence[Sequence[float]]
Cube = Sequence[Matrix]


class _Average:
    """One adaptive average."""

    def __init__(self, column: Sequence[float], floor: Any) -> None:
        self.mean, self.diff_var, self.sample_var, self.last = (
            mpmath.mpf(float(x)) for x in column[:4]
        )
        self.seen = float(column[4]) != 0.0
        self.floor = mpmath.mpf(floor)

    def observe(self, x: Any) -> None:
        """Take one observation, which is a finite number within 2^60."""
        if not self.seen:
            self.mean = self.last = mpmath.mpf(x)
            self.diff_var = self.sample_var = mpmath.mpf(0)
            self.seen = True
            return
        step, distance = x - self.last, x - self.mean
        self.diff_var = (19 * self.diff_var + step**2) / 20
        self.sample_var = (19 * self.sample_var + distance**2) / 20
        noise = self.sample_var + self.diff_var + mpmath.mpf("1e-30")
        self.mean += max(self.floor, self.sample_var / noise) * distance
        self.last = x

    def row(self, number: int) -> Any:
        """One field, in the order of the state."""
        fields = (self.mean, self.diff_var, self.sample_var, self.last)
        return fields[number] if number < 4 else mpmath.mpf(int(self.seen))


def _counts(x: float) -> bool:
    return math.isfinite(x) and abs(x) <= 2.0**60


def _column(average: Matrix, place: int) -> list[float]:
    return [float(average[row][place]) for row in range(5)]


def wiener_ema_scalar(
    index: tuple[int, ...],
    output: str,
    x: Row,
    floor: Row,
    average: Matrix,
    rejected: Sequence[int],
) -> Any:
    """One field of one average, or how many observations were passed over."""
    place, new = index[-1], float(x[index[-1]])
    if output == "rejected":
        return int(rejected[place]) + (0 if _counts(new) else 1)
    with mpmath.workprec(_BITS):
        state = _Average(_column(average, place), float(floor[place]))
        if _counts(new):
            state.observe(mpmath.mpf(new))
        return state.row(index[0])


def tau_change_scalar(index: tuple[int, ...], tau: Row, previous: Row) -> Any:
    """The mean distance of the logarithms, as it is written."""
    with mpmath.workprec(2 * _BITS):
        logs = [
            abs(mpmath.log(float(now)) - mpmath.log(float(before)))
            for now, before in zip(tau, previous, strict=True)
        ]
        return mpmath.fsum(logs) / len(logs)


def label_deviation_scalar(index: tuple[int, ...], labels: Cube) -> Any:
    """Root of the mean square less the squared mean, exact up to the root."""
    values = [float(row[index[0]]) for rows in labels for row in rows]
    # Squares of float32 have at most 298 binary places: sums of them are exact.
    with mpmath.workprec(4 * _BITS):
        present = [mpmath.mpf(value) for value in values if value == value]
        if not present:
            return mpmath.nan
        squares = mpmath.fsum(present, squared=True) * len(present)
        return mpmath.sqrt(squares - mpmath.fsum(present) ** 2) / len(present)


def rate_scale_scalar(
    index: tuple[int, ...],
    output: str,
    mean_square: Row | None,
    deviation: Row,
    jitter: Matrix,
    target: Matrix,
    floor: Row,
    rejected: Sequence[int],
) -> Any:
    """One number of what a window leaves behind, or one horizon's rate."""
    k = index[-1]
    with mpmath.workprec(_BITS):
        square = None if mean_square is None else float(mean_square[k])
        missed = square is not None and not math.isfinite(square)
        if output == "rejected":
            return int(rejected[k]) + int(missed)
        change, aim = _Average(_column(jitter, k), "0.4"), _Average(_column(target, k), "0.4")
        if square is not None and not missed:
            change.observe(mpmath.sqrt(mpmath.mpf(square)))
        least, spread = mpmath.mpf(float(floor[k])), float(deviation[k])
        if spread == spread and not aim.seen:
            least = max(mpmath.mpf(spread), mpmath.mpf("0.001")) / 16
        if spread == spread:
            aim.observe(mpmath.mpf(spread))
        if output in ("jitter", "target"):
            return (change if output == "jitter" else aim).row(index[0])
        if output == "floor":
            return least
        if not (change.seen and aim.seen):
            return mpmath.mpf(1)
        # 1 / (1 + a / b) = b / (b + a)
        scale = max(aim.mean, least)
        return scale / (scale + max(mpmath.mpf(0), change.mean - aim.mean))


def heads_lr_scale_scalar(index: tuple[int, ...], params: Matrix, snap: Matrix, rate: Row) -> Any:
    """One weight: a mean of both, weighted by the rate."""
    k, c = index
    with mpmath.workprec(_BITS):
        share = mpmath.mpf(float(rate[k]))
        return share * mpmath.mpf(float(params[k][c])) + (1 - share) * float(snap[k][c])


def smoothness_lambda_scalar(
    index: tuple[int, ...],
    output: str,
    jitter: Matrix,
    horizons: Sequence[int],
    floor: Row,
    base: float,
) -> Any:
    """One horizon's weight or floor."""
    k = index[0]
    with mpmath.workprec(_BITS):
        shortest, own = (mpmath.mpf(float(jitter[0][place])) for place in (0, k))
        goal = shortest / mpmath.sqrt(mpmath.mpf(int(horizons[k])) / int(horizons[0]))
        least = mpmath.mpf(float(floor[k]))
        if float(jitter[4][0]) == 0.0:
            return least if output == "floor" else mpmath.mpf(0)
        if least == 0:
            least = max(goal, mpmath.mpf("0.001")) / 16
        if output == "floor":
            return least
        if k == 0 or float(jitter[4][k]) == 0.0 or own <= goal:
            return mpmath.mpf(0)
        return mpmath.mpf(float(base)) * (own - goal) / max(goal, least)


def h_mag_per_bucket_scalar(
    index: tuple[int, ...], h: Matrix, table: Sequence[Sequence[int]]
) -> Any:
    """One bucket's mean, one element after another."""
    sizes = [abs(float(row[c])) for row in h for c in table[index[0]] if c >= 0]
    return mpmath.mpf(0) if not sizes else mpmath.fsum(sizes) / len(sizes)


def channel_activity_scalar(index: tuple[int, ...], h: Matrix) -> Any:
    """One channel's mean."""
    sizes = [abs(float(row[index[0]])) for row in h]
    return mpmath.mpf(0) if not sizes else mpmath.fsum(sizes) / len(sizes)


def reset_channels_scalar(
    index: tuple[int, ...],
    output: str,
    params: Matrix,
    exp_avg: Matrix,
    exp_avg_sq: Matrix,
    before: Sequence[int],
    after: Sequence[int],
) -> Any:
    """One entry of a buffer afterwards."""
    k, c = index
    buffer = {"params": params, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}[output]
    stays = int(before[c]) == int(after[c])
    return mpmath.mpf(float(buffer[k][c])) if stays else mpmath.mpf(0)
