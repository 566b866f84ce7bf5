"""Domains of order books that the contracts of the backtest share."""

import numpy as np

from trivet import Tensor, integers
from trivet.properties.decision.inputs import Array

NANOSECONDS = ("int64",)
COUNTS = ("int32",)


def times(steps: Array) -> Array:
    """Time stamps from steps of 0 on: they stand still and go on, never back."""
    return np.asarray(np.cumsum(steps, axis=-1))


def rare(values: Array) -> Array:
    """1 in place of the largest of 0 to 11, else 0."""
    return np.asarray(values == 11, np.int64)


def quotes(dims: str) -> dict[str, Tensor]:
    """The tensors of a book whose sides touch, lock and cross, with scarce and empty sizes."""
    return {
        "ts": Tensor(dims, dtypes=NANOSECONDS, domain=integers(0, 3).map(times)),
        "bid": Tensor(dims, dtypes=COUNTS, domain=integers(9996, 10003)),
        "ask": Tensor(dims, dtypes=COUNTS, domain=integers(9999, 10006)),
        "bid_size": Tensor(dims, dtypes=COUNTS, domain=integers(0, 5)),
        "ask_size": Tensor(dims, dtypes=COUNTS, domain=integers(0, 5)),
    }
