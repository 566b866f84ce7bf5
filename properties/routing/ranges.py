"""What each bucket allows its time constants: quartiles, ranges, and the clamp."""

from typing import Any

import numpy as np
import torch

from trivet import Choice, Contract, Scalar, Tensor, reals
from trivet.impl import routing as kernels
from trivet.oracles import routing as oracles
from trivet.properties._assignments import assignment
from trivet.properties._expect import at_most, same_bits
from trivet.properties.routing.inputs import (
    BAD_OWNERS,
    BAD_TAU,
    BLOCK,
    BUCKETS,
    CHANNELS,
    FEW,
    INDICES,
    LOWER,
    MISSHAPEN_TAU,
    OWNERS,
    PER_BUCKET,
    SECONDS,
    UPPER,
    Array,
    bucket_beyond_the_last,
    floats,
)

Rerun = Any

routing_bucket_iqr = Contract(
    kernel=kernels.bucket_iqr,
    oracles=[oracles.bucket_iqr, oracles.bucket_iqr_scalar],
    dims=CHANNELS | BUCKETS,
    args={
        "tau": SECONDS,
        "bucket_of": OWNERS,
        "block_channels": Choice(8, 32),
        "block_others": Choice(128, 32),
    },
    outputs={"q1": PER_BUCKET, "q3": PER_BUCKET},
    raises=(
        (ValueError, "bucket_of", bucket_beyond_the_last),
        *BAD_OWNERS,
        *BAD_TAU,
        *MISSHAPEN_TAU,
    ),
)


@routing_bucket_iqr.law
def quartiles_lie_among_their_buckets_own(out: Any, tau: Array, bucket_of: Array) -> None:
    """min <= q1 <= q3 <= max over the bucket's own channels; an empty bucket gives (0, +inf)."""
    q1, q3 = out
    for bucket in range(len(q1)):
        own = tau[bucket_of == bucket]
        low, high = (own.min(), own.max()) if own.size else (0.0, np.inf)
        rising = np.array([low, q1[bucket], q3[bucket], high])
        at_most(rising[:-1], rising[1:], f"min, q1, q3 of bucket {bucket}")


@routing_bucket_iqr.law
def equal_channels_are_their_own_quartiles(
    out: Any, tau: Array, bucket_of: Array, rerun: Rerun
) -> None:
    """When all channels of a bucket share one tau, both quartiles are that tau, bitwise."""
    first = tau[np.maximum(np.arange(len(out[0])), 0) % len(tau)]
    q1, q3 = rerun(tau=first[np.maximum(bucket_of, 0)])
    filled = np.isin(np.arange(len(q1)), bucket_of)
    same_bits(q1[filled], first[filled], "q1 of equal channels")
    same_bits(q3[filled], first[filled], "q3 of equal channels")


@routing_bucket_iqr.law
def quartiles_scale_by_powers_of_two(out: Any, tau: Array, rerun: Rerun) -> None:
    """Multiplying tau by four multiplies both quartiles by four, bitwise."""
    q1, q3 = rerun(tau=4 * tau)
    same_bits(q1, 4 * out[0], "q1 of 4 tau")
    same_bits(q3, 4 * out[1], "q3 of 4 tau")


routing_iqr_widen = Contract(
    kernel=kernels.iqr_widen,
    oracles=[oracles.iqr_widen, oracles.iqr_widen_scalar],
    dims=BUCKETS,
    args={"q1": LOWER, "q3": UPPER, "block": FEW},
    outputs={"lo": PER_BUCKET, "hi": PER_BUCKET},
    raises=(
        (ValueError, "q1", {"q1": floats(2.0), "q3": floats(1.0)}),
        (ValueError, "q1", {"q1": floats(float("nan")), "q3": floats(1.0)}),
        (ValueError, "q1", {"q1": floats(-1.0), "q3": floats(1.0)}),
        (TypeError, "q1", {"q1": floats(1.0).double(), "q3": floats(1.0).double()}),
        (ValueError, "q3", {"q1": floats(1.0), "q3": floats(1.0, 2.0)}),
    ),
)


@routing_iqr_widen.law
def ranges_hold_their_quartiles(out: Any, q1: Array, q3: Array) -> None:
    """lo <= q1 <= q3 <= hi."""
    at_most(out[0], q1, "lo")
    at_most(q3, out[1], "q3")


@routing_iqr_widen.law
def equal_quartiles_are_not_widened(q1: Array, rerun: Rerun) -> None:
    """Where q1 = q3 the range is that one point, bitwise."""
    filled = q1 > 0
    lo, hi = rerun(q3=np.where(filled, q1, np.inf))
    same_bits(lo[filled], q1[filled], "lo of equal quartiles")
    same_bits(hi[filled], q1[filled], "hi of equal quartiles")


@routing_iqr_widen.law
def ranges_scale_by_powers_of_two(out: Any, q1: Array, q3: Array, rerun: Rerun) -> None:
    """Multiplying both quartiles by four multiplies both ends by four, bitwise."""
    lo, hi = rerun(q1=4 * q1, q3=4 * q3)
    same_bits(lo, 4 * out[0], "lo of 4 q1, 4 q3")
    same_bits(hi, 4 * out[1], "hi of 4 q1, 4 q3")


def bucket_number_too_large(lo: torch.Tensor) -> dict[str, object]:
    """The bucket after the last."""
    return {"k": len(lo)}


routing_iqr_double_widen = Contract(
    kernel=kernels.iqr_double_widen,
    oracles=[oracles.iqr_double_widen, oracles.iqr_double_widen_scalar],
    dims=BUCKETS,
    args={"lo": LOWER, "hi": UPPER, "k": Scalar(int, 0, "N-1"), "block": FEW},
    outputs={"new_lo": PER_BUCKET, "new_hi": PER_BUCKET},
    raises=(
        (ValueError, "k", bucket_number_too_large),
        (ValueError, "k", {"k": -1}),
        (TypeError, "lo", {"lo": floats(1.0).double(), "hi": floats(1.0).double(), "k": 0}),
        (ValueError, "hi", {"lo": floats(1.0), "hi": floats(1.0, 2.0), "k": 0}),
    ),
)


@routing_iqr_double_widen.law
def other_buckets_keep_their_bits(out: Any, lo: Array, hi: Array, k: int) -> None:
    """Every entry but k is untouched."""
    others = np.arange(len(lo)) != k
    same_bits(out[0][others], lo[others], "lo of another bucket")
    same_bits(out[1][others], hi[others], "hi of another bucket")


def lo_above_hi(lo: torch.Tensor) -> dict[str, object]:
    """Ranges that hold nothing."""
    return {"lo": torch.full_like(lo, 2.0), "hi": torch.full_like(lo, 1.0)}


def clamp_to_a_bucket_beyond_the_last(
    bucket_of: torch.Tensor, lo: torch.Tensor
) -> dict[str, object]:
    """A bucket that has no range."""
    return {"bucket_of": torch.full_like(bucket_of, len(lo))}


routing_tau_clamp = Contract(
    kernel=kernels.tau_clamp,
    oracles=[oracles.tau_clamp, oracles.tau_clamp_scalar],
    dims=CHANNELS | BUCKETS,
    args={
        "tau": Tensor("H", domain=reals(1e-18, 1e18, nonfinite=True)),
        "bucket_of": Tensor("H", dtypes=INDICES, domain=assignment("N", "H")),
        "lo": LOWER,
        "hi": UPPER,
        "block_channels": BLOCK,
    },
    outputs={"clamped": Tensor("H")},
    raises=(
        (ValueError, "lo", lo_above_hi),
        (ValueError, "bucket_of", clamp_to_a_bucket_beyond_the_last),
        *BAD_OWNERS,
        *MISSHAPEN_TAU,
    ),
)


@routing_tau_clamp.law
def each_channel_lies_in_its_own_buckets_range(
    out: Array, bucket_of: Array, lo: Array, hi: Array
) -> None:
    """Indexed by original channel, a clamped tau lies in the range of that channel's bucket."""
    known = ~np.isnan(out)
    at_most(lo[bucket_of][known], out[known], "lo of the channel's bucket")
    at_most(out[known], hi[bucket_of][known], "clamped tau")


@routing_tau_clamp.law
def clamping_twice_is_clamping_once(out: Array, rerun: Rerun) -> None:
    """The clamp is idempotent, bitwise."""
    same_bits(rerun(tau=out), out, "tau clamped twice")


@routing_tau_clamp.law
def channels_within_their_range_keep_their_bits(
    out: Array, tau: Array, bucket_of: Array, lo: Array, hi: Array
) -> None:
    """What needs no clamp is untouched; NaN stays NaN."""
    within = ~((tau < lo[bucket_of]) | (tau > hi[bucket_of]))
    same_bits(out[within], tau[within], "tau within its range")
