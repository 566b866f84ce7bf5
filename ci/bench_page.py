"""The bench's section of the HTML page: what got worse first, then every metric of every entry."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from trivet.ci.document import Document

# The metrics that a table has room for, by the kind of target; the others stand below it.
_ARTIFACT = (
    "registers",
    "spills",
    "shared_bytes",
    "load_bits",
    "store_bits",
    "matrix_kind",
    "occupancy",
    "instructions",
    "bytes_read",
    "bytes_written",
)
_TRAFFIC = "traffic"


def bench_section(document: Document) -> dict[str, Any]:
    """Return what the template `bench.html` shows of a bench document.

    ``changed`` are the entries with changes, worst first; ``tables`` one table for each target,
    with its columns and rows; ``counts`` verdicts by name; ``reasons`` what was not judged and why.
    """
    entries: list[Document] = document.get("entries", [])
    changed = [entry for entry in entries if entry["changes"]]
    return {
        "counts": dict(Counter(entry["verdict"] for entry in entries)),
        "changed": sorted(changed, key=_severity),
        "tables": [_table(target, rows) for target, rows in _by_target(entries).items()],
        "reasons": _reasons(entries),
    }


def bench_template() -> str:
    """Return the text of the template that renders a section: a fragment, not a page."""
    return resources.files("trivet.ci").joinpath("bench.html").read_text(encoding="utf-8")


def _severity(entry: Document) -> tuple[int, str]:
    hard = sum(change["class"] == "HARD" for change in entry["changes"])
    return -hard, entry["contract"]


def _by_target(entries: Sequence[Document]) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for entry in entries:
        if entry["target"]:
            found.setdefault(entry["target"], []).append(entry)
    return found


def _table(target: str, entries: Sequence[Document]) -> dict[str, Any]:
    first: Mapping[str, Any] = next((e["metrics"] for e in entries if e["metrics"]), {})
    columns = [name for name in (first if target == _TRAFFIC else _ARTIFACT) if name in first]
    rows = [
        {
            "contract": entry["contract"],
            "sample": entry["sample"],
            "verdict": entry["verdict"],
            "worse": {change["metric"] for change in entry["changes"]},
            "cells": [entry["metrics"].get(name, "") for name in columns],
            "specialisation": entry["specialisation"],
        }
        for entry in entries
    ]
    return {"target": target, "columns": columns, "rows": rows}


def _reasons(entries: Sequence[Document]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry["reason"] and not entry["changes"]:
            place = f"{entry['contract']} {entry['target']}".strip()
            found.setdefault((entry["verdict"], entry["reason"]), []).append(place)
    return [
        {"verdict": verdict, "reason": reason, "places": list(dict.fromkeys(places))}
        for (verdict, reason), places in found.items()
    ]
