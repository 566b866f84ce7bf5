"""Would the bench notice? Planted regressions and neutral edits, judged by its own rules.

``python -m trivet.ci.bench_self_test [NAME...] [--target T] [--sample N] [--seed S] [--json F]``.
Exits 0 where the rates are kept, 1 where not, 2 where nothing could be compiled.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from trivet.ci._pairs import Judged, Named, all_pairs, judge, named
from trivet.simulator.compiled import LOCKED, CompilerMissingError

# Regressions that must be caught of the 36, by target; false alarms allowed among 30 neutral edits.
CAUGHT = {"sm_90": 34, "gfx942": 32}
PLANTED = 36
ALARMS_IN_30 = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the pairs, print the table and the rates; see the module."""
    parser = argparse.ArgumentParser(
        prog="trivet.ci.bench_self_test", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="pairs; all without")
    parser.add_argument("--target", action="append", choices=LOCKED, help="all locked ones without")
    parser.add_argument("--sample", type=int, metavar="N", help="so many pairs, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="F", help="write the results as JSON")
    wanted = parser.parse_args(arguments)
    try:
        chosen = [named(name) for name in wanted.names] or _sampled(wanted.sample, wanted.seed)
        found = _judged(chosen, wanted.target or list(LOCKED))
    except (CompilerMissingError, ValueError) as error:
        print(f"bench_self_test: {error}", file=sys.stderr)
        return 2
    if wanted.json:
        wanted.json.write_text(json.dumps(document(found), indent=1) + "\n")
    print(rates_text(found))
    return int(any(missed(found)))


def _sampled(size: int | None, seed: int) -> list[Named]:
    pairs = all_pairs()
    if size is None:
        return pairs
    return random.Random(seed).sample(pairs, min(size, len(pairs)))


def _judged(pairs: Sequence[Named], targets: Sequence[str]) -> list[Judged]:
    """Judge and print as it goes: compiling takes seconds a pair."""
    console = Console(highlight=False, soft_wrap=True)
    found = []
    for pair in pairs:
        start = time.monotonic()
        row = [judge(pair, target) for target in targets]
        found += row
        grades = " ".join(f"{judged.target} {judged.grade:4}" for judged in row)
        number = pair.pair.number or pair.pair.kind.replace("_", " ")
        console.print(f"{number:9} {pair.name:32} {grades}  {time.monotonic() - start:5.1f}s")
        console.print(f"          {_reason(row)}", style="dim")
    return found


def _reason(row: Sequence[Judged]) -> str:
    """What caught the pair on its first target that caught it, in one line."""
    for judged in row:
        if judged.changes:
            change = judged.changes[0]
            more = f" and {len(judged.changes) - 1} more" if len(judged.changes) > 1 else ""
            return f"{change.metric} {change.was} -> {change.now}{more} ({judged.target})"
    return next((j.reason for j in row if j.reason), "no metric is worse")


def rates(found: Sequence[Judged]) -> dict[str, dict[str, tuple[int, int]]]:
    """By target and kind: how many pairs were flagged, and of how many."""
    table: dict[str, dict[str, tuple[int, int]]] = {}
    for judged in found:
        kinds = table.setdefault(judged.target, {})
        flagged, total = kinds.get(judged.named.pair.kind, (0, 0))
        kinds[judged.named.pair.kind] = (flagged + judged.flagged, total + 1)
    return table


def missed(found: Sequence[Judged]) -> list[str]:
    """The goals that are not reached, in words.

    A sample of the pairs is held to the same number of misses, since none of those may be new.
    """
    texts = []
    for target, kinds in rates(found).items():
        caught, planted = kinds.get("regression", (0, 0))
        allowed = PLANTED - CAUGHT[target]
        if planted - caught > allowed:
            texts.append(f"{target}: {planted - caught} regressions missed, {allowed} allowed")
        alarms, neutral = kinds.get("neutral", (0, 0))
        if alarms > max(1, ALARMS_IN_30 * neutral // 30):
            texts.append(f"{target}: {alarms} false alarms among {neutral} neutral edits")
    return texts


def rates_text(found: Sequence[Judged]) -> str:
    """The rates for people, then what was missed and what was a false alarm, by name."""
    words = {"regression": "planted caught", "held_out": "held out caught", "neutral": "alarms"}
    lines = []
    for target, kinds in rates(found).items():
        parts = [f"{words[k]} {kinds[k][0]} of {kinds[k][1]}" for k in words if k in kinds]
        lines.append(f"{target}: " + ", ".join(parts))
        mine = [judged for judged in found if judged.target == target]
        silent = [j for j in mine if not j.flagged and j.named.pair.kind != "neutral"]
        lines += [f"  missed {j.named.name}: {_excuse(j)}" for j in silent]
        alarms = [j for j in mine if j.flagged and j.named.pair.kind == "neutral"]
        lines += [f"  false alarm {j.named.name}: {_reason([j])}" for j in alarms]
    return "\n".join([*lines, *(f"not reached: {text}" for text in missed(found))])


def _excuse(judged: Judged) -> str:
    return judged.named.pair.blind.get(judged.target) or judged.reason or "nobody knows why"


def document(found: Sequence[Judged]) -> dict[str, object]:
    """The results as plain data: {version, rates, pairs: [{name, number, kind, target, ...}]}."""
    pairs = [
        {
            "name": judged.named.name,
            "number": judged.named.pair.number,
            "kind": judged.named.pair.kind,
            "target": judged.target,
            "grade": judged.grade,
            "reason": judged.reason,
            "changes": [
                {"metric": c.metric, "was": c.was, "now": c.now, "class": c.kind, "line": c.line}
                for c in judged.changes
            ],
        }
        for judged in found
    ]
    return {"version": 1, "rates": rates(found), "missed": missed(found), "pairs": pairs}


if __name__ == "__main__":
    raise SystemExit(main())
