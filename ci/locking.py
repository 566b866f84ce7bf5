"""Rows against their lock or against another revision's rows: entries of the machine output."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trivet.ci.document import Document
from trivet.ci.errors import CannotJudgeError
from trivet.ci.measuring import TRAFFIC, Row

if TYPE_CHECKING:
    from trivet.properties._collect import Found
    from trivet.properties._locks import Lock, Locked
    from trivet.simulator.compiled import Change

_UPDATE = "run trivet bench --update and commit the lock"


def entry_of(
    row: Row, verdict: str, reason: str = "", changes: "Sequence[Change]" = ()
) -> Document:
    """Return one entry of the machine output, version 1."""
    return {
        "contract": row.contract,
        "source": row.source,
        "sample": row.sample,
        "kernel": row.kernel,
        "specialisation": row.specialisation,
        "target": row.target,
        "toolchain": row.toolchain,
        "metrics": dict(row.metrics),
        "changes": [
            {
                "metric": change.metric,
                "was": change.was,
                "now": change.now,
                "class": change.kind,
                "line": change.line,
                "words": change.words,
            }
            for change in changes
        ],
        "verdict": verdict,
        "reason": reason or None,
    }


def against_locks(found: "Sequence[Found]", rows: Sequence[Row]) -> list[Document]:
    """Judge every row by its contract's lock; a lock that is missing is not_judged."""
    locks = _locks(found)
    removed = _removed(found)
    entries = []
    for target, group in _grouped(rows):
        lock, why = locks[group[0].source], removed[group[0].source]
        entries += _judged(group, target, lock, why)
    return entries


def update_locks(found: "Sequence[Found]", rows: Sequence[Row]) -> list[Document]:
    """Lock what was measured, and judge it: a HARD regression keeps its old values and is red.

    A contract of which something could not be measured keeps its lock whole.
    """
    from trivet.properties._locks import Locked

    locks = _locks(found)
    removed = _removed(found)
    entries: list[Document] = []
    incomplete = {row.source for row in rows if row.reason}
    for target, group in _grouped(rows):
        lock, why = locks[group[0].source], removed[group[0].source]
        judged = _judged(group, target, lock, why)
        entries += [_acknowledged(entry, lock) for entry in judged]
        if not _is_locked(target) or why["perf_lock"] or group[0].source in incomplete:
            continue
        known = _paired(group, lock.of(target, group[0].toolchain) or {})
        hard = {e["sample"] for e in judged if any(c["class"] == "HARD" for c in e["changes"])}
        kept = {
            row.sample: known[row.sample]
            if row.sample in hard
            else Locked(row.specialisation, row.metrics)
            for row in group
            if not row.error
        }
        lock.replace(target, group[0].toolchain, kept)
    for source, lock in locks.items():
        if lock.entries and source not in incomplete:
            lock.write()
    return entries


def _acknowledged(entry: Document, lock: "Lock") -> Document:
    classes = {change["class"] for change in entry["changes"]}
    if "HARD" in classes:
        reason = (
            f"a HARD metric is worse, and --update does not lock it: to accept it, delete "
            f"{entry['sample']!r} from {lock.path} and run --update again"
        )
        return {**entry, "reason": reason}
    if classes == {"SOFT"}:
        return {**entry, "verdict": "green", "reason": f"acknowledged in {lock.path}"}
    if entry["verdict"] == "not_judged" and entry["metrics"]:
        return {**entry, "verdict": "green", "reason": f"locked in {lock.path}"}
    return entry


def against_base(rows: Sequence[Row], base: Sequence[Row], revision: str) -> list[Document]:
    """Compare every row with the same sample of another revision; only HARD changes are red."""
    from trivet.properties._locks import Locked

    known: dict[tuple[str, str], dict[str, Locked]] = defaultdict(dict)
    for row in base:
        if row.metrics:
            known[row.source, row.target][row.sample] = Locked(row.specialisation, row.metrics)
    entries = []
    for target, group in _grouped(rows):
        if not _is_locked(target):
            entries += [_built(row) for row in group]
            continue
        pairs = _paired(group, known[group[0].source, target])
        entries += [_against_revision(row, pairs.get(row.sample), revision) for row in group]
    return entries


def _against_revision(row: Row, was: "Locked | None", revision: str) -> Document:
    if row.reason:
        return entry_of(row, "not_judged", row.reason)
    if was is None:
        told = f"{revision} has no such launch"
        reason = f"it does not compile: {row.error}" if row.error else told
        return entry_of(row, "red" if row.error else "green", reason)
    changes = changes_of(row, was)
    hard = any(change.kind == "HARD" for change in changes)
    return entry_of(row, "red" if hard else "green", _respecialised(row, was), changes)


def changes_of(row: Row, was: "Locked") -> "list[Change]":
    """Return what got worse since ``was``."""
    from trivet.simulator.compiled import Measurement, compare
    from trivet.simulator.traffic_rules import compare_traffic

    if row.traffic is not None:
        return compare_traffic(was.metrics, row.traffic)
    now = Measurement(
        row.kernel, row.specialisation, row.target, row.metrics, row.lines, error=row.error
    )
    return compare(was.metrics, now)


def _judged(
    group: Sequence[Row], target: str, lock: "Lock", removed: Mapping[str, str]
) -> list[Document]:
    """Judge the rows of one contract and target."""
    law = "perf_lock" if _is_locked(target) else "compiles"
    if removed[law]:
        return [entry_of(row, "green", f"removed: {removed[law]}") for row in group]
    if not _is_locked(target):
        return [_built(row) for row in group]
    known = lock.of(target, group[0].toolchain)
    pairs = _paired(group, known or {})
    return [_against_lock(row, pairs.get(row.sample), lock, known is not None) for row in group]


def _built(row: Row) -> Document:
    """Judge a target that is compiled for only."""
    if row.reason:
        return entry_of(row, "not_judged", row.reason)
    if row.error:
        return entry_of(row, "red", f"it does not compile: {row.error}")
    return entry_of(row, "green")


def _against_lock(row: Row, was: "Locked | None", lock: "Lock", known: bool) -> Document:
    if row.reason:
        return entry_of(row, "not_judged", row.reason)
    if was is None and row.error:
        return entry_of(row, "red", f"it does not compile: {row.error}")
    if was is None:
        return entry_of(row, "not_judged", _unlocked(row, lock, known))
    changes = changes_of(row, was)
    soft = bool(changes) and all(change.kind == "SOFT" for change in changes)
    notes = [
        f"SOFT: {_UPDATE} in the same commit to accept it" if soft else "",
        _respecialised(row, was),
        "" if changes else _gained(row, was),
    ]
    reason = "; ".join(note for note in notes if note)
    return entry_of(row, "red" if changes else "green", reason, changes)


def _unlocked(row: Row, lock: "Lock", known: bool) -> str:
    others = lock.toolchains(row.target)
    if not lock.entries:
        return f"{lock.path} does not exist yet: {_UPDATE}"
    if known:
        return f"{lock.path} has no {row.sample!r}: {_UPDATE}"
    if others:
        return (
            f"{lock.path} is locked by {' and by '.join(others)}; this is {row.toolchain}: "
            f"{_UPDATE}, in a commit of its own"
        )
    return f"{lock.path} has no {row.target}: {_UPDATE}"


def _respecialised(row: Row, was: "Locked") -> str:
    """Say how a launch is specialised otherwise than it was."""
    before, after = was.specialisation.split(), row.specialisation.split()
    gone = [word for word in before if word not in after]
    new = [word for word in after if word not in before]
    return f"specialised otherwise: {' '.join(gone)} -> {' '.join(new)}" if gone or new else ""


def _is_locked(target: str) -> bool:
    from trivet.simulator.compiled import LOCKED

    return target in (*LOCKED, TRAFFIC)


def _paired(rows: Sequence[Row], known: "Mapping[str, Locked]") -> "dict[str, Locked]":
    """Find each row's old values: by its name, else those of a kernel that was only renamed.

    A call that launches as many unknown kernels as it lacks known ones has renamed them.
    """
    pairs = {row.sample: known[row.sample] for row in rows if row.sample in known}
    for call in dict.fromkeys(_call(row.sample) for row in rows):
        new = [r.sample for r in rows if _call(r.sample) == call and r.sample not in known]
        gone = [name for name in known if _call(name) == call and name not in pairs]
        if len(new) == len(gone):
            pairs.update({name: known[old] for name, old in zip(new, gone, strict=True)})
    return pairs


def _call(sample: str) -> str:
    """The dtype and the sizes of a sample's name."""
    return " ".join(sample.split()[:2])


def _grouped(rows: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    """Rows of one contract and target together, in order of first appearance."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.source, row.target].append(row)
    return [(target, group) for (_, target), group in groups.items()]


def _locks(found: "Sequence[Found]") -> "dict[str, Lock]":
    from trivet.properties._locks import LockError, lock_of

    try:
        return {item.source: lock_of(item.name, item.source) for item in found}
    except LockError as error:
        raise CannotJudgeError(str(error)) from error


def _removed(found: "Sequence[Found]") -> dict[str, dict[str, str]]:
    laws = ("perf_lock", "compiles")
    return {
        item.source: {law: item.contract.removed.get(law, "") for law in laws} for item in found
    }


def _gained(row: Row, was: "Locked") -> str:
    """Say which metrics of an artifact are better than locked."""
    if row.traffic is not None or row.error:
        return ""
    turned = replace(row, metrics=was.metrics)
    gained = [change.metric for change in changes_of(turned, replace(was, metrics=row.metrics))]
    if not gained:
        return ""
    return f"better than locked ({', '.join(gained)}): trivet bench --update keeps the gain"
