"""What a command says when it cannot do its work."""

import traceback
from pathlib import Path


class CannotJudgeError(Exception):
    """Nothing could be judged; the message is for people, the exit status 2."""


def place_of(error: BaseException | None) -> str:
    """Return the user's own line that raised ``error``, as " (file.py:3: text)", "" if unknown."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    package = Path(__file__).parent.parent
    for frame in reversed(frames):
        inside = package in Path(frame.filename).parents or frame.filename.startswith("<")
        if not inside and frame.line:
            return f" ({Path(frame.filename).name}:{frame.lineno}: {frame.line})"
    return ""
