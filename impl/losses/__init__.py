"""The training losses over all horizons, forward and backward.

bce_multi_horizon            mean cross entropy of each horizon's present labels
bce_multi_horizon_backward   its gradient
output_smoothness            weighted mean squared change of each horizon's probability
output_smoothness_backward   its gradient
BceMultiHorizon              bce_multi_horizon as an autograd function
OutputSmoothness             output_smoothness as an autograd function
"""

from trivet.impl.losses.cross_entropy import bce_multi_horizon, bce_multi_horizon_backward
from trivet.impl.losses.functions import BceMultiHorizon, OutputSmoothness
from trivet.impl.losses.smoothness import output_smoothness, output_smoothness_backward

__all__ = [
    "BceMultiHorizon",
    "OutputSmoothness",
    "bce_multi_horizon",
    "bce_multi_horizon_backward",
    "output_smoothness",
    "output_smoothness_backward",
]
