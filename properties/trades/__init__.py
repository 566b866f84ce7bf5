"""The open trade: what each kernel promises."""

from trivet.properties.trades.record import trades_credit, trades_pack, trades_unpack

__all__ = ["trades_credit", "trades_pack", "trades_unpack"]
