"""When an open trade is given up: what each kernel promises."""

from trivet.properties.exits.rules import exits_judge, exits_levels

__all__ = ["exits_judge", "exits_levels"]
