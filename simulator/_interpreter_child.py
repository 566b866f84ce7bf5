"""The interpreter's own process: runs host functions with TRITON_INTERPRET=1 set from the start.

It reads one pickled request after the other from standard input and answers on what was standard
output; what kernels print goes to standard error.
"""

import os
import pickle
import struct
import sys
import traceback
from dataclasses import dataclass, replace
from typing import IO, Any

from trivet.simulator.sources import Source

_HEADER = struct.Struct("<Q")


@dataclass(frozen=True)
class Request:
    """One call: which function, the packed arguments, the search path for imports."""

    source: Source
    arguments: Any
    search_path: tuple[str, ...]
    configuration: int = 0


@dataclass(frozen=True)
class Answer:
    """What came of a call; ``outputs`` is packed after the arguments, whose bytes come first."""

    outputs: Any = None
    error: BaseException | None = None
    launch_error: Exception | None = None
    launches: tuple[Any, ...] = ()
    configurations: int = 1


def write(stream: IO[bytes], value: object) -> None:
    """Send one pickled value."""
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_HEADER.pack(len(content)))
    stream.write(content)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    """Receive one value; raises EOFError when the other side has gone."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    (size,) = _HEADER.unpack(header)
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return pickle.loads(content)


def main() -> None:
    """Answer requests until the other side closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        try:
            request = read(requests)
        except EOFError:
            return
        write(answers, _answer(request))


def _answer(request: Request) -> Answer:
    from trivet.simulator.launch import route
    from trivet.simulator.recorder import Recorder
    from trivet.simulator.transfer import Packing, unpack

    for folder in request.search_path:
        if folder not in sys.path:
            sys.path.append(folder)
    recorder = Recorder(configuration=request.configuration)
    packing = Packing()
    outputs: object = None
    error: BaseException | None = None
    try:
        arguments, held = unpack(request.arguments)
        packing.known(held)
        kernel = request.source.load()
        with route(recorder, device=False):
            outputs = kernel(**arguments)
    except (Exception, SystemExit) as raised:
        error = raised
    return Answer(
        outputs=packing.pack(outputs),
        error=_sendable(error),
        launch_error=_sendable(recorder.error),
        launches=tuple(_plain(launch) for launch in recorder.launches),
        configurations=recorder.configurations,
    )


def _plain(launch: Any) -> Any:
    """Drop from a launch what cannot be sent: the function, and constexprs that are no values."""
    simple = (type(None), bool, int, float, str)
    constants = {
        name: value if isinstance(value, simple) else str(value)
        for name, value in launch.constexprs.items()
    }
    options = {k: v for k, v in launch.options.items() if isinstance(v, simple)}
    return replace(launch, function=None, constexprs=constants, options=options)


def _sendable(error: Any) -> Any:
    """Return the exception itself if it survives pickling, else one that says the same."""
    if error is None:
        return None
    try:
        copied = pickle.loads(pickle.dumps(error))
    except Exception:
        copied = None
    if type(copied) is type(error):
        return error.with_traceback(None)
    lines = traceback.format_exception_only(error)
    return RuntimeError("".join(lines).strip())


if __name__ == "__main__":
    from trivet.simulator import _interpreter_child

    _interpreter_child.main()
