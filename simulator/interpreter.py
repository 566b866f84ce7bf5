"""The interpreter as an executor: Triton's own, in a process of its own.

Triton's patches leak, so the variable that switches it on is set in a child process that lives as
long as this one and runs nothing else.
"""

import atexit
import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from trivet.simulator._interpreter_child import Answer, Request, read, write
from trivet.simulator.executors import Run, normalised
from trivet.simulator.sources import Source, SourceError, parse_source, source_of
from trivet.simulator.transfer import Packing, unpack


class InterpreterError(RuntimeError):
    """The interpreter's process ended, or did not answer in time, while it ran a kernel."""


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """Runs host functions under TRITON_INTERPRET=1 in a child process.

    The kernel is found there by its module and name; one that has no such name by ``source``,
    ``path.py:variable`` or ``module:variable`` of a function or a contract. ``timeout`` seconds
    bound one call.
    """

    source: str = ""
    configuration: int = 0
    timeout: float = 300.0

    name = "interpreter"

    def variant(self, **options: Any) -> Self:
        """Return this executor with other options; those it cannot judge by are ignored."""
        return replace(self, **{k: v for k, v in options.items() if hasattr(self, k)})

    def run(
        self,
        kernel: Callable[..., object],
        args: Mapping[str, object],
        *,
        read_only: Collection[str] = (),
        unwritten: Collection[str] = (),
        whole_storage: Collection[str] = (),
    ) -> Run:
        """Call ``kernel(**args)`` in the child; tensors it writes are written here; see Executor.

        Which elements are read or written is not seen.
        """
        packing = Packing()
        try:
            request = Request(
                source=self._source(kernel),
                arguments=packing.pack(dict(args)),
                search_path=tuple(sys.path),
                configuration=self.configuration,
            )
            answer = _child().ask(request, self.timeout)
        except (SourceError, InterpreterError, TypeError) as error:
            return Run(error=error, launch_error=error)
        packing.take_back(answer.outputs.storages)
        outputs, _ = unpack(answer.outputs, packing.tensors)
        return Run(
            outputs=normalised(outputs),
            launches=list(answer.launches),
            error=answer.error,
            launch_error=answer.launch_error,
            configurations=answer.configurations,
        )

    def _source(self, kernel: Callable[..., object]) -> Source:
        try:
            return source_of(kernel)
        except SourceError:
            if not self.source:
                raise
            return parse_source(self.source)


class _Child:
    """One child process and the pipes to it."""

    def __init__(self) -> None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self.owner = os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trivet.simulator._interpreter_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path},
        )

    @property
    def usable(self) -> bool:
        """Whether the process still runs and belongs to this process, not to one it forked from."""
        return self.owner == os.getpid() and self.process.poll() is None

    def ask(self, request: Request, timeout: float) -> Answer:
        """Send one request and wait for its answer; raises InterpreterError if none comes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        what = request.source.variable
        try:
            write(self.process.stdin, request)
            if not select.select([self.process.stdout], [], [], timeout)[0]:
                self.close()
                raise InterpreterError(f"the interpreter ran {what} for more than {timeout:g} s")
            answer: Answer = read(self.process.stdout)
        except (EOFError, BrokenPipeError) as error:
            status = self.process.wait()
            self.close()
            how = f"by signal {-status}" if status < 0 else f"with status {status}"
            text = f"the interpreter's process ended {how} while it ran {what}"
            raise InterpreterError(text) from error
        return answer

    def close(self) -> None:
        """End the process if it is ours, and close the pipes to it."""
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()


_children: list[_Child] = []


def _child() -> _Child:
    """Return the living child of this process, started at first use and after a crash."""
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
