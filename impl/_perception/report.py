"""What an epoch reports of each horizon, and the gate on horizons that behave alike."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

# Outputs within a tenth of one another are alike; labels that differ tenfold are not.
ALIKE = 1.1
TENFOLD = 10.0


@dataclass(frozen=True)
class Report:
    """One epoch; lists hold a number for each horizon, None where there is none."""

    step: int
    phase: int
    loss: list[float | None]
    constant_loss: list[float | None]
    auc: list[float | None]
    jitter: list[float | None]
    jitter_ratio: list[float | None]
    smoothness_lambda: list[float | None]
    run_length: list[float | None]
    label_run_length: list[float | None]
    alike: bool
    degraded: list[int]

    def fields(self) -> dict[str, object]:
        """The report as plain data."""
        return asdict(self)


def area_under_curve(p: np.ndarray, labels: np.ndarray) -> float:
    """The probability that a rise has a larger p than a fall, ties counting half.

    p and labels (T,); a label above 0.5 is a rise, below it a fall, others and NaN count nothing.
    NaN without either of them. From the ranks of the rises (Mann and Whitney).
    """
    rises, falls = p[labels > 0.5], p[labels < 0.5]
    if not (len(rises) and len(falls)):
        return math.nan
    ordered = np.sort(falls)
    below = np.searchsorted(ordered, rises, "left")
    up_to = np.searchsorted(ordered, rises, "right")
    return float((below + up_to).sum() / (2 * len(rises) * len(falls)))


def mean_run_length(series: np.ndarray) -> float:
    """The mean length of the stretches of (T,) numbers on one side of 0.5; NaN are left out."""
    sides = np.sign(series[~np.isnan(series)] - 0.5)
    if not len(sides):
        return math.nan
    return len(sides) / (1 + np.count_nonzero(np.diff(sides)))


def entropy(p: np.ndarray, labels: np.ndarray) -> float:
    """The mean cross entropy of p against the present labels, both (T,); NaN without one."""
    present = ~np.isnan(labels)
    if not present.any():
        return math.nan
    smallest = np.finfo(np.float32).tiny
    sure, label = p[present].astype(np.float64), labels[present].astype(np.float64)
    rise, fall = np.log(np.maximum(sure, smallest)), np.log(np.maximum(1 - sure, smallest))
    return float(-(label * rise + (1 - label) * fall).mean())


def constant_entropy(labels: np.ndarray) -> float:
    """The least cross entropy that one constant p reaches on these labels: p is their mean."""
    present = labels[~np.isnan(labels)]
    return entropy(np.full(present.shape, present.mean()), present) if len(present) else math.nan


def alike(outputs: Sequence[float], labels: Sequence[float]) -> bool:
    """Whether all horizons' outputs behave alike while their labels do not: the gate is red.

    Mean run lengths of each horizon: the outputs' lie within 10 % of one another while those of
    the labels differ tenfold. A horizon without labels counts nothing.
    """
    known = [
        (own, label)
        for own, label in zip(outputs, labels, strict=True)
        if not (math.isnan(own) or math.isnan(label))
    ]
    if len(known) < 2:
        return False
    own, wanted = zip(*known, strict=True)
    return bool(max(own) <= ALIKE * min(own) and max(wanted) >= TENFOLD * min(wanted))


def listed(values: Sequence[float] | np.ndarray) -> list[float | None]:
    """Numbers as JSON has them: None for those that are not finite."""
    return [float(value) if math.isfinite(value) else None for value in values]
