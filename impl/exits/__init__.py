"""Giving an open trade up: composite of faded, disputed and decayed, stop, maximum hold.

levels_of  what open trades are judged by
judge      the same, and which rule fires first
"""

from trivet.impl.exits.rules import judge, levels_of

__all__ = ["judge", "levels_of"]
