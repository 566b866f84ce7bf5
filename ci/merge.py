"""Merging reports of parts into the report of the whole: shards of an audit, gates by contract."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trivet.ci.document import VERSION, Document, audit_document, gate_document
from trivet.ci.errors import CannotJudgeError
from trivet.ci.mutants import in_order, without_duplicates


def merge(paths: Sequence[Path]) -> Document:
    """Return the document that one run over all parts would have written.

    Raises CannotJudgeError for a file that is no report, reports of different commands, settings
    or versions, and shards of which one is missing.
    """
    documents = [_read(path) for path in paths]
    first = documents[0]
    for path, document in zip(paths, documents, strict=True):
        if document["environment"] != first["environment"]:
            raise CannotJudgeError(f"{path}: {_difference(first, document)}")
        if ("contracts" in document) != ("contracts" in first):
            raise CannotJudgeError(f"{path}: gates and audits cannot be merged")
    return _gates(documents) if "contracts" in first else _audits(documents)


def _read(path: Path) -> Document:
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CannotJudgeError(f"{path}: cannot be read: {error}") from error
    known = isinstance(document, dict) and {"contracts", "mutants"} & set(document)
    if not known or document.get("version") != VERSION:
        raise CannotJudgeError(
            f"{path}: expected a report of `trivet gate` or `trivet audit`, version {VERSION}"
        )
    found: Document = document
    return found


def _difference(first: Document, other: Document) -> str:
    one, two = first["environment"], other["environment"]
    name = next(key for key in one | two if one.get(key) != two.get(key))
    return f"{name} is {two.get(name)}, elsewhere {one.get(name)}: not one run"


def _gates(documents: Sequence[Document]) -> Document:
    contracts: dict[str, dict[tuple[str, str], Document]] = {}
    for entry in (entry for document in documents for entry in document["contracts"]):
        gates = contracts.setdefault(entry["name"], {})
        for gate in entry["gates"]:
            _add(gates, (gate["law"], gate["dtype"]), gate, f"{entry['name']} {gate['law']}")
    listed = ((name, list(gates.values())) for name, gates in contracts.items())
    return gate_document(documents[0]["environment"], listed)


def _audits(documents: Sequence[Document]) -> Document:
    part = _whole_part(documents)
    faults: dict[str, Document] = {}
    mutants: dict[tuple[str, str], Document] = {}
    controls: dict[tuple[str, str], Document] = {}
    for document in documents:
        for fault in document["faults"]:
            _add(faults, fault["name"], fault, fault["name"])
        for mutant in map(_undone, document["mutants"]):
            _add(mutants, (mutant["file"], mutant["id"]), mutant, mutant["id"])
        for control in document["controls"]:
            _add(controls, (control["contract"], control["id"]), control, control["id"])
    with_mutants = any(document["part"] is not None for document in documents)
    return audit_document(
        documents[0]["environment"],
        list(faults.values()),
        without_duplicates(in_order(list(mutants.values()))) if with_mutants else None,
        list(dict.fromkeys(text for document in documents for text in document["broken"])),
        in_order(list(controls.values())),
        unproved=set.intersection(*(set(document["unproved"]) for document in documents)),
        part=part,
    )


def _whole_part(documents: Sequence[Document]) -> Document | None:
    """Return what all shards together were asked for."""
    parts = [document["part"] for document in documents]
    if any(part is None for part in parts):
        return None
    asked = [{**part, "shard": None} for part in parts]
    if any(other != asked[0] for other in asked):
        raise CannotJudgeError("the audits were asked for different names or parts: not one run")
    counts = {part["shard"][1] for part in parts}
    count = max(counts)
    missing = sorted(set(range(1, count + 1)) - {part["shard"][0] for part in parts})
    if len(counts) > 1 or missing:
        told = f"shard {missing[0]}/{count} is missing" if missing else "shards of different counts"
        raise CannotJudgeError(f"{told}: merge needs every shard of one audit")
    return {**parts[0], "shard": [1, 1]}


def _undone(mutant: Document) -> Document:
    """Return a duplicate as it was before it was one: its first may stand in another shard."""
    if mutant["verdict"] != "duplicate":
        return mutant
    verdict = "survived" if mutant["killed_by"] is None else "killed"
    return {**mutant, "verdict": verdict, "detail": ""}


def _add(known: dict[Any, Document], key: object, entry: Document, name: str) -> None:
    """Take an entry in; of two, one that was judged."""
    before = known.get(key)
    if before is None or before["verdict"] == "not_judged":
        known[key] = entry
    elif entry["verdict"] not in (before["verdict"], "not_judged"):
        raise CannotJudgeError(
            f"{name} is {before['verdict']} in one report and {entry['verdict']} in another"
        )
