"""When the memory traffic of a launch got worse: exact counts, so any more is more."""

from collections.abc import Callable, Mapping

from trivet.simulator.compiled.metrics import Value
from trivet.simulator.compiled.rules import Change, Rule
from trivet.simulator.traffic import LineTraffic, Traffic

RULES = (
    Rule("read_bytes", "HARD", 1, "programs ask for more bytes"),
    Rule("written_bytes", "HARD", 1, "programs write more bytes"),
    Rule("updated_bytes", "HARD", 1, "more bytes are updated atomically, one program at a time"),
    Rule("read_sectors", "HARD", 1, "what is read lies in more sectors, and each is moved whole"),
    Rule("written_sectors", "HARD", 1, "what is written lies in more sectors"),
    Rule("wave_sectors", "HARD", 1, "programs that run together share less: the cache serves less"),
    Rule("wasted_lanes", "SOFT", 1, "more lanes are switched off by masks"),
)


def compare_traffic(was: Mapping[str, Value], now: Traffic) -> list[Change]:
    """Return every count that is worse in ``now`` than the values ``was``, HARD ones first.

    The line is the one most likely meant: for bytes the one that moves most, for sectors the one
    that makes least of those it touches.
    """
    counts = now.metrics()
    found = []
    for rule in RULES:
        if rule.metric in was and rule.broken(was[rule.metric], counts[rule.metric]):
            line = _line(now, rule.metric)
            before, after = was[rule.metric], counts[rule.metric]
            found.append(Change(rule.metric, before, after, rule.kind, line, rule.words))
    return sorted(found, key=lambda change: change.kind)


def _line(traffic: Traffic, metric: str) -> str:
    """The line behind ``metric``, empty where no line moves anything."""
    lines = {place: moved for place, moved in traffic.lines.items() if moved.sectors}
    if not lines:
        return ""
    by_sectors = metric in ("read_sectors", "written_sectors")
    rank: Callable[[LineTraffic], float] = _unused if by_sectors else _bytes
    return max(lines, key=lambda place: rank(lines[place]))


def _bytes(line: LineTraffic) -> float:
    return line.bytes


def _unused(line: LineTraffic) -> float:
    return line.sectors / max(1, line.bytes)
