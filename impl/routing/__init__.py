"""Bucket routing: which channel serves which horizon, and what each bucket allows.

Weights stay in original channel order for ever; a bucket is a filter over channels.

    tau_sort            order (H,) of the channels by time constant
    bucket_assign       bucket_of (H,), size and offset (N,) from the order
    channels_in_bucket  table (N, M): the channels of each bucket
    bucket_iqr          quartiles of tau within each bucket
    iqr_widen           the range lo, hi of each bucket
    iqr_double_widen    one bucket's range, doubled
    tau_clamp           every channel into its own bucket's range
    heads_compact       each bucket's own skip weights, packed
    mask_init           one where a channel belongs to the horizon
    zero_off_bucket     +0.0 everywhere else, in place
    grad_mask_apply     gradients of the other horizons' channels cut off
    RoutingRecord       all of it, immutable and versioned, as consumers get it
"""

from trivet.impl.routing.assignment import bucket_assign, channels_in_bucket, tau_sort
from trivet.impl.routing.ranges import bucket_iqr, iqr_double_widen, iqr_widen, tau_clamp
from trivet.impl.routing.record import RoutingRecord
from trivet.impl.routing.weights import grad_mask_apply, heads_compact, mask_init, zero_off_bucket

__all__ = [
    "RoutingRecord",
    "bucket_assign",
    "bucket_iqr",
    "channels_in_bucket",
    "grad_mask_apply",
    "heads_compact",
    "iqr_double_widen",
    "iqr_widen",
    "mask_init",
    "tau_clamp",
    "tau_sort",
    "zero_off_bucket",
]
