"""A document on the terminal."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from trivet.ci.comparison import print_comparison
from trivet.ci.document import Document

if TYPE_CHECKING:
    from trivet.properties._collect import Found

STYLES = {
    "green": "green",
    "killed": "green",
    "red": "bold red",
    "survived": "bold red",
    "wrong_law": "bold red",
    "not_judged": "yellow",
}
VERDICTS = (
    "killed",
    "survived",
    "waived",
    "crash",
    "timeout",
    "not_judged",
    "equivalent",
    "dead_lane",
    "duplicate",
    "invalid",
)
NO_MUTANT = "no mutant at all: an audit of nothing proves nothing"
STATES = ("green", "red", "not_judged", "elsewhere", "not_promised")
Gate = dict[str, Any]


def print_gates(document: Document, console: Console) -> None:
    """Print one row per contract and dtype, what was not judged and why, failures in full."""
    rows = _rows(document)
    table = _table("contract", "dtype", *(state.replace("_", " ") for state in STATES))
    for title in ("examples", "margin", "seconds"):
        table.add_column(title, justify="right")
    table.add_column("law of the margin")
    for (contract, dtype), gates in rows.items():
        table.add_row(contract, dtype, *_row(gates))
    console.print(table)
    _print_reasons("red", "vacuous", rows, console)
    for state in ("not_judged", "elsewhere", "not_promised"):
        _print_reasons(state, "", rows, console)
    _print_power(rows, console)
    _print_discards(rows, console)
    for gates in rows.values():
        for gate in gates:
            if gate["failure"] and not _is_vacuous(gate):
                _print_plain(console, "\n" + gate["failure"]["text"])
    states = [gate["verdict"] for gates in rows.values() for gate in gates]
    counts = ", ".join(f"{states.count(s)} {s}" for s in STATES if s in states)
    _print_verdict(document, f"{len(states)} gates: {counts}" if states else "no gates", console)


def print_faults(document: Document, unproved: Iterable[str], console: Console) -> None:
    """Print one row per fault, the laws no fault turned red, and the verdict."""
    faults = document["faults"]
    console.print(_fault_table(faults))
    _print_details(faults, console)
    names = sorted(unproved)
    if names:
        _print_plain(console, f"unproved here (no fault turned them red): {', '.join(names)}")
    killed = sum(fault["verdict"] == "killed" for fault in faults)
    _print_verdict(document, f"{killed} of {len(faults)} faults killed", console)


def _fault_table(faults: list[Document]) -> Table:
    table = _table("fault", "number", "verdict", "expected", "red", "conventional tests")
    for fault in faults:
        table.add_row(
            fault["name"],
            "" if fault["number"] is None else str(fault["number"]),
            f"[{STYLES.get(fault['verdict'], 'yellow')}]{fault['verdict']}[/]",
            ", ".join(fault["expected"]),
            _red(fault),
            {True: "see it", False: "pass"}.get(fault["conventional"], "not tried"),
        )
    return table


def _print_details(faults: list[Document], console: Console) -> None:
    for fault in faults:
        if fault["verdict"] != "killed" and fault["detail"]:
            _print_plain(console, f"\n{fault['name']}: {fault['detail']}")


def print_audit(document: Document, unproved: Iterable[str], console: Console) -> None:
    """Print the faults, one row of counts per contract, the diff of every survivor, the score."""
    if document["faults"]:
        console.print(_fault_table(document["faults"]))
        _print_details(document["faults"], console)
    mutants = document["mutants"]
    console.print(_mutant_table(mutants))
    for text in document["broken"]:
        _print_plain(console, f"\nthe original is red: {text}")
    for mutant in mutants:
        if mutant["verdict"] == "survived":
            _print_plain(console, f"\nsurvived: {mutant['id']} of {mutant['contract']}")
            _print_plain(console, mutant["diff"])
    print_comparison(document, console)
    print_controls(document["controls"], console)
    unjudged = Counter(m["detail"] for m in mutants if m["verdict"] == "not_judged")
    for reason, count in unjudged.most_common():
        _print_plain(console, f"\nnot judged, {count} mutants: {reason}")
    names = sorted(unproved)
    if names:
        _print_plain(console, f"\nunproved here (nothing turned them red): {', '.join(names)}")
    counts = Counter(mutant["verdict"] for mutant in mutants)
    told = ", ".join(f"{n} {verdict.replace('_', ' ')}" for verdict, n in counts.most_common())
    score = document["score"]
    if score["raw"] is not None:
        told += f"; score {score['raw']:.1%} raw"
        told += f", {score['net']:.1%} net" if score["net"] is not None else ""
    _print_verdict(document, f"{len(mutants)} mutants: {told}" if mutants else NO_MUTANT, console)


def print_controls(controls: list[Document], console: Console) -> None:
    """Print how many right kernels, written differently, stayed green, and each that did not."""
    if not controls:
        return
    kinds = len({control["rewrite"] for control in controls})
    counts = Counter(control["verdict"] for control in controls)
    told = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items())
    console.print(f"\ncontrols: {told}; {kinds} kinds of rewrite", highlight=False)
    for control in controls:
        if control["verdict"] == "red":
            place = f"{control['contract']}, {control['rewrite']} ({control['id']})"
            _print_plain(console, f"\nfalse alarm, or not the same kernel: {place}")
            _print_plain(console, f"{control['law']} breaks on {control['witness']}")
            _print_plain(console, control["diff"])
        elif control["verdict"] == "not_judged":
            _print_plain(
                console, f"  {control['contract']}, {control['rewrite']}: {control['detail']}"
            )


def _mutant_table(mutants: list[Document]) -> Table:
    present = {mutant["verdict"] for mutant in mutants}
    columns = [verdict for verdict in VERDICTS if verdict in present]
    table = _table("contract", *(verdict.replace("_", " ") for verdict in columns))
    table.add_column("conventional tests see", justify="right")
    for contract in dict.fromkeys(mutant["contract"] for mutant in mutants):
        mine = [mutant for mutant in mutants if mutant["contract"] == contract]
        counts = Counter(mutant["verdict"] for mutant in mine)
        cells = []
        for verdict in columns:
            style = STYLES.get(verdict)
            number = str(counts[verdict] or "·")
            cells.append(f"[{style}]{number}[/]" if counts[verdict] and style else number)
        tried = [m["conventional"] for m in mine if m["conventional"] is not None]
        table.add_row(contract, *cells, f"{sum(tried)} of {len(tried)}" if tried else "")
    return table


def _red(fault: Document) -> str:
    """The expected laws that turned red, and how many others did."""
    wanted = [law for law in fault["red"] if law in fault["expected"]]
    others = len(fault["red"]) - len(wanted)
    named = ["as expected"] if set(wanted) == set(fault["expected"]) else wanted
    return ", ".join([*named, f"{others} more"] if others else named)


def print_contracts(found: "Iterable[Found]", console: Console) -> None:
    """Print one row per contract."""
    from trivet.ci.gate import laws_of
    from trivet.ci.show import relative

    table = _table("contract", "dtypes", "laws", "faults", "where")
    for item in found:
        contract = item.contract
        table.add_row(
            item.name,
            " ".join(contract.dtypes()),
            str(len(laws_of(contract)) - len(contract.removed)),
            str(len(contract.faults)),
            f"{relative(item.path)}:{item.variable}",
        )
    console.print(table)


def _rows(document: Document) -> dict[tuple[str, str], list[Gate]]:
    rows: dict[tuple[str, str], list[Gate]] = {}
    for contract in document["contracts"]:
        for gate in contract["gates"]:
            rows.setdefault((contract["name"], gate["dtype"]), []).append(gate)
    return rows


def _row(gates: list[Gate]) -> list[str]:
    counts = {state: sum(gate["verdict"] == state for gate in gates) for state in STATES}
    cells = []
    for state, count in counts.items():
        style = STYLES.get(state)
        cells.append(f"[{style}]{count}[/]" if count and style else str(count or "·"))
    worst = max((g for g in gates if g["margin"] is not None), key=_margin, default=None)
    cells.append(str(max((gate["examples"] for gate in gates), default=0)))
    cells.append("" if worst is None else f"{worst['margin']:.3g}")
    cells.append(f"{sum(gate['seconds'] for gate in gates):.1f}")
    cells.append("" if worst is None else worst["law"])
    return cells


def _margin(gate: Gate) -> float:
    margin = float(gate["margin"])
    return margin if margin == margin else float("inf")


def _is_vacuous(gate: Gate) -> bool:
    """Whether the gate is red for having judged nothing: one cause, told once for all laws."""
    return (gate["reason"] or "").startswith("vacuous")


def _print_reasons(
    state: str, start: str, rows: dict[tuple[str, str], list[Gate]], console: Console
) -> None:
    """Print each reason that begins so once, with the laws and the contracts that share it."""
    places: dict[tuple[str, str], list[str]] = {}
    for (contract, dtype), gates in rows.items():
        for gate in gates:
            reason = gate["reason"] or "no reason given"
            if gate["verdict"] == state and reason.startswith(start):
                key = (reason, gate["law"])
                places.setdefault(key, []).append(f"{contract}[{dtype}]")
    laws: dict[tuple[str, str], list[str]] = {}
    for (reason, law), where in places.items():
        laws.setdefault((reason, _some(where)), []).append(law)
    if laws:
        console.print(f"\n{state.replace('_', ' ')}", style=STYLES.get(state, "bold"))
    for (reason, where_text), names in laws.items():
        _print_plain(console, f"  {_some(names)}: {reason} ({where_text})")


def _print_power(rows: dict[tuple[str, str], list[Gate]], console: Console) -> None:
    """Print which mistakes in a plan the inputs of a green gate would not have shown."""
    notes = [
        f"  {contract}[{dtype}]: {gate['reason']}"
        for (contract, dtype), gates in rows.items()
        for gate in gates
        if gate["verdict"] == "green" and (gate["reason"] or "").startswith("power: ")
        if "; not: " in gate["reason"]
    ]
    if notes:
        console.print("\nwhat the inputs would not show", style="bold")
    for note in notes:
        _print_plain(console, note)


def _print_discards(rows: dict[tuple[str, str], list[Gate]], console: Console) -> None:
    """Print how many inputs a green contract could not be judged on, and why."""
    told: dict[str, None] = {}
    for (contract, dtype), gates in rows.items():
        for gate in gates:
            parts = (gate["reason"] or "").split("; ") if gate["verdict"] == "green" else []
            for part in parts:
                if "inputs were discarded: " in part and gate["law"] == "matches_oracle":
                    told[f"  {contract}[{dtype}]: {part}"] = None
    if told:
        console.print("\ndiscarded", style="bold")
    for line in told:
        _print_plain(console, line)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _print_verdict(document: Document, summary: str, console: Console) -> None:
    verdict = document["verdict"]
    console.print(
        f"\n[{STYLES[verdict]}]{verdict.replace('_', ' ')}[/]: {summary}", highlight=False
    )


def _print_plain(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
