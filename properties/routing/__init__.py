"""Bucket routing: what each kernel promises."""

from trivet.properties.routing.assignment import (
    routing_bucket_assign,
    routing_channels_in_bucket,
    routing_tau_sort,
)
from trivet.properties.routing.ranges import (
    routing_bucket_iqr,
    routing_iqr_double_widen,
    routing_iqr_widen,
    routing_tau_clamp,
)
from trivet.properties.routing.weights import (
    routing_grad_mask_apply,
    routing_heads_compact,
    routing_mask_init,
    routing_zero_off_bucket,
)

__all__ = [
    "routing_bucket_assign",
    "routing_bucket_iqr",
    "routing_channels_in_bucket",
    "routing_grad_mask_apply",
    "routing_heads_compact",
    "routing_iqr_double_widen",
    "routing_iqr_widen",
    "routing_mask_init",
    "routing_tau_clamp",
    "routing_tau_sort",
    "routing_zero_off_bucket",
]
