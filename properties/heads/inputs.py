"""Domains and bad inputs that the contracts of the heads share."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import ANY, Choice, Tensor, partition, reals, sizes
from trivet.properties.routing.inputs import with_odd_rows_reversed, zero_record

Array = NDArray[Any]
Rerun = Any

# At production a batch at which (B, H) cannot be counted in 31 bits.
BATCH = 2**25 + 3
DIMS = {
    "B": sizes(0, 20, production=BATCH),
    "H": sizes(1, 70, production=128),
    "N": sizes(1, 9, production=5),
    "E": sizes(0, 36, production=64),
}
# Gradients have as many elements as weights, each with an oracle's sum: fewer of them.
FEWER = DIMS | {"H": sizes(1, 40, production=128), "N": sizes(1, 4, production=5)}
FEWER |= {"E": sizes(0, 20, production=64)}
TABLE = {"M": sizes(1, "H+3", production=28)}
STATES = Tensor("B H", domain=reals(-4, 4))
# Weights at which the gates do not saturate; biases that reach where ELU and p do.
WEIGHTS = reals(-0.25, 0.25)
ARGS = {
    "s": STATES,
    "W1": Tensor("N E H", domain=WEIGHTS),
    "b1": Tensor("N E", domain=reals(-12, 12)),
    "W2": Tensor("N E E", domain=WEIGHTS),
    "b2": Tensor("N E", domain=reals(-1, 1)),
    "w_gate": Tensor("N E", domain=reals(-1, 1)),
    "bg": Tensor("N", domain=reals(-4, 4)),
    "w_main": Tensor("N E", domain=reals(-1, 1)),
    "bm": Tensor("N", domain=reals(-20, 20)),
}
W_SKIP = Tensor("N H", domain=WEIGHTS)
W_COMPACT = Tensor("H", domain=WEIGHTS, unread=ANY)
SLOTS = Tensor(
    "N M", dtypes=("int32",), domain=partition("H", total=False).map(with_odd_rows_reversed)
)
# The first of each is the kernels' own choice.
BLOCKS = {
    "block_rows": Choice(16, 32),
    "block_e": Choice(32, 16),
    "block_h": Choice(32, 16),
}
PARTS = {"parts": Choice(16, 1)}
LOGITS = Tensor("B N")


def s_in_float64(s: torch.Tensor) -> dict[str, object]:
    """States of another dtype."""
    return {"s": s.double()}


def W2_of_another_width(W2: torch.Tensor) -> dict[str, object]:
    """A second layer of another inner width."""
    return {"W2": torch.zeros(len(W2), W2.shape[1] + 1, W2.shape[2])}


def bg_of_another_horizon(bg: torch.Tensor) -> dict[str, object]:
    """Gates of a horizon more."""
    return {"bg": torch.zeros(len(bg) + 1)}


def w_skip_of_other_channels(w_skip: torch.Tensor) -> dict[str, object]:
    """Skip weights of a channel more."""
    return {"w_skip": torch.zeros(w_skip.shape[0], w_skip.shape[1] + 1)}


def block_under_sixteen() -> dict[str, object]:
    """A block that no matrix product takes."""
    return {"block_e": 8}


def record_of_zeros(s: torch.Tensor, table: torch.Tensor) -> dict[str, object]:
    """A routing record that was built and never filled."""
    return {"table": zero_record(s.shape[1], table.shape[0], table.shape[1])}


def table_naming_a_channel_twice(table: torch.Tensor) -> dict[str, object]:
    """A table whose entries are not disjoint."""
    return {"table": torch.zeros((table.shape[0], 2), dtype=torch.int32)}


def table_of_another_horizon(table: torch.Tensor) -> dict[str, object]:
    """A table of a bucket more."""
    return {"table": torch.full((table.shape[0] + 1, table.shape[1]), -1, dtype=torch.int32)}


def w_compact_of_other_channels(w_compact: torch.Tensor) -> dict[str, object]:
    """Packed weights of a channel more."""
    return {"w_compact": torch.zeros(len(w_compact) + 1)}


BAD_HEAD = (
    (TypeError, "s", s_in_float64),
    (ValueError, "W2", W2_of_another_width),
    (ValueError, "bg", bg_of_another_horizon),
    (ValueError, "block_e", block_under_sixteen),
)
BAD_SKIP = ((ValueError, "w_skip", w_skip_of_other_channels),)
BAD_PACKED = (
    (ValueError, "size", record_of_zeros),
    (ValueError, "table", table_naming_a_channel_twice),
    (ValueError, "table", table_of_another_horizon),
    (ValueError, "w_compact", w_compact_of_other_channels),
)


def unpacked(w_compact: Array, table: Array, channels: int) -> Array:
    """The packed weights at their places in (N, H), 0 elsewhere."""
    full = np.zeros((len(table), channels))
    place = 0
    for bucket, row in enumerate(table):
        own = row[row >= 0]
        full[bucket, own] = w_compact[place : place + len(own)]
        place += len(own)
    return full
