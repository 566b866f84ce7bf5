"""Files that are there whole, or as they were."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO


def written(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place, then rename it; a kill or a crash leaves the old one."""
    draft = path.with_name(f"{path.name}.draft")
    try:
        with open(draft, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _keep_name(path.parent)


def _keep_name(folder: Path) -> None:
    """Make the new name as lasting as the bytes."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
