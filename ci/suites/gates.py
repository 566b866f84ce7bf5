"""The gates of other projects' operators, forward and backward, as a table.

    python -m trivet.ci.suites.gates liger fla
    python -m trivet.ci.suites.gates fla --only hgrn --table docs/operators.md

What is on record of an operator is not judged again; `--fresh` forgets it.
"""

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trivet.ci.suites.operators import Operator, operators
from trivet.ci.suites.projects import HOME, UnavailableError
from trivet.properties._engine import judge

_HEAD = """# Operators of other projects, forward and backward, through every law

`python -m trivet.ci.suites.gates liger fla --table docs/operators.md` wrote this page: the
projects' own kernels, unmodified, on the simulator with sanitizers, each judged by the laws at the
profile quick (20 examples). Values and gradients are compared with the definition in float64;
*margin* is the largest error divided by the derived bound.

| operator | green | red | not judged | elements | margin | s |
| --- | --- | --- | --- | --- | --- | --- |
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 where a law is red, 2 where a project cannot be had."""
    options = _parser().parse_args(arguments)
    try:
        found = [operator for name in options.projects for operator in operators(name)]
    except UnavailableError as error:
        print(f"not run: {error}", file=sys.stderr)
        return 2
    wanted = [o for o in found if not options.only or any(part in o.name for part in options.only)]
    for operator in wanted:
        if options.fresh or not _record(operator).exists():
            _record(operator).parent.mkdir(parents=True, exist_ok=True)
            _record(operator).write_text(json.dumps(_judged(operator)))
    rows = [json.loads(_record(o).read_text()) for o in found if _record(o).exists()]
    page = _HEAD + "\n".join(_row(row) for row in rows) + "\n" + _notes(rows)
    if options.table:
        Path(options.table).write_text(page)
    print(page)
    return 1 if any(row["red"] for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trivet.ci.suites.gates")
    parser.add_argument("projects", nargs="+", choices=["liger", "fla"])
    parser.add_argument("--only", action="append", default=[], help="part of an operator's name")
    parser.add_argument("--table", help="file to write the table to")
    parser.add_argument("--fresh", action="store_true", help="forget what is on record")
    return parser


def _record(operator: Operator) -> Path:
    return HOME / "operators" / f"{operator.name}.json"


def _judged(operator: Operator) -> dict[str, Any]:
    """Judge one operator by every law; failures are reported as they came, not shrunk."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdicts = judge(operator.contract, name=operator.name, shrink=False)
    states = Counter(verdict.state for verdict in verdicts)
    told = {v.law: v.reason or "" for v in verdicts if v.state == "not_judged"}
    told |= {v.law: v.failure.text for v in verdicts if v.failure is not None}
    return {
        "name": operator.name,
        "green": states["green"],
        "red": states["red"],
        "not_judged": states["not_judged"],
        "elements": max(verdict.elements for verdict in verdicts),
        "margin": max((v.margin for v in verdicts if v.margin is not None), default=0.0),
        "seconds": round(time.process_time() - start, 1),
        "told": told,
    }


def _row(row: dict[str, Any]) -> str:
    keys = ("name", "green", "red", "not_judged", "elements")
    numbers = " | ".join(str(row[key]) for key in keys)
    return f"| {numbers} | {row['margin']:.2g} | {row['seconds']} |"


def _notes(rows: Sequence[dict[str, Any]]) -> str:
    """Say what was red or could not be judged, law by law."""
    lines = [
        f"* {row['name']}, {law}: {' '.join(text.split())}"
        for row in rows
        for law, text in row["told"].items()
    ]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


if __name__ == "__main__":
    sys.exit(main())
