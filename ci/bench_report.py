"""A bench on the terminal."""

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table

from trivet.ci.document import Document
from trivet.ci.report import STYLES

STATES = ("green", "red", "not_judged")
_SHOWN = 3


def print_bench(document: Document, console: Console, seconds: float) -> None:
    """Print one row per contract, one column per target, then what got worse and where.

    ``seconds`` is how long it took.
    """
    entries = document["entries"]
    targets = list(dict.fromkeys(entry["target"] for entry in entries if entry["target"]))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("contract", *targets, "HARD", "SOFT"):
        table.add_column(title, no_wrap=True)
    for group in _groups(entries).values():
        classes = Counter(change["class"] for entry in group for change in entry["changes"])
        cells = [_cell([e for e in group if e["target"] == target]) for target in targets]
        cells += [f"[bold red]{classes[k]}[/]" if classes[k] else "·" for k in ("HARD", "SOFT")]
        table.add_row(group[0]["contract"], *cells)
    console.print(table)
    for entry in entries:
        for line in change_lines(entry):
            _print_plain(console, line)
    _print_reasons(entries, console)
    counts = Counter(entry["verdict"] for entry in entries)
    told = ", ".join(f"{counts[s]} {s.replace('_', ' ')}" for s in STATES if counts[s])
    verdict = document["verdict"]
    spoken = f"[{STYLES[verdict]}]{verdict.replace('_', ' ')}[/]"
    summary = f"{len(entries)} entries: {told}" if entries else "no entries"
    console.print(f"\n{spoken}: {summary}, in {seconds:.0f} s", highlight=False)


def change_lines(entry: Document) -> Iterator[str]:
    """Yield the changes of one entry as people read them."""
    if not entry["changes"]:
        return
    yield f"\n{entry['contract']} on {entry['target']}, {entry['sample']}"
    for change in entry["changes"]:
        yield f"  {change['class']} {change['metric']}: {change['was']} -> {change['now']}"
        yield f"    {change['words']}"
        if change["line"]:
            yield f"    at {change['line']}"
    if entry["reason"]:
        yield f"  {entry['reason']}"


def _print_reasons(entries: Iterable[Document], console: Console) -> None:
    """Print each other reason once, with the entries that share it."""
    places: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry["reason"] and not entry["changes"]:
            key = (entry["verdict"], entry["reason"])
            places.setdefault(key, []).append(f"{entry['contract']} {entry['target']}".strip())
    for state in ("red", "not_judged", "green"):
        told = {reason: where for (verdict, reason), where in places.items() if verdict == state}
        if told:
            title = "notes" if state == "green" else state.replace("_", " ")
            console.print(f"\n{title}", style=STYLES.get(state, "bold"))
        for reason, where in told.items():
            _print_plain(console, f"  {reason} ({_some(where)})")


def _groups(entries: Iterable[Document]) -> dict[str, list[Document]]:
    groups: dict[str, list[Document]] = {}
    for entry in entries:
        groups.setdefault(entry["source"], []).append(entry)
    return groups


def _print_plain(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _cell(entries: list[Document]) -> str:
    """The verdicts of one contract on one target: how many of each."""
    counts = Counter(entry["verdict"] for entry in entries)
    told = [f"[{STYLES[s]}]{counts[s]} {s.replace('_', ' ')}[/]" for s in STATES if counts[s]]
    return ", ".join(told) or "·"


def _some(names: list[str]) -> str:
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(known[:_SHOWN]) + more
