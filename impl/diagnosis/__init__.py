"""Counters read once at the end: runs of a direction, convictions, hold times, outcomes.

count   runs and convictions over a stream of events
settle  hold times and outcomes of closed trades
"""

from trivet.impl.diagnosis.streams import count, settle

__all__ = ["count", "settle"]
