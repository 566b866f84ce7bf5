"""The controllers: what each of their kernels promises."""

from trivet.properties.controllers.averages import controllers_wiener_ema
from trivet.properties.controllers.buckets import (
    controllers_channel_activity,
    controllers_dead_buckets,
    controllers_h_mag_per_bucket,
    controllers_watch_buckets,
)
from trivet.properties.controllers.movement import (
    controllers_label_deviation,
    controllers_tau_change,
)
from trivet.properties.controllers.rates import controllers_heads_lr_scale, controllers_rate_scale
from trivet.properties.controllers.recovery import (
    controllers_channel_swap,
    controllers_inherit_tau,
    controllers_reset_channels,
    controllers_swap_bucket,
)
from trivet.properties.controllers.smoothness import controllers_smoothness_lambda

__all__ = [
    "controllers_channel_activity",
    "controllers_channel_swap",
    "controllers_dead_buckets",
    "controllers_h_mag_per_bucket",
    "controllers_heads_lr_scale",
    "controllers_inherit_tau",
    "controllers_label_deviation",
    "controllers_rate_scale",
    "controllers_reset_channels",
    "controllers_smoothness_lambda",
    "controllers_swap_bucket",
    "controllers_tau_change",
    "controllers_watch_buckets",
    "controllers_wiener_ema",
]
