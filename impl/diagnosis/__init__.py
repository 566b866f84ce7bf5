"""Counters read once at the end: runs of a direction, convictions, hold times, outcomes.

count     runs and convictions over a stream of events
settle    hold times and outcomes of closed trades
read_out  the runs, the open ones closed
lines     the end-of-run lines of one simulation
"""

from trivet.impl.diagnosis.report import RunCounts, lines, read_out
from trivet.impl.diagnosis.streams import count, settle

__all__ = ["RunCounts", "count", "lines", "read_out", "settle"]
