"""The folder of caches and witnesses, and files written whole or not at all."""

import os
import tempfile
from pathlib import Path


def cache_folder(kind: str = "") -> Path:
    """Return the folder of one kind of cache: under $TRIVET_CACHE, or .trivet where we stand."""
    return Path(os.environ.get("TRIVET_CACHE") or ".trivet") / kind


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` by atomic rename, so that no reader and no crash sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem[:8]}.")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(draft, path)
