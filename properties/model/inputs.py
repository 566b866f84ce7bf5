"""Domains and bad inputs that the contracts of the model share."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import ANY, Tensor, log_uniform, partition, reals, sizes
from trivet.properties.routing.inputs import with_odd_rows_reversed, zero_record

Array = NDArray[Any]
Rerun = Any

# Small: an oracle goes through every block, event and channel of every row.
ROWS = {"B": sizes(0, 2, production=8)}
DIMS = {
    "K": sizes(1, 3, production=4),
    "D": sizes(1, 3, production=8),
    "H": sizes(1, 6, production=128),
    "S": sizes(1, 3, production=16),
    "L": sizes(1, 2, production=2),
}
HEADS = {"N": sizes(1, 3, production=5), "E": sizes(0, 3, production=32)}
TABLE = {"M": sizes(1, "H+2", production=28)}
# Weights at which neither gates nor tanh saturate: a saturated one hides what is lost.
WEIGHTS = reals(-0.25, 0.25)
EVENTS = reals(-2, 2)
SECONDS = log_uniform(1e-4, 1e3, zero=True)
BLOCKS = {
    "W_x": Tensor("H D", domain=WEIGHTS),
    "b_x": Tensor("H", domain=reals(-1, 1)),
    "W_delta": Tensor("L H H", domain=WEIGHTS),
    "b_delta": Tensor("L H", domain=reals(-2, 2)),
    "W_B": Tensor("L S H", domain=WEIGHTS),
    "W_C": Tensor("L S H", domain=WEIGHTS),
    "A_log": Tensor("L H", domain=reals(-2, 1)),
    "D_u": Tensor("L H", domain=WEIGHTS),
}
CELL = {
    "W_in": Tensor("H H", domain=WEIGHTS),
    "W_rec": Tensor("H H", domain=WEIGHTS),
    "b": Tensor("H", domain=reals(-1, 1)),
    "tau": Tensor("H", domain=log_uniform(1e-2, 1e3)),
}
HEAD = {
    "W1": Tensor("N E H", domain=WEIGHTS),
    "b1": Tensor("N E", domain=reals(-2, 2)),
    "W2": Tensor("N E E", domain=WEIGHTS),
    "b2": Tensor("N E", domain=reals(-1, 1)),
    "w_gate": Tensor("N E", domain=reals(-1, 1)),
    "bg": Tensor("N", domain=reals(-2, 2)),
    "w_main": Tensor("N E", domain=reals(-1, 1)),
    "bm": Tensor("N", domain=reals(-2, 2)),
}
W_SKIP = Tensor("N H", domain=WEIGHTS)
W_COMPACT = Tensor("H", domain=WEIGHTS, unread=ANY)
SLOTS = Tensor(
    "N M", dtypes=("int32",), domain=partition("H", total=False).map(with_odd_rows_reversed)
)
WINDOW = {"x": Tensor("B K D", domain=EVENTS), "dt": Tensor("B K", domain=SECONDS)}
EVENT = {"x": Tensor("B D", domain=EVENTS), "dt": Tensor("B", domain=SECONDS)}


def x_in_float64(x: torch.Tensor) -> dict[str, object]:
    """Features of another dtype."""
    return {"x": x.double()}


def x_of_another_width(x: torch.Tensor) -> dict[str, object]:
    """Events of a feature more."""
    return {"x": torch.zeros(*x.shape[:-1], x.shape[-1] + 1)}


def dt_of_another_batch(dt: torch.Tensor) -> dict[str, object]:
    """Seconds of a row more."""
    return {"dt": torch.zeros(dt.shape[0] + 1, *dt.shape[1:])}


def no_event(x: torch.Tensor, dt: torch.Tensor) -> dict[str, object]:
    """Windows of no event."""
    return {"x": x[:, :0], "dt": dt[:, :0]}


def tau_of_zero(tau: torch.Tensor) -> dict[str, object]:
    """Time constants that no channel can have."""
    return {"tau": torch.zeros_like(tau)}


def record_of_zeros(tau: torch.Tensor, table: torch.Tensor) -> dict[str, object]:
    """A routing record that was built and never filled."""
    return {"table": zero_record(len(tau), table.shape[0], table.shape[1])}


def table_naming_a_channel_twice(table: torch.Tensor) -> dict[str, object]:
    """A table whose entries are not disjoint."""
    return {"table": torch.zeros((table.shape[0], 2), dtype=torch.int32)}


def state_of_another_batch(state: torch.Tensor) -> dict[str, object]:
    """States of a row more."""
    return {"state": torch.zeros(state.shape[0] + 1, state.shape[1])}


BAD_ROUTING = (
    (ValueError, "size", record_of_zeros),
    (ValueError, "table", table_naming_a_channel_twice),
)


def served(table: Array, channels: int) -> Array:
    """Which channels are in some bucket, bool (H,)."""
    return np.isin(np.arange(channels), table)
