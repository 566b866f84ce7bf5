"""The training losses: what their forward and backward kernels promise."""

from trivet.properties.losses.cross_entropy import (
    losses_bce_multi_horizon,
    losses_bce_multi_horizon_backward,
)
from trivet.properties.losses.smoothness import (
    losses_output_smoothness,
    losses_output_smoothness_backward,
)

__all__ = [
    "losses_bce_multi_horizon",
    "losses_bce_multi_horizon_backward",
    "losses_output_smoothness",
    "losses_output_smoothness_backward",
]
