"""The open trade of each simulation: its 64-byte record, and what closing it credits.

pack    the records from their fields
unpack  the fields of the records
credit  close trades: profit per lot to the horizon that led, record cleared
"""

from trivet.impl.trades.credit import credit
from trivet.impl.trades.layout import RECORD, STRIDE, records_of
from trivet.impl.trades.record import pack, unpack

__all__ = ["RECORD", "STRIDE", "credit", "pack", "records_of", "unpack"]
