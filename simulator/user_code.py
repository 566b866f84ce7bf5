"""Where in the user's code a host operation was called."""

import linecache
import os
import sys

from trivet.simulator._torch import torch

_OURS = os.path.dirname(os.path.abspath(__file__))
_THEIRS = os.path.dirname(torch.__file__)


def user_line() -> tuple[str, str]:
    """Return the innermost line of the user's code, as ``file.py:17``, and its text."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_OURS, _THEIRS)):
        frame = frame.f_back
    path, number = frame.f_code.co_filename, frame.f_lineno
    return f"{os.path.basename(path)}:{number}", linecache.getline(path, number).strip()
