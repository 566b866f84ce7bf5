"""What a simulation wants to hold: what each kernel promises."""

from trivet.properties.decision.formulas import decision_smooth, decision_weighted
from trivet.properties.decision.streams import decision_follow

__all__ = ["decision_follow", "decision_smooth", "decision_weighted"]
