"""Rows of a bench that nothing has changed since: kept on disk with the files they came from.

A row follows from the source of everything that was imported to measure it, and from Triton's
settings; it is taken again while all those files are as they were. What was not measured is not
kept.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from trivet.ci.measuring import Part, Row
from trivet.simulator.cache import cache_folder, write_whole

Stamp = tuple[int, int]


def kept_rows(part: Part) -> list[Row] | None:
    """Return the rows of a part as they were measured, None where something has changed since."""
    kept = _read(_path(part))
    if not isinstance(kept, dict) or not _unchanged(str(kept.get("files"))):
        return None
    return [_row(plain) for plain in kept["rows"]]


def keep_rows(part: Part, rows: Sequence[Row]) -> None:
    """Keep the rows of a part that was measured whole in this process."""
    if not rows or any(row.reason for row in rows):
        return
    files = json.dumps({path: _stamp(path) for path in sorted(set(_imported(rows)))})
    name = hashlib.sha256(files.encode()).hexdigest()[:32]
    try:
        if not _files_path(name).exists():
            write_whole(_files_path(name), files)
        write_whole(_path(part), json.dumps({"files": name, "rows": [asdict(r) for r in rows]}))
    except OSError:
        return  # a folder that cannot be written only costs the next run time


def _imported(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the files that were imported here, and those of the kernels."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and os.path.isabs(path):
            yield path
    yield from (os.path.abspath(row.file) for row in rows if row.file)


def _stamp(path: str) -> Stamp:
    """When a file was written and how large it is; nothing where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@cache
def _unchanged(name: str) -> bool:
    files = _read(_files_path(name))
    return isinstance(files, dict) and all(
        list(_stamp(path)) == stamp for path, stamp in files.items()
    )


def _path(part: Part) -> Path:
    """The file of a part: by what is measured, where we stand, and Triton's settings."""
    settings = {key: value for key, value in os.environ.items() if key.startswith("TRITON_")}
    settings.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # what simulator._torch makes of none
    place = (os.getcwd(), sys.version, sorted(settings.items()))
    about = (part.name, part.source, part.dtype, *place)
    return cache_folder("rows") / f"{hashlib.sha256(repr(about).encode()).hexdigest()[:32]}.json"


def _files_path(name: str) -> Path:
    return cache_folder("rows") / f"files-{name}.json"


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _row(plain: dict[str, Any]) -> Row:
    from trivet.simulator.traffic import LineTraffic, Traffic

    traffic = plain.pop("traffic")
    if traffic is not None:
        lines = {place: LineTraffic(**moved) for place, moved in traffic.pop("lines").items()}
        traffic = Traffic(**traffic, lines=lines)
    return Row(**plain, traffic=traffic)
