"""Whole runs: every stem of the backtest in one launch over many events.

run       a range of events, state carried from launch to launch
replay    from the first event to the last, the state returned
Events, Settings, State   what a run is made of
"""

from trivet.impl._replay.run import replay, run
from trivet.impl._replay.state import COUNTS, DEFAULTS, SHAPES, Events, Settings, State

__all__ = ["COUNTS", "DEFAULTS", "SHAPES", "Events", "Settings", "State", "replay", "run"]
