"""Waivers: survivors that somebody has looked at, with a reason and a day on which that ends."""

import datetime
import tomllib
from dataclasses import dataclass
from pathlib import Path

from trivet.ci.document import Document
from trivet.ci.errors import CannotJudgeError


@dataclass(frozen=True, slots=True)
class Waiver:
    """One ``[[tool.trivet.waivers]]`` of pyproject.toml."""

    mutant: str
    reason: str
    expires: datetime.date


def waivers(project: Path = Path("pyproject.toml")) -> dict[str, Waiver]:
    """Return the waivers of a project that have not expired, by the mutant's id.

    Raises CannotJudgeError for one without mutant, reason or expiry.
    """
    if not project.exists():
        return {}
    settings = tomllib.loads(project.read_text()).get("tool", {}).get("trivet", {})
    found = [_read(entry) for entry in settings.get("waivers", [])]
    today = datetime.date.today()
    return {waiver.mutant: waiver for waiver in found if waiver.expires >= today}


def _read(entry: Document) -> Waiver:
    try:
        waiver = Waiver(entry["mutant"], entry["reason"].strip(), entry["expires"])
    except (KeyError, AttributeError) as error:
        raise CannotJudgeError(
            f"a waiver needs mutant, reason and expires (a date), this one has {sorted(entry)}"
        ) from error
    if not waiver.reason or not isinstance(waiver.expires, datetime.date):
        raise CannotJudgeError(f"the waiver of {waiver.mutant} needs a reason and a date")
    return waiver


def waive(entries: list[Document], known: dict[str, Waiver] | None = None) -> list[Document]:
    """Return the entries, survivors with a waiver as waived."""
    found = waivers() if known is None else known
    return [
        {**entry, "verdict": "waived", "detail": found[entry["id"]].reason}
        if entry["verdict"] == "survived" and entry["id"] in found
        else entry
        for entry in entries
    ]
