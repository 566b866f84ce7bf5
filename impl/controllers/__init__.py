"""The controllers: what steers training by what it measures, one launch for each of their steps.

wiener_ema         the adaptive average that all of them use; what is not finite is passed over
tau_change         how far the time constants moved, by the mean change of their logarithm
label_deviation    spread of each horizon's labels in a window
rate_scale         one step of the learning rate's controller: averages, floor, rate of each horizon
heads_lr_scale     shorten each horizon's step of the skip weights by its rate
smoothness_lambda  weight of each horizon's smoothness loss
h_mag_per_bucket   mean activity of each bucket
channel_activity   mean activity of each channel
dead_buckets       one step or more of the dead buckets' controller: averages, counters, levels
channel_swap       exchange a bucket's least active channels with its healthier neighbour's
reset_channels     forget the skip weights and moments of channels that changed their bucket
watch_buckets      h_mag_per_bucket and dead_buckets, one step
swap_bucket        channel_swap and all that follows: resets, table, mask, packed weights
inherit_tau        give a bucket its healthier neighbour's time constants and range
"""

from trivet.impl.controllers.averages import wiener_ema
from trivet.impl.controllers.buckets import (
    channel_activity,
    dead_buckets,
    h_mag_per_bucket,
    watch_buckets,
)
from trivet.impl.controllers.inheritance import inherit_tau
from trivet.impl.controllers.labels import label_deviation
from trivet.impl.controllers.movement import tau_change
from trivet.impl.controllers.rates import heads_lr_scale, rate_scale
from trivet.impl.controllers.recovery import swap_bucket
from trivet.impl.controllers.smoothness import smoothness_lambda
from trivet.impl.controllers.swap import channel_swap, reset_channels

__all__ = [
    "channel_activity",
    "channel_swap",
    "dead_buckets",
    "h_mag_per_bucket",
    "heads_lr_scale",
    "inherit_tau",
    "label_deviation",
    "rate_scale",
    "reset_channels",
    "smoothness_lambda",
    "swap_bucket",
    "tau_change",
    "watch_buckets",
    "wiener_ema",
]
