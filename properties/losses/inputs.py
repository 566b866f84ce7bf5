"""Domains that the contracts of the losses share."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import ANY, Choice, Tensor, reals, sizes

Array = NDArray[Any]
Rerun = Any

# At production a series whose elements cannot be counted in 31 bits.
SERIES = {
    "K": sizes(0, 40, production=2**23 + 9),
    "B": sizes(0, 9, production=64),
    "N": sizes(1, 9, production=5),
}
# Few rows in a part and few in a tile, so that both stages have an order.
STAGES = {"block_rows": Choice(64, 16), "parts": Choice(64, 3, 1)}
PER_HORIZON = Tensor("N")
WEIGHT = Tensor("N", domain=reals(0, 8))
LOGITS = Tensor("K B N", domain=reals(-100, 100), unread=ANY)
P = Tensor("K B N", domain=reals(0, 1))


def with_labels_missing(drawn: Array) -> Array:
    """Labels in [0, 1], NaN where the number drawn is negative; some horizons have none."""
    horizon_has_none = drawn[:1, :1] < -0.25
    return np.where((drawn < 0) | horizon_has_none, np.nan, drawn)


LABELS = Tensor("K B N", domain=reals(-0.5, 1).map(with_labels_missing))


def label_above_one(labels: torch.Tensor) -> dict[str, object]:
    """A label that is no probability."""
    return {"labels": torch.full_like(labels, 1.5)}


def label_below_zero(labels: torch.Tensor) -> dict[str, object]:
    """A label that is no probability."""
    return {"labels": torch.full_like(labels, -1e-6)}


def labels_of_another_window(labels: torch.Tensor) -> dict[str, object]:
    """Labels of an event more."""
    return {"labels": torch.zeros(labels.shape[0] + 1, *labels.shape[1:])}


def logits_in_float64(logits: torch.Tensor) -> dict[str, object]:
    """Logits of another dtype."""
    return {"logits": logits.double()}


def weight_too_long(weight: torch.Tensor) -> dict[str, object]:
    """A weight for one horizon more."""
    return {"weight": torch.ones(len(weight) + 1)}


def p_in_float64(p: torch.Tensor) -> dict[str, object]:
    """Probabilities of another dtype."""
    return {"p": p.double()}


BAD_LABELS = (
    (ValueError, "labels", label_above_one),
    (ValueError, "labels", label_below_zero),
    (ValueError, "labels", labels_of_another_window),
    (TypeError, "logits", logits_in_float64),
)
BAD_SERIES = ((ValueError, "weight", weight_too_long), (TypeError, "p", p_in_float64))
