"""What somebody's tests see of an audit's mutants, beside what the gates saw."""

from rich.console import Console
from rich.table import Table

from trivet.ci.document import NOTICED, Document

MOST_SHOWN = 12
_COLUMNS = ("real mutants", "trivet sees", "the tests see", "only trivet", "only the tests")


def compared(mutants: list[Document]) -> list[Document]:
    """Return the mutants on which the tests were run."""
    return [mutant for mutant in mutants if mutant.get("tests") is not None]


def counts_of(mutants: list[Document]) -> tuple[int, int, int, int, int]:
    """Return how many mutants: all, that the gates see, that the tests see, that only one sees."""
    gates = [mutant["verdict"] in NOTICED for mutant in mutants]
    tests = [mutant["tests"] for mutant in mutants]
    pairs = list(zip(gates, tests, strict=True))
    return (
        len(pairs),
        sum(gates),
        sum(tests),
        pairs.count((True, False)),
        pairs.count((False, True)),
    )


def print_comparison(document: Document, console: Console) -> None:
    """Print both columns for each contract, and the mutants that only the gates saw."""
    if "tests" not in document:
        return
    tried = compared(document["mutants"])
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("contract", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    names = list(dict.fromkeys(mutant["contract"] for mutant in tried))
    for name in names:
        table.add_row(name, *_cells([m for m in tried if m["contract"] == name]))
    if len(names) > 1:
        table.add_row("together", *_cells(tried))
    console.print(f"\nbeside {document['tests']['command']}", markup=False, highlight=False)
    console.print(table)
    missed = [m for m in tried if m["verdict"] in NOTICED and not m["tests"]]
    if missed:
        console.print("\nonly trivet saw", style="bold")
    for mutant in missed[:MOST_SHOWN]:
        where = f"{mutant['operator']} at {mutant['file']}:{mutant['line']}"
        by = f": {mutant['killed_by']}, {mutant['witness']}" if mutant["killed_by"] else ""
        console.print(f"  {where}{by}", markup=False, highlight=False, soft_wrap=True)
    if len(missed) > MOST_SHOWN:
        console.print(f"  and {len(missed) - MOST_SHOWN} more: --json or --html has them all")


def _cells(mutants: list[Document]) -> list[str]:
    every, *rest = counts_of(mutants)
    shares = [f"{count} ({count / every:.0%})" if every else "0" for count in rest]
    return [str(every), *shares]
