"""From targets to positions: what each kernel promises."""

from trivet.properties.orders.streams import orders_work

__all__ = ["orders_work"]
