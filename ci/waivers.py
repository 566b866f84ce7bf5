"""Waivers: survivors that somebody has looked at, with a reason, a proof and a last day.

A proof is a function that is called in the audit and raises where it does not hold, or the words
``performance only``, which hold for a mutant that returned the original's bits on every input.
"""

import datetime
import importlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trivet.ci.document import Document
from trivet.ci.errors import CannotJudgeError

PERFORMANCE = "performance only"


@dataclass(frozen=True, slots=True)
class Waiver:
    """One ``[[tool.trivet.waivers]]`` of pyproject.toml, or of the file that it names."""

    mutant: str
    reason: str
    proof: str
    expires: datetime.date


def waivers(project: Path = Path("pyproject.toml")) -> dict[str, Waiver]:
    """Return the waivers of a project that have not expired, by the mutant's id.

    Raises CannotJudgeError for one without mutant, reason, proof or expiry.
    """
    if not project.exists():
        return {}
    settings = tomllib.loads(project.read_text()).get("tool", {}).get("trivet", {})
    listed = settings.get("waivers", [])
    if isinstance(listed, str):
        listed = _of_file(project.parent / listed)
    found = [_read(entry) for entry in listed]
    today = datetime.date.today()
    return {waiver.mutant: waiver for waiver in found if waiver.expires >= today}


def _of_file(path: Path) -> list[Document]:
    try:
        listed: list[Document] = tomllib.loads(path.read_text())["waivers"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise CannotJudgeError(
            f"{path}, named by [tool.trivet] waivers: expected [[waivers]], found {error!r}"
        ) from error
    return listed


def _read(entry: Document) -> Waiver:
    try:
        waiver = Waiver(
            entry["mutant"], entry["reason"].strip(), entry["proof"].strip(), entry["expires"]
        )
    except (KeyError, AttributeError) as error:
        raise CannotJudgeError(
            "a waiver needs mutant, reason, proof and expires (a date), this one has "
            f"{sorted(entry)}"
        ) from error
    if not waiver.reason or not isinstance(waiver.expires, datetime.date):
        raise CannotJudgeError(f"the waiver of {waiver.mutant} needs a reason and a date")
    if waiver.proof != PERFORMANCE and ":" not in waiver.proof:
        raise CannotJudgeError(
            f"the waiver of {waiver.mutant}: proof {waiver.proof!r}: expected module:function or "
            f"{PERFORMANCE!r}"
        )
    return waiver


def waive(entries: list[Document], known: dict[str, Waiver] | None = None) -> list[Document]:
    """Return the entries: survivors as waived where a waiver's proof holds, told why where not."""
    found = waivers() if known is None else known
    return [
        _waived(entry, found[entry["id"]])
        if entry["verdict"] == "survived" and entry["id"] in found
        else entry
        for entry in entries
    ]


def _waived(entry: Document, waiver: Waiver) -> Document:
    broken = _broken(entry, waiver.proof)
    if broken:
        return {**entry, "detail": f"its waiver does not hold: {broken}"}
    return {**entry, "verdict": "waived", "detail": waiver.reason}


def _broken(entry: Document, proof: str) -> str:
    """Return why a proof does not hold; empty where it does."""
    if proof == PERFORMANCE:
        return "" if entry["alike"] else "it returned other results than the original"
    try:
        _function(proof)()
    except Exception as error:
        return f"{proof}: {type(error).__name__}: {error}"
    return ""


def _function(proof: str) -> Callable[[], Any]:
    module, _, name = proof.partition(":")
    found: Callable[[], Any] = getattr(importlib.import_module(module), name)
    return found
