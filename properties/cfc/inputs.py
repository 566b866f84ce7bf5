"""Domains, bad inputs and comparisons that the contracts of the CfC cell share."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import Choice, Tensor, log_uniform, partition, reals, sizes
from trivet.impl.routing import RoutingRecord
from trivet.properties.routing.inputs import BadCase, bad_tau, with_odd_rows_reversed, zero_record

Array = NDArray[Any]
Rerun = Any

# At production a batch at which neither (B, D) nor (B, H) can be counted in 31 bits, and then
# channels whose weights (H, H) cannot.
BATCH = (2**24 + 3, 3)
CELL = {
    "B": sizes(0, 6, production=BATCH),
    "D": sizes(0, 300),
    "H": sizes(1, 300, production=(128, 46_400)),
}
TABLE = {"N": sizes(1, 9, production=5), "M": sizes(1, "H+3", production=(28, 9_600))}
STATE = Tensor("B H", domain=reals(-4, 4))
# Weights whose sums of 600 terms seldom saturate tanh: a saturated one hides what is lost.
WEIGHTS = reals(-0.125, 0.125)
ARGS = {
    "x": Tensor("B D", domain=reals(-8, 8)),
    "h": STATE,
    "dt": Tensor("B", domain=log_uniform(1e-7, 1e7, zero=True)),
    "W_in": Tensor("H D", domain=WEIGHTS),
    "W_rec": Tensor("H H", domain=WEIGHTS),
    "b": Tensor("H", domain=reals(-2, 2)),
    "tau": Tensor("H", domain=log_uniform(1e-3, 1e4)),
}
# The first of each is the kernels' own choice; block_k alone sets the order of the sums.
BLOCKS = {
    "block_rows": Choice(4, 1),
    "block_channels": Choice(16, 32),
    "block_k": Choice(64, 16),
}
# The bare kernels accept any table of disjoint entries: channels in none, slots left out anywhere.
SLOTS = Tensor(
    "N M", dtypes=("int32",), domain=partition("H", total=False).map(with_odd_rows_reversed)
)

# ------------------------------------------------------------------------------ bad inputs


def x_in_float64(x: torch.Tensor) -> dict[str, object]:
    """Features of another dtype."""
    return {"x": x.double()}


def h_in_bfloat16(h: torch.Tensor) -> dict[str, object]:
    """A state of another dtype."""
    return {"h": h.bfloat16()}


def W_rec_on_another_device(W_rec: torch.Tensor) -> dict[str, object]:
    """Weights that lie elsewhere."""
    return {"W_rec": W_rec.to("meta")}


def x_of_another_rank(x: torch.Tensor) -> dict[str, object]:
    """Features with an axis too many."""
    return {"x": x[None]}


def W_in_of_another_width(W_in: torch.Tensor) -> dict[str, object]:
    """Weights for one feature more."""
    return {"W_in": torch.zeros(W_in.shape[0], W_in.shape[1] + 1)}


def b_too_long(b: torch.Tensor) -> dict[str, object]:
    """A bias for one channel more."""
    return {"b": torch.zeros(len(b) + 1)}


def dt_for_another_batch(dt: torch.Tensor) -> dict[str, object]:
    """Time steps for one row more."""
    return {"dt": torch.ones(len(dt) + 1)}


def bad_dt(value: float) -> BadCase:
    """A case that fills dt with one bad value."""

    def dt_filled(dt: torch.Tensor) -> dict[str, object]:
        return {"dt": torch.full_like(dt, value)}

    dt_filled.__name__ = f"dt of {value}"
    return dt_filled


BAD_CELL = (
    (TypeError, "x", x_in_float64),
    (TypeError, "h", h_in_bfloat16),
    (ValueError, "W_rec", W_rec_on_another_device),
    (ValueError, "x", x_of_another_rank),
    (ValueError, "W_in", W_in_of_another_width),
    (ValueError, "b", b_too_long),
    (ValueError, "dt", dt_for_another_batch),
    *((ValueError, "tau", bad_tau(bad)) for bad in (np.nan, 0.0, -1.0, np.inf)),
    *((ValueError, "dt", bad_dt(bad)) for bad in (np.nan, -1.0, np.inf)),
)


def record_of_zeros(h: torch.Tensor, table: torch.Tensor) -> dict[str, object]:
    """A routing record that was built and never filled."""
    return {"table": zero_record(h.shape[1], table.shape[0], table.shape[1])}


def record_whose_table_lacks_a_channel(h: torch.Tensor) -> dict[str, object]:
    """A routing record whose table is no partition."""
    record = one_bucket(h.shape[1])
    record.table[0, 0] = -1
    return {"table": record}


def record_of_other_channels(h: torch.Tensor) -> dict[str, object]:
    """A routing record of a model that is one channel larger."""
    return {"table": one_bucket(h.shape[1] + 1)}


def table_naming_a_channel_twice(table: torch.Tensor) -> dict[str, object]:
    """Branches that would write the same channel."""
    return {"table": torch.zeros((table.shape[0], 2), dtype=torch.int32)}


def table_naming_a_channel_too_large(h: torch.Tensor) -> dict[str, object]:
    """A channel that does not exist."""
    return {"table": torch.full((1, 1), h.shape[1], dtype=torch.int32)}


def table_in_int64(table: torch.Tensor) -> dict[str, object]:
    """A table of another dtype."""
    return {"table": table.long()}


def one_bucket(channels: int) -> RoutingRecord:
    """A whole record with every channel in one bucket."""
    return RoutingRecord(
        bucket_of=torch.zeros(channels, dtype=torch.int32),
        size=torch.tensor([channels], dtype=torch.int32),
        offset=torch.zeros(1, dtype=torch.int32),
        table=torch.arange(channels, dtype=torch.int32)[None].clone(),
        lo=torch.zeros(1),
        hi=torch.ones(1),
        version=1,
    )


BAD_TABLE = (
    (ValueError, "size", record_of_zeros),
    (ValueError, "table", record_whose_table_lacks_a_channel),
    (ValueError, "bucket_of", record_of_other_channels),
    (ValueError, "table", table_naming_a_channel_twice),
    (ValueError, "table", table_naming_a_channel_too_large),
    (TypeError, "table", table_in_int64),
)

# ------------------------------------------------------------------------------ comparisons


def served_channels(table: Array, channels: int) -> Array:
    """Which channels are in some bucket, bool (H,)."""
    return np.isin(np.arange(channels), table)


def shuffled(channels: int) -> Array:
    """A permutation of the channels without fixed structure, the same for equal sizes."""
    return np.random.default_rng(channels).permutation(channels)


def renamed(table: Array, order: Array) -> Array:
    """The table when new channel i is the old channel order[i]."""
    place = np.argsort(order)
    return np.where(table >= 0, place[np.maximum(table, 0)], -1)
