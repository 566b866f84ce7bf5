"""Domains and bad inputs that the contracts of bucket routing share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import Choice, Tensor, integers, log_uniform, sizes
from trivet.impl.routing import RoutingRecord

Array = NDArray[Any]
BadCase = Callable[..., dict[str, object]]

BUCKETS = {"N": sizes(1, 9, production=5)}
CHANNELS = {"H": sizes(1, 300, production=128)}
# Twelve orders of magnitude beyond the production range of 10 ms to 1000 s.
SECONDS = Tensor("H", domain=log_uniform(1e-15, 1e15))
OWNERS = Tensor("H", dtypes=("int32",), domain=integers(0, "N-1", sentinel=-1))
PER_BUCKET = Tensor("N")
INDICES = ("int32",)
# The first of each is the kernel's own choice; the others cut the work more finely.
BLOCK = Choice(128, 32)
FEW = Choice(128, 4)


def _third_is_empty(empty_value: float) -> Any:
    """A map that marks every third bucket as empty, in each array at the same places."""
    return lambda values: np.where(np.arange(values.size) % 3 == 2, empty_value, values)


# lo <= 1 <= hi: a pair drawn independently is always a range; (0, +inf) is an empty bucket's.
LOWER = Tensor("N", domain=log_uniform(1e-15, 1.0).map(_third_is_empty(0.0)))
UPPER = Tensor("N", domain=log_uniform(1.0, 1e15).map(_third_is_empty(np.inf)))


def with_odd_rows_reversed(table: Array) -> Array:
    """Descending channels after unused slots in every other row: legal for the bare kernels."""
    odd = np.arange(table.shape[0])[:, None] % 2 == 1
    return np.where(odd, table[:, ::-1], table)


def floats(*values: float) -> torch.Tensor:
    """A float32 tensor of a bad input."""
    return torch.tensor(values)


def bad_tau(value: float) -> BadCase:
    """A case that fills tau with one bad value."""

    def tau_filled(tau: torch.Tensor) -> dict[str, object]:
        return {"tau": torch.full_like(tau, value)}

    tau_filled.__name__ = f"tau of {value}"
    return tau_filled


def tau_in_float64(tau: torch.Tensor) -> dict[str, object]:
    """Time constants of another dtype."""
    return {"tau": tau.double()}


def tau_as_a_column(tau: torch.Tensor) -> dict[str, object]:
    """Time constants of another rank."""
    return {"tau": tau[:, None]}


BAD_TAU = tuple((ValueError, "tau", bad_tau(bad)) for bad in (np.nan, 0.0, -1.0, np.inf))
MISSHAPEN_TAU = ((TypeError, "tau", tau_in_float64), (ValueError, "tau", tau_as_a_column))


def bucket_beyond_the_last(bucket_of: torch.Tensor, N: int) -> dict[str, object]:
    """A bucket that does not exist."""
    return {"bucket_of": torch.full_like(bucket_of, N)}


def bucket_of_in_int64(bucket_of: torch.Tensor) -> dict[str, object]:
    """Buckets of another dtype."""
    return {"bucket_of": bucket_of.long()}


def bucket_of_as_a_column(bucket_of: torch.Tensor) -> dict[str, object]:
    """Buckets of another rank."""
    return {"bucket_of": bucket_of[:, None]}


BAD_OWNERS = (
    (TypeError, "bucket_of", bucket_of_in_int64),
    (ValueError, "bucket_of", bucket_of_as_a_column),
)


def zero_record(channels: int, buckets: int, capacity: int) -> RoutingRecord:
    """A record that somebody built and never filled."""
    per_bucket = torch.zeros(buckets, dtype=torch.int32)
    return RoutingRecord(
        bucket_of=torch.zeros(channels, dtype=torch.int32),
        size=per_bucket,
        offset=per_bucket.clone(),
        table=torch.full((buckets, capacity), -1, dtype=torch.int32),
        lo=torch.zeros(buckets),
        hi=torch.zeros(buckets),
        version=1,
    )
