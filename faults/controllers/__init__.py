"""Past bugs of the controllers."""

from trivet.faults.controllers import buckets, rates, recovery

__all__ = ["buckets", "rates", "recovery"]
