"""The compiler's child process, seen from outside: started at first use, replaced after a crash."""

import atexit
import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import IO

from trivet.simulator._interpreter_child import read, write
from trivet.simulator.compiled._child import Artifact, Task
from trivet.simulator.compiled.targets import CompilerError

TIMEOUT = 600.0
_TOLD = 400


class _Child:
    """One child process and the pipes to it; its standard error goes to a file."""

    def __init__(self) -> None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        environment = {**os.environ, "PYTHONPATH": path}
        environment.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
        environment.pop("TRITON_INTERPRET", None)
        self.owner = os.getpid()
        self.complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trivet.simulator.compiled._child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            env=environment,
        )

    @property
    def usable(self) -> bool:
        """Whether the process still runs and belongs to this process, not to one it forked from."""
        return self.owner == os.getpid() and self.process.poll() is None

    def ask(self, task: Task, what: str) -> Artifact:
        """Send one task and wait; a compiler that crashes gives an error.

        Raises CompilerError where it was killed or takes too long: that says nothing of the kernel.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            write(self.process.stdin, task)
            if not select.select([self.process.stdout], [], [], TIMEOUT)[0]:
                self.close()
                raise CompilerError(f"compiling {what} took more than {TIMEOUT:g} s")
            answer: Artifact = read(self.process.stdout)
        except (EOFError, BrokenPipeError):
            status = self.process.wait()
            how = f"by signal {-status}" if status < 0 else f"with status {status}"
            told = self._complaint()
            self.close()
            text = f"the compiler ended {how} on {what}{told}"
            if status in (-signal.SIGKILL, -signal.SIGTERM):
                raise CompilerError(text) from None
            return Artifact(error=text, crashed=True)
        return answer

    def _complaint(self) -> str:
        """Return the last thing the process said that is no stack trace."""
        self.complaints.seek(0)
        lines = self.complaints.read().decode(errors="replace").splitlines()
        said = [line.strip() for line in lines if "error" in line.lower() or "Assert" in line]
        return f": {said[-1][:_TOLD]}" if said else ""

    def close(self) -> None:
        """End the process if it is ours, and close the pipes to it."""
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.complaints):
            with suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()


_children: list[_Child] = []


def compile_task(task: Task, *, what: str) -> Artifact:
    """Compile in the child of this process; ``what`` names the kernel in errors."""
    return _child().ask(task, what)


def _child() -> _Child:
    if _children and _children[-1].usable:
        return _children[-1]
    if not _children:
        atexit.register(_close)
    _close()
    _children[:] = [_Child()]
    return _children[-1]


def _close() -> None:
    for child in _children:
        child.close()
