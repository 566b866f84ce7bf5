"""The open trade, and whole runs: what each kernel promises."""

from trivet.properties.trades.record import trades_credit, trades_pack, trades_unpack
from trivet.properties.trades.replay import trades_replay

__all__ = ["trades_credit", "trades_pack", "trades_replay", "trades_unpack"]
