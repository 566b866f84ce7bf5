"""`python -m tests.killed KIND COUNT COMMAND...`: a program of ours that kills itself at a point.

KIND: `step`, before the COUNT-th step; `write`, inside the COUNT-th file, half of it written;
`rename`, when that file is whole and not yet in its place; `renamed`, right after.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from trivet.impl.__main__ import main
from trivet.impl._perception.trainer import Trainer


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _halve(descriptor: int) -> None:
    os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)


def _counted(function: Callable[..., Any], count: int, before: bool) -> Callable[..., Any]:
    """The function, and death around its `count`-th call."""
    calls = 0

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if before and calls == count:
            _die()
        result = function(*arguments, **options)
        if calls == count:
            _die()
        return result

    return call


def arm(kind: str, count: int) -> None:
    """Plant the point at which this process dies."""
    if kind == "step":
        Trainer.step = _counted(Trainer.step, count, before=True)  # type: ignore[method-assign]
    elif kind == "write":
        synced = os.fsync
        files = 0

        def fsync(descriptor: int) -> None:
            nonlocal files
            if os.path.isfile(f"/proc/self/fd/{descriptor}"):
                files += 1
                if files == count:
                    _halve(descriptor)
                    _die()
            synced(descriptor)

        os.fsync = fsync
    else:
        os.replace = _counted(os.replace, count, before=kind == "rename")


if __name__ == "__main__":
    arm(sys.argv[1], int(sys.argv[2]))
    sys.argv[1:] = sys.argv[3:]
    main()
