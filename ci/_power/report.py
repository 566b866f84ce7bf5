"""What the measurements say: losses, weak spots, tables, JSON."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trivet.ci._power.measure import ANY, DEPTH, GATE, OURS, Found, Share
from trivet.ci._rivals import RULES

# A rule that refuses this share of right kernels is no rival: nobody could keep it in CI.
_BEARABLE = 1e-3
# Faults that random inputs hide; every gate must draw inputs that show them.
WEAK_SPOTS = (
    ("dot n=1024", "x(1+1e-5)"),
    ("dot n=4096", "x(1+1e-5)"),
    ("bf16 dot n=1024", "x(1+1e-5)"),
    ("cfc expm1 plan", "1-exp(-x) for -expm1(-x)"),
)


@dataclass(frozen=True)
class Loss:
    """A cell where a rule with under 0.1% false alarms on the workload sees more than we do.

    gate: the share of gates that see the fault on some example they draw.
    """

    workload: str
    fault: str
    inputs: str
    column: str
    theirs: float
    ours: float
    gate: float

    @property
    def closed(self) -> bool:
        """Whether what a gate draws shows the fault at least as often."""
        return self.gate >= self.theirs

    def __str__(self) -> str:
        return (
            f"{self.workload}, {self.fault}, {self.inputs} inputs: {self.column} sees "
            f"{self.theirs:.2%}, we see {self.ours:.2%}; {self.gate:.0%} of our gates see it"
        )


def losses(found: Sequence[Found], ours: str = DEPTH) -> list[Loss]:
    """The cells where a bearable rival sees more than `ours`, and than our gates."""
    return [loss for loss in weaker_cells(found, ours) if not loss.closed]


def weaker_cells(found: Sequence[Found], ours: str = DEPTH) -> list[Loss]:
    """Every cell where `ours`, one of our columns, sees less than a bearable rival."""
    return [
        Loss(
            one.workload,
            fault,
            inputs,
            name,
            share.rate,
            seen[ours].rate,
            one.seen[fault, GATE][ours].rate,
        )
        for one in found
        for (fault, inputs), seen in one.seen.items()
        for name, share in seen.items()
        if name in RULES
        and one.alarms[name].rate < _BEARABLE
        and share.refused > seen[ours].refused
    ]


def weak_spots(found: Sequence[Found]) -> list[dict[str, Any]]:
    """How many gates see each fault that random inputs hide: `seen`, from 0 to 1."""
    rows = []
    for one in found:
        for workload, fault in WEAK_SPOTS:
            if workload == one.workload:
                least = min(one.seen[fault, GATE][name].rate for name in OURS)
                normal = one.seen[fault, "normal"][DEPTH].rate
                rows.append(
                    {
                        "workload": workload,
                        "fault": fault,
                        "seen": least,
                        "seen_on_normal": normal,
                    }
                )
    return rows


def false_alarms(found: Iterable[Found]) -> int:
    """Right results that one of our columns refuses."""
    return sum(one.alarms[column].refused for one in found for column in OURS)


def as_json(found: Sequence[Found], seed: int, seconds: float) -> dict[str, Any]:
    """Everything, for machines."""
    return {
        "version": 1,
        "seed": seed,
        "seconds": round(seconds, 1),
        "cases": sum(one.cases for one in found),
        "elements": sum(one.elements for one in found),
        "false_alarms": false_alarms(found),
        "losses": [asdict(loss) for loss in losses(found)],
        "closed_by_gates": [asdict(loss) for loss in weaker_cells(found) if loss.closed],
        "losses_without_declared_depth": [asdict(loss) for loss in losses(found, ANY)],
        "weak_spots": weak_spots(found),
        "alarms": [_alarms(one) for one in found],
        "detection": [row for one in found for row in _detection(one)],
        "rules": {name: rule.source for name, rule in RULES.items()},
    }


def _alarms(one: Found) -> dict[str, Any]:
    return {
        "workload": one.workload,
        "dtype": one.dtype,
        "cases": one.cases,
        "elements": one.elements,
        "undecided": one.undecided,
        "largest_ratio": one.ratio,
        "columns": {name: asdict(share) for name, share in one.alarms.items()},
        "places": [[*place, count] for place, count in one.places.items()],
    }


def _detection(one: Found) -> Iterator[dict[str, Any]]:
    for (fault, inputs), seen in one.seen.items():
        yield {
            "workload": one.workload,
            "dtype": one.dtype,
            "fault": fault,
            "inputs": inputs,
            "cases": seen["visible"].cases,
            "seen": {name: share.refused for name, share in seen.items()},
        }


def as_text(found: Sequence[Found]) -> str:
    """The tables in Markdown, then our losses."""
    groups: dict[str, list[Found]] = {}
    for one in found:
        groups.setdefault(_group(one), []).append(one)
    parts = ["### False alarms, % of right results refused", _alarm_table(found)]
    for title, members in groups.items():
        parts += [f"### Detection, % of wrong {title} refused", _detection_table(members)]
    cases = sum(one.cases for one in found)
    parts.append(f"{cases} results of right kernels, {false_alarms(found)} false alarms.")
    parts += [f"FALSE ALARM {place}: {n}" for one in found for place, n in one.places.items()]
    parts.append(_closing(found))
    return "\n\n".join(parts)


def _closing(found: Sequence[Found]) -> str:
    lines = [
        f"Weak spot: {row['workload']}, {row['fault']}: {row['seen_on_normal']:.0%} seen on normal "
        f"inputs, by {row['seen']:.0%} of gates."
        for row in weak_spots(found)
    ]
    lines += [f"LOSS {loss}" for loss in losses(found)] or ["Losses: none."]
    lines += [f"Closed by gates: {loss}" for loss in weaker_cells(found) if loss.closed]
    undeclared = losses(found, ANY)
    lines.append(f"Without a declared depth: {len(undeclared)} cells lost.")
    lines += [f"  {loss}" for loss in undeclared]
    return "\n".join(lines)


def _group(one: Found) -> str:
    return "gradients" if "gradcheck" in one.alarms else f"{one.dtype} results"


def _columns(members: Sequence[Found]) -> list[str]:
    rivals = [name for name in RULES if any(name in one.alarms for one in members)]
    return [*rivals, *OURS]


def _alarm_table(found: Sequence[Found]) -> str:
    columns = _columns(found)
    head = ["workload", "results", "elements", "undecided", *columns, "largest error / bound"]
    rows = [
        [
            one.workload,
            str(one.cases),
            f"{one.elements / 1e6:.2f}M",
            _percent(Share(one.undecided, one.elements)),
            *(_percent(one.alarms.get(name)) for name in columns),
            f"{max(one.ratio.values()):.2f}",
        ]
        for one in found
    ]
    return _table(head, rows)


def _detection_table(members: Sequence[Found]) -> str:
    columns = ["visible", *_columns(members)]
    rows = []
    for one in members:
        inputs = list(dict.fromkeys(kind for _, kind in one.seen))
        title = f"{one.workload}: {' / '.join(inputs)}"
        for fault in dict.fromkeys(name for name, _ in one.seen):
            shares = [[one.seen[fault, kind].get(name) for kind in inputs] for name in columns]
            cells = [" / ".join(_whole_percent(share) for share in row) for row in shares]
            rows.append([title, fault, *cells])
    return _table(["workload: inputs", "fault", *columns], rows)


def _whole_percent(share: Share | None) -> str:
    if share is None:
        return ""
    ends = share.refused in (0, share.cases)
    return f"{100 * share.rate:.{0 if ends or 0.01 <= share.rate < 0.99 else 1}f}"


def _percent(share: Share | None) -> str:
    if share is None or not share.cases:
        return ""
    percent = 100 * share.rate
    if share.refused in (0, share.cases):
        return f"{percent:.0f}"
    return f"{percent:.3f}" if percent < 1 else f"{percent:.1f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
