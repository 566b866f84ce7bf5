"""The controllers' host side: what is kept between steps, and the transition itself.

TransitionClock   when to go over to buckets (A)
transition        sort, assign, widen, publish; skip weights and moments zeroed off bucket
RateScale         rate of each horizon's skip weights (C)
SmoothnessWeight  weight of each horizon's smoothness loss
DeadBuckets       three levels of recovery of buckets that fell silent (D)

Controller B is `routing.tau_clamp` after every optimiser step.
"""

from trivet.impl._controllers.clock import TransitionClock
from trivet.impl._controllers.dead import DeadBuckets, Recovery
from trivet.impl._controllers.rates import RateScale, SmoothnessWeight
from trivet.impl._controllers.transition import transition

__all__ = [
    "DeadBuckets",
    "RateScale",
    "Recovery",
    "SmoothnessWeight",
    "TransitionClock",
    "transition",
]
