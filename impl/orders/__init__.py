"""From targets to positions: resting orders, fills in order of arrival, integer books.

work  orders, fills and books over a stream of targets
"""

from trivet.impl.orders.streams import work

__all__ = ["work"]
