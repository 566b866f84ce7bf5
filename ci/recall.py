"""What each sanitizer sees of planted faults: ``python -m trivet.ci.recall``.

Mutators edit kernels that other people wrote (liger-kernel, flash-linear-attention) and the shipped
ones. Whether an edit is a fault is decided without the sanitizers: the edited kernel runs with them
off, tensors lie between guard zones filled in two ways, programs run in two orders, undefined lanes
are filled in two ways, and whatever then differs from the original's results, or in the zones or
the inputs, is seen. Of those edits each sanitizer should report every one; on the originals, none.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from trivet.ci import _recall_runs as runs
from trivet.ci.pool import Event, Note, run_jobs

_BOUNDS = ("load_mask_dropped", "store_mask_dropped", "bound_off_by_one", "bound_always_met")
SANITIZERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "out of bounds": (
        _BOUNDS,
        ("out_of_bounds", "int_wrap"),
    ),
    "uninitialised": (
        ("zeros_to_empty", "grid_short", "grid_floored", "program_always_first"),
        ("uninitialised", "unwritten"),
    ),
    "races": (
        ("atomic_in_two_steps", "atomic_to_store", "program_always_first", *_BOUNDS),
        ("race_write_write", "race_read_write", "same_value_write"),
    ),
    "masked lanes": (("load_other_dropped", *_BOUNDS), ("masked_lanes",)),
    "read-only": (("copy_dropped", "arguments_swapped"), ("read_only",)),
}
"""For each sanitizer the mutators that plant its faults, and the kinds it reports."""

SECONDS = 120.0


@dataclass
class Row:
    """One sanitizer's counts; ``unseen`` names the faults it missed."""

    planted: int = 0
    faults: int = 0
    found: int = 0
    harmless: int = 0
    unseen: list[str] = field(default_factory=list)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; returns 1 where a fault went unseen or an original was suspected."""
    parser = argparse.ArgumentParser(prog="trivet.ci.recall", description=__doc__)
    parser.add_argument("projects", nargs="*", default=["liger", "fla", "shipped"])
    parser.add_argument("--most", type=int, default=8, help="mutants of one mutator and operator")
    parser.add_argument("--sanitizer", choices=[*SANITIZERS], help="plant the faults of this only")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    result = measure(options.projects, options.most, options.workers, options.sanitizer)
    print(json.dumps(result, indent=2) if options.json else "\n".join(table(result)))
    return int(bool(result["suspected"] or any(row["unseen"] for row in result["rows"].values())))


def measure(
    projects: Sequence[str], most: int, workers: int, only: str | None = None
) -> dict[str, Any]:
    """Judge every planted edit of every operator, one operator a job.

    ``only`` names a sanitizer: the others' mutators are left out.
    """
    jobs = [(project, number) for project in projects for number in range(runs.count(project))]
    chosen = {name: each for name, each in SANITIZERS.items() if only in (None, name)}
    rows = {name: Row() for name in chosen}
    suspected: list[str] = []
    skipped: list[str] = []
    mutators = tuple({name for names, _ in chosen.values() for name in names})
    work = runs.Judge(mutators, most)
    for event in run_jobs(work, jobs, workers, "fork", quiet=SECONDS):
        if event.kind == "note":
            print(event.value, file=sys.stderr, flush=True)
        if event.ends:
            for outcome in _outcomes(event, jobs, skipped):
                _count(outcome, rows, suspected)
    found = {name: vars(row) for name, row in rows.items()}
    return {"version": 1, "rows": found, "suspected": suspected, "skipped": skipped}


def _outcomes(
    event: Event, jobs: Sequence[tuple[str, int]], skipped: list[str]
) -> Iterator[runs.Outcome]:
    if event.kind != "done":
        project, number = jobs[event.job]
        skipped.append(f"{project} {number}: {event.value}")
        return
    yield from event.value


def _count(outcome: runs.Outcome, rows: dict[str, Row], suspected: list[str]) -> None:
    if not outcome.mutator:
        for name in rows:
            kinds = SANITIZERS[name][1]
            found = [kind for kind in kinds if kind in outcome.kinds]
            suspected += [f"{outcome.label}: {k}" for k in found if name not in outcome.truths]
        return
    for name, row in rows.items():
        mutators, kinds = SANITIZERS[name]
        if outcome.mutator not in mutators:
            continue
        seen = bool(set(kinds) & set(outcome.kinds))
        is_fault = name in outcome.truths
        row.planted += 1
        row.faults += is_fault
        row.found += is_fault and seen
        row.harmless += seen and not is_fault
        if is_fault and not seen:
            row.unseen.append(outcome.label)


def table(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table, then what went unseen."""
    yield "| sanitizer | edits | faults | reported | recall | reported, no other trace |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, row in result["rows"].items():
        recall = f"{100 * row['found'] / row['faults']:.0f}%" if row["faults"] else "-"
        yield (
            f"| {name} | {row['planted']} | {row['faults']} | {row['found']} | {recall} | "
            f"{row['harmless']} |"
        )
    yield f"originals: {len(result['suspected'])} findings"
    yield from (f"* suspected {each}" for each in result["suspected"])
    for name, row in result["rows"].items():
        yield from (f"* unseen by {name}: {each}" for each in row["unseen"])
    reasons = Counter(result["skipped"])
    yield from (f"* not judged: {each}" for each in reasons)


__all__ = ["Note", "main", "measure", "table"]

if __name__ == "__main__":
    sys.exit(main())
