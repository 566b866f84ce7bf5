"""The controllers, written from their definitions twice, sharing nothing.

Shapes: averages (5, A) with the rows mean, diff_var, sample_var, last and seen; tau (H,), bucket_of
(H,), -1 for a channel in no bucket; table (N, M), -1 in unused slots; labels (K, B, N), NaN where
absent; counters (7, N) as `dead_buckets` says. The array forms take the math namespace ``m``,
or plain float32 where a rounding decides an integer; the others answer for one element.
"""

from trivet.oracles.controllers.arrays import (
    channel_activity,
    h_mag_per_bucket,
    heads_lr_scale,
    label_deviation,
    rate_scale,
    reset_channels,
    smoothness_lambda,
    tau_change,
    wiener_ema,
)
from trivet.oracles.controllers.elements import (
    channel_activity_scalar,
    h_mag_per_bucket_scalar,
    heads_lr_scale_scalar,
    label_deviation_scalar,
    rate_scale_scalar,
    reset_channels_scalar,
    smoothness_lambda_scalar,
    tau_change_scalar,
    wiener_ema_scalar,
)
from trivet.oracles.controllers.levels import (
    dead_buckets,
    dead_buckets_one_by_one,
    watch_buckets,
    watch_buckets_one_by_one,
)
from trivet.oracles.controllers.recovery import (
    channel_swap,
    channel_swap_by_logarithms,
    inherit_tau,
    inherit_tau_scalar,
)
from trivet.oracles.controllers.routines import swap_bucket, swap_bucket_scalar

__all__ = [
    "channel_activity",
    "channel_activity_scalar",
    "channel_swap",
    "channel_swap_by_logarithms",
    "dead_buckets",
    "dead_buckets_one_by_one",
    "h_mag_per_bucket",
    "h_mag_per_bucket_scalar",
    "heads_lr_scale",
    "heads_lr_scale_scalar",
    "inherit_tau",
    "inherit_tau_scalar",
    "label_deviation",
    "label_deviation_scalar",
    "rate_scale",
    "rate_scale_scalar",
    "reset_channels",
    "reset_channels_scalar",
    "smoothness_lambda",
    "smoothness_lambda_scalar",
    "swap_bucket",
    "swap_bucket_scalar",
    "tau_change",
    "tau_change_scalar",
    "watch_buckets",
    "watch_buckets_one_by_one",
    "wiener_ema",
    "wiener_ema_scalar",
]
