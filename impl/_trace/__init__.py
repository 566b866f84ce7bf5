"""The host's side of the per-step trace: a thread that drains a ring to a file of JSON lines."""

from trivet.impl._trace.drainer import Drained, Drainer
from trivet.impl._trace.schemas import Schema, smoothness_lambda

__all__ = ["Drained", "Drainer", "Schema", "smoothness_lambda"]
