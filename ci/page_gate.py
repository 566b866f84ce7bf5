"""What the page of a gate shows, from its document alone."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from trivet.ci.document import Document

STATES = ("green", "red", "not_judged", "elsewhere", "not_promised")


def gate_view(document: Document) -> dict[str, Any]:
    """Return the counts, failures, reasons, contracts, margins and costs of a gate's page."""
    gates = list(_gates(document))
    counts = _counts([gate["verdict"] for gate in gates])
    told = ", ".join(f"{n} {verdict.replace('_', ' ')}" for verdict, n in counts.items())
    return {
        "kind": "gate",
        "summary": f"{len(document['contracts'])} contracts, {len(gates)} gates: {told}",
        "verdicts": counts,
        "gates": len(gates),
        "examples": sum(gate["examples"] for gate in gates),
        "elements": sum(gate["elements"] for gate in gates),
        "seconds": sum(gate["seconds"] for gate in gates),
        "failures": _failures(gates),
        "unjudged": _unjudged(gates),
        "contracts": [_contract(entry) for entry in document["contracts"]],
        "margins": sorted(_with_margin(gates), key=_margin, reverse=True),
        "costs": _costs(gates),
    }


def _gates(document: Document) -> Iterator[Document]:
    for contract in document["contracts"]:
        for gate in contract["gates"]:
            yield {**gate, "contract": contract["name"]}


def _counts(verdicts: list[str]) -> dict[str, int]:
    counts = Counter(verdicts)
    return {state: counts[state] for state in STATES if counts[state]}


def _failures(gates: list[Document]) -> list[Document]:
    """Return the failures; gates of a contract that are vacuous for one reason share one."""
    found: dict[tuple[str, str], Document] = {}
    for gate in gates:
        if gate["verdict"] != "red":
            continue
        reason = gate["reason"] or ""
        text = gate["failure"]["text"] if gate["failure"] else reason
        key = (gate["contract"], reason if reason.startswith("vacuous") else f"{gate['law']}{text}")
        entry = found.setdefault(key, {**gate, "text": text, "count": 0})
        entry["count"] += 1
    return list(found.values())


def _unjudged(gates: list[Document]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for gate in gates:
        if gate["verdict"] == "not_judged":
            place = f"{gate['contract']} {gate['law']}[{gate['dtype']}]"
            reasons.setdefault(gate["reason"] or "no reason given", []).append(place)
    return reasons


def _contract(entry: Document) -> Document:
    gates = entry["gates"]
    counts = _counts([gate["verdict"] for gate in gates])
    return {
        **entry,
        "place": entry.get("source", ""),
        "counts": {"red": 0, **counts},
        "seconds": sum(gate["seconds"] for gate in gates),
    }


def _with_margin(gates: list[Document]) -> list[Document]:
    return [gate for gate in gates if gate["margin"]]


def _margin(gate: Document) -> float:
    margin = float(gate["margin"])
    return margin if margin == margin else float("inf")


def _costs(gates: list[Document]) -> list[Document]:
    seconds: Counter[str] = Counter()
    for gate in gates:
        seconds[gate["law"]] += gate["seconds"]
    most = max(seconds.values(), default=0) or 1
    counts = Counter(gate["law"] for gate in gates)
    return [
        {"law": law, "gates": counts[law], "seconds": spent, "share": spent / most}
        for law, spent in seconds.most_common()
    ]
