"""Where in the user's code a host operation was called."""

import linecache
import os
import sys
from types import FrameType

import numpy as np

from trivet.simulator._torch import torch

_OURS = os.path.dirname(os.path.abspath(__file__))
_THEIRS = tuple(os.path.dirname(os.path.abspath(str(m.__file__))) for m in (torch, np))


def user_line(frame: FrameType | None = None) -> tuple[str, str]:
    """Return the innermost line of the user's code, as ``file.py:17``, and its text.

    That is the user's code in or outside of ``frame``, which is the caller's unless given.
    """
    frame = frame or sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_OURS, *_THEIRS)):
        frame = frame.f_back
    path, number = frame.f_code.co_filename, frame.f_lineno
    return f"{os.path.basename(path)}:{number}", linecache.getline(path, number).strip()
