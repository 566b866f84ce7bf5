"""The user's own line that raised an exception."""

import traceback
from pathlib import Path

_OURS = Path(__file__).parent.parent
_FOLDERS = (_OURS, *(child.resolve() for child in _OURS.iterdir() if child.is_dir()))


def place_of(error: BaseException | None) -> str:
    """Return the line that raised ``error``, as " (file.py:3: text)", "" where none is known.

    That is the innermost one outside of trivet and installed packages.
    """
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    for frame in reversed(frames):
        if frame.line and not _is_foreign(Path(frame.filename)):
            return f" ({Path(frame.filename).name}:{frame.lineno}: {frame.line})"
    return ""


def _is_foreign(path: Path) -> bool:
    inside = any(folder in path.parents for folder in _FOLDERS)
    return inside or str(path).startswith("<frozen") or "site-packages" in path.parts
