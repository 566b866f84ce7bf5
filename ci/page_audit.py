"""What the page of an audit shows: its document, and the source of the files it names."""

from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from trivet.ci.document import NOTICED, Document

ORDER = (
    "survived",
    "wrong_law",
    "killed",
    "timeout",
    "crash",
    "waived",
    "not_judged",
    "equivalent",
    "dead_lane",
    "duplicate",
    "invalid",
)
# Lines without a mutant that are shown beside one; longer runs are left out.
_AROUND = 3


def audit_view(document: Document) -> dict[str, Any]:
    """Return the lists, columns, matrix, laws, costs and files of an audit's page."""
    mutants = [_whole(entry) for entry in document["mutants"]]
    counts = _ordered(Counter(entry["verdict"] for entry in mutants))
    told = ", ".join(f"{n} {verdict.replace('_', ' ')}" for verdict, n in counts.items())
    faults = document["faults"]
    spent = [sum(entry["seconds"].values()) for entry in mutants if entry["seconds"]]
    laws = _laws(mutants, faults)
    return {
        "kind": "audit",
        "summary": f"{len(mutants)} mutants: {told}" if mutants else f"{len(faults)} past bugs",
        "verdicts": counts or _ordered(Counter(fault["verdict"] for fault in faults)),
        "mutants": len(mutants),
        "faults_killed": sum(fault["verdict"] == "killed" for fault in faults),
        "controls_green": sum(c["verdict"] == "green" for c in document["controls"]),
        "seconds": median(spent) if spent else None,
        "columns": _columns(document, mutants),
        "lists": _lists(mutants),
        "controls": _controls(document["controls"]),
        "matrix": _matrix(mutants),
        "laws": laws,
        "laws_told": _told(laws),
        "costs": _costs(mutants),
        "files": _files(mutants),
    }


def _whole(entry: Document) -> Document:
    """Return a mutant's entry with every field that the page reads."""
    optional = {"tests": None, "conventional": None, "seconds": None, "function": None, "red": None}
    return {**optional, **entry}


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return {verdict: counts[verdict] for verdict in ORDER if counts[verdict]}


def _lists(mutants: list[Document]) -> list[tuple[str, str, list[Document]]]:
    def those(*verdicts: str) -> list[Document]:
        return [entry for entry in mutants if entry["verdict"] in verdicts]

    only = [m for m in mutants if m["verdict"] in NOTICED and m["tests"] is False]
    return [
        (
            "Survivors",
            "No law turned red on these: a gap in the gates, or a mutant that is no bug.",
            those("survived"),
        ),
        ("Not judged", "These should have been judged and could not be.", those("not_judged")),
        ("Waived", "Somebody looked at these and said why they may survive.", those("waived")),
        ("Only trivet saw these", "Your tests pass on every one of them.", only),
    ]


def _columns(document: Document, mutants: list[Document]) -> list[Document]:
    """Return the share of mutants that the gates and other tests see, where others were run."""
    columns = []
    key = "tests" if "tests" in document else "conventional"
    tried = [m for m in mutants if m[key] is not None]
    if tried:
        name = document["tests"]["command"] if key == "tests" else "conventional tests"
        gates = [m["verdict"] in NOTICED for m in tried]
        seen = [bool(m[key]) for m in tried]
        pairs = list(zip(gates, seen, strict=True))
        every = len(tried)
        columns = [
            {"name": "trivet", "seen": sum(gates), "only": pairs.count((True, False))},
            {"name": name, "seen": sum(seen), "only": pairs.count((False, True))},
        ]
        columns = [{**column, "every": every} for column in columns]
    return columns


def _controls(controls: list[Document]) -> dict[str, list[str]]:
    green: dict[str, list[str]] = {}
    for control in controls:
        kinds = green.setdefault(control["contract"], [])
        if control["verdict"] == "green":
            kinds.append(control["rewrite"].replace("_", " "))
    return green


def _matrix(mutants: list[Document]) -> Document:
    killed = [m for m in mutants if m["killed_by"]]
    cells = Counter((m["contract"], m["killed_by"]) for m in killed)
    laws = [law for law, _ in Counter(m["killed_by"] for m in killed).most_common()]
    rows = [
        {"contract": contract, "counts": [cells[contract, law] for law in laws]}
        for contract in dict.fromkeys(m["contract"] for m in killed)
    ]
    return {"laws": laws, "rows": rows, "most": max(cells.values(), default=1)}


def _laws(mutants: list[Document], faults: list[Document]) -> list[Document]:
    kills = Counter(m["killed_by"] for m in mutants if m["killed_by"])
    alone = Counter(m["killed_by"] for m in mutants if m["red"] and len(m["red"]) == 1)
    known = any(m["red"] for m in mutants)
    red = Counter(law for fault in faults for law in fault["red"])
    most = max(kills.values(), default=1)
    names = [*(law for law, _ in kills.most_common()), *sorted(red.keys() - kills.keys())]
    return [
        {
            "name": law,
            "kills": kills[law],
            "share": kills[law] / most,
            "alone": alone[law] if known else None,
            "faults": red[law],
        }
        for law in names
    ]


def _told(laws: list[Document]) -> str:
    never = [law["name"] for law in laws if law["alone"] == 0]
    if not never:
        return "Every law here killed some mutant, or turned red on a past bug."
    return (
        "Never alone, another law was red on the same inputs each time: " + ", ".join(never) + "."
    )


def _costs(mutants: list[Document]) -> list[Document]:
    seconds: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for entry in mutants:
        for phase, spent in (entry["seconds"] or {}).items():
            seconds[phase] += spent
            counts[phase] += 1
    kills = Counter(m.get("phase") for m in mutants if m["verdict"] in NOTICED)
    most = max(seconds.values(), default=0) or 1
    return [
        {
            "name": phase,
            "mutants": counts[phase],
            "kills": kills[phase],
            "seconds": spent,
            "share": spent / most,
        }
        for phase, spent in seconds.most_common()
    ]


def _files(mutants: list[Document]) -> list[Document]:
    """Return each file, its mutants at their lines."""
    files = []
    for path in sorted({m["file"] for m in mutants}):
        mine = [m for m in mutants if m["file"] == path]
        texts = _texts(path, max(m["line"] for m in mine))
        counts = _ordered(Counter(m["verdict"] for m in mine))
        files.append({"path": path, "counts": counts, "lines": _lines(texts, mine)})
    return sorted(files, key=lambda file: -file["counts"].get("survived", 0))


def _texts(path: str, last: int) -> list[str]:
    """Return the lines of a file; where it cannot be read, so many lines that say so."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ["(this file was not there when the page was made)"] * last


def _lines(texts: list[str], mutants: list[Document]) -> list[Document]:
    at: dict[int, list[Document]] = {}
    for entry in mutants:
        at.setdefault(entry["line"], []).append(entry)
    near = {line + step for line in at for step in range(-_AROUND, _AROUND + 1)}
    lines: list[Document] = []
    for number, text in enumerate(texts, 1):
        if number in near:
            found = sorted(at.get(number, []), key=lambda entry: ORDER.index(entry["verdict"]))
            lines.append({"number": number, "text": text, "mutants": found, "skipped": 0})
        elif lines and lines[-1]["skipped"]:
            lines[-1]["skipped"] += 1
        else:
            lines.append({"skipped": 1})
    return lines
