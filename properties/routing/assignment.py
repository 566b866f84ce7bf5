"""Which channel is in which bucket: sorting, splitting, and the table of buckets."""

from typing import Any

import numpy as np
import torch

from trivet import Choice, Contract, Tensor, permutation, sizes
from trivet.impl import routing as kernels
from trivet.oracles import routing as oracles
from trivet.properties._assignments import assignment
from trivet.properties._expect import at_most, same_values
from trivet.properties.routing.inputs import (
    BAD_OWNERS,
    BAD_TAU,
    BLOCK,
    BUCKETS,
    CHANNELS,
    INDICES,
    MISSHAPEN_TAU,
    SECONDS,
    Array,
    bucket_beyond_the_last,
)

Rerun = Any

routing_tau_sort = Contract(
    kernel=kernels.tau_sort,
    oracles=[oracles.tau_sort, oracles.tau_sort_scalar],
    dims=CHANNELS,
    args={
        "tau": SECONDS,
        "block_channels": Choice(8, 64),
        "block_others": Choice(128, 32),
    },
    outputs={"order": Tensor("H", dtypes=INDICES)},
    raises=BAD_TAU + MISSHAPEN_TAU,
)


@routing_tau_sort.law
def order_is_a_permutation(out: Array, H: int) -> None:
    """Every channel stands in the order once."""
    same_values(np.sort(out), np.arange(H), "sorted order")


@routing_tau_sort.law
def ties_keep_the_order_of_channels(out: Array, tau: Array) -> None:
    """Time constants ascend along the order, and equal ones by channel."""
    here, after = out[:-1], out[1:]
    at_most(tau[here], tau[after], "tau along the order")
    tied = tau[here] == tau[after]
    at_most(np.where(tied, here, 0), np.where(tied, after, 0), "channels of equal tau")


@routing_tau_sort.law
def scaling_by_a_power_of_two_keeps_the_order(out: Array, tau: Array, rerun: Rerun) -> None:
    """Multiplying every tau by two moves no channel."""
    same_values(rerun(tau=2 * tau), out, "order of 2 tau")


def order_with_a_channel_twice(order: torch.Tensor) -> dict[str, object]:
    """An order that is no permutation."""
    return {"order": torch.zeros(len(order) + 1, dtype=torch.int32)}


def order_in_int64(order: torch.Tensor) -> dict[str, object]:
    """An order of another dtype."""
    return {"order": order.long()}


routing_bucket_assign = Contract(
    kernel=kernels.bucket_assign,
    oracles=[oracles.bucket_assign, oracles.bucket_assign_scalar],
    dims=CHANNELS | BUCKETS,
    args={
        "order": Tensor("H", dtypes=INDICES, domain=permutation()),
        "block_channels": BLOCK,
    },
    outputs={
        "bucket_of": Tensor("H", dtypes=INDICES),
        "size": Tensor("N", dtypes=INDICES),
        "offset": Tensor("N", dtypes=INDICES),
    },
    raises=(
        (ValueError, "order", order_with_a_channel_twice),
        (TypeError, "order", order_in_int64),
    ),
)


@routing_bucket_assign.law
def sizes_sum_to_the_channels_and_differ_by_one(out: Any, H: int, N: int) -> None:
    """The first H mod N buckets hold one channel more than the others."""
    _, size, offset = out
    same_values(size, H // N + (np.arange(N) < H % N), "size")
    same_values(offset, np.concatenate([[0], np.cumsum(size)[:-1]]), "offset")


@routing_bucket_assign.law
def buckets_are_runs_of_the_order(out: Any, order: Array, N: int) -> None:
    """Along the order the bucket never falls, and each bucket has as many channels as its size."""
    bucket_of, size, _ = out
    at_most(bucket_of[order][:-1], bucket_of[order][1:], "bucket along the order")
    same_values(np.bincount(bucket_of, minlength=N), size, "channels that name the bucket")


def bucket_over_its_capacity(M: int) -> dict[str, object]:
    """One channel more in bucket 0 than the table has slots."""
    return {"bucket_of": torch.zeros(M + 1, dtype=torch.int32)}


routing_channels_in_bucket = Contract(
    kernel=kernels.channels_in_bucket,
    oracles=[oracles.channels_in_bucket, oracles.channels_in_bucket_scalar],
    dims=CHANNELS | BUCKETS | {"M": sizes("(H+N-1)//N", "H+3", production=28)},
    args={
        "bucket_of": Tensor("H", dtypes=INDICES, domain=assignment("N", "M")),
        "block_channels": BLOCK,
    },
    outputs={"table": Tensor("N M", dtypes=INDICES)},
    raises=(
        (ValueError, "bucket 0", bucket_over_its_capacity),
        (ValueError, "bucket_of", bucket_beyond_the_last),
        *BAD_OWNERS,
    ),
)


@routing_channels_in_bucket.law
def table_and_bucket_of_determine_each_other(out: Array, bucket_of: Array) -> None:
    """Reading the table back gives every channel its bucket, once."""
    bucket, slot = np.nonzero(out >= 0)
    same_values(np.sort(out[bucket, slot]), np.arange(len(bucket_of)), "channels of the table")
    same_values(bucket_of[out[bucket, slot]], bucket, "bucket of the table's channels")


@routing_channels_in_bucket.law
def rows_ascend_and_then_hold_minus_one(out: Array, M: int) -> None:
    """In each row channels ascend and unused slots follow them."""
    filled = np.where(out < 0, np.iinfo(np.int32).max, out)
    same_values(np.sort(filled, axis=1), filled, "slot")
    same_values(np.where(out < 0, -1, 0), np.where(out < 0, out, 0), "unused slot")
