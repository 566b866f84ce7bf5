"""What a simulation wants to hold: smoothed horizons, weighed, summed and rounded to lots.

smooth    the adaptive averages after one more observation
weighted  weights, the signal and its dominant horizon from smoothed probabilities
follow    signals, convictions and targets over a stream of probabilities
"""

from trivet.impl.decision.averages import smooth
from trivet.impl.decision.signals import weighted
from trivet.impl.decision.streams import follow

__all__ = ["follow", "smooth", "weighted"]
