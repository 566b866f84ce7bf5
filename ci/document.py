"""Machine output, version 1: one plain document that every report is made from."""

import json
import math
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from trivet.ci.errors import CannotJudgeError

VERSION = 1
# Verdicts of mutants that a gate noticed, and the largest share of the real ones to be waived.
NOTICED = ("killed", "timeout", "crash")
MOST_WAIVED = 0.03
EXIT_STATUS = {"green": 0, "red": 1, "not_judged": 2}
Document = dict[str, Any]


def environment(*, executor: str, profile: str, seed: int) -> Document:
    """Say what judged: versions, executor, number system, profile, seed, FP fusion."""
    return {
        "trivet": _version("trivet"),
        "python": platform.python_version(),
        "torch": _version("torch"),
        "triton": _version("triton"),
        "executor": executor,
        "arithmetic": "native" if executor == "simulator" else None,
        "profile": profile,
        "seed": seed,
        "fp_fusion": os.environ.get("TRITON_DEFAULT_FP_FUSION", "1"),
    }


def overall(verdicts: Iterable[str]) -> str:
    """Sum up gates: red before not_judged before green; nothing green is not judged.

    >>> overall(["green", "not_promised"]), overall(["green", "not_judged"]), overall([])
    ('green', 'not_judged', 'not_judged')
    """
    seen = set(verdicts)
    if "red" in seen:
        return "red"
    return "green" if "green" in seen and "not_judged" not in seen else "not_judged"


def gate_document(
    environment: Mapping[str, Any], contracts: Iterable[tuple[str, list[Document]]]
) -> Document:
    """Return the document of a gate run: per contract its name and its gates' entries."""
    entries: list[Document] = [{"name": name, "gates": gates} for name, gates in contracts]
    return {
        "version": VERSION,
        "verdict": overall(gate["verdict"] for entry in entries for gate in entry["gates"]),
        "environment": dict(environment),
        "contracts": entries,
    }


def audit_document(
    environment: Mapping[str, Any],
    faults: list[Document],
    mutants: list[Document] | None = None,
    broken: Sequence[str] = (),
    controls: Sequence[Document] = (),
    *,
    unproved: Iterable[str] = (),
    part: Document | None = None,
) -> Document:
    """Return the document of an audit: of hand-written faults, and of mutants unless None.

    ``broken`` tells where an original is red itself; ``controls`` are right kernels written
    differently, of which a red one is a false alarm; ``unproved`` are the laws that nothing turned
    red, which fails an audit of everything; ``part`` says what of everything was asked for.
    """
    document: Document = {
        "version": VERSION,
        "verdict": _of_faults(faults),
        "environment": dict(environment),
        "faults": faults,
        "mutants": mutants or [],
        "score": {"raw": None, "net": None},
        "broken": list(broken),
        "controls": list(controls),
        "unproved": sorted(unproved),
        "part": part,
    }
    if mutants is not None:
        verdicts = [_of_mutants(mutants, broken), *([_of_faults(faults)] if faults else [])]
        verdicts += [c["verdict"] for c in controls if c["verdict"] in ("red", "not_judged")]
        if part is not None and is_everything(part) and document["unproved"]:
            verdicts.append("red")
        document["verdict"] = overall(verdicts)
        document["score"] = score(mutants)
    return document


def is_everything(part: Document) -> bool:
    """Whether an audit was asked for every mutant of every contract there is."""
    return part == {"names": [], "sample": None, "since": None, "shard": [1, 1]}


def _of_faults(faults: list[Document]) -> str:
    verdicts = {fault["verdict"] for fault in faults}
    if verdicts & {"survived", "wrong_law"}:
        return "red"
    return "green" if verdicts == {"killed"} else "not_judged"


def _of_mutants(mutants: list[Document], broken: Sequence[str]) -> str:
    counts = Counter(mutant["verdict"] for mutant in mutants)
    valid = sum(counts[verdict] for verdict in (*NOTICED, "survived", "waived"))
    if broken or counts["survived"] or not mutants:
        return "red"
    if counts["waived"] > MOST_WAIVED * valid:
        return "red"
    unjudged = [m for m in mutants if m["verdict"] == "not_judged" and not m.get("needs_device")]
    return "not_judged" if unjudged or not valid else "green"


def score(mutants: list[Document]) -> Document:
    """Return which share of the real mutants some gate noticed.

    Invalid, equivalent, dead and duplicate ones are no bugs; in ``raw`` a waived one counts as
    survived, in ``net`` it does not count.

    >>> score([{"verdict": "killed"}, {"verdict": "waived"}, {"verdict": "invalid"}])
    {'raw': 0.5, 'net': 1.0}
    """
    counts = Counter(mutant["verdict"] for mutant in mutants)
    noticed = sum(counts[verdict] for verdict in NOTICED)
    real = noticed + counts["survived"]
    return {
        "raw": noticed / (real + counts["waived"]) if real + counts["waived"] else None,
        "net": noticed / real if real else None,
    }


def to_json(document: Document) -> str:
    """Return strict JSON: numbers that JSON lacks become "nan", "inf" and "-inf".

    >>> to_json({"margin": float("inf")})
    '{\\n "margin": "inf"\\n}'
    """
    return json.dumps(_plain(document), indent=1, allow_nan=False)


def require_writable(*reports: Path) -> None:
    """Raise CannotJudgeError for the first report that cannot be written: before the work."""
    for path in reports:
        try:
            if path.is_dir():
                raise IsADirectoryError("it is a folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            reason = error.strerror or error
            raise CannotJudgeError(f"the report {path} cannot be written: {reason}") from error


def write_text(path: Path, text: str) -> None:
    """Write a whole file or nothing: a killed run leaves no half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
