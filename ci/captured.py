"""What a kernel prints while it is judged: kept, and told once with what is red."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trivet.ci.document import Document

MOST_LINES = 10
_LONGEST = 1 << 20


@contextmanager
def captured() -> Iterator[Callable[[], str]]:
    """Keep what this process writes to stdout and stderr; yields a function that returns it."""
    with tempfile.TemporaryFile() as file:
        kept = [os.dup(stream) for stream in (1, 2)]
        _flush()
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        text = b""
        try:
            yield lambda: text.decode(errors="replace")
        finally:
            _flush()
            for stream, saved in zip((1, 2), kept, strict=True):
                os.dup2(saved, stream)
                os.close(saved)
            file.seek(0)
            text = file.read(_LONGEST)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def with_output(gates: list[Document], printed: str) -> list[Document]:
    """Return the gates' entries, the first failure with what was printed: each line once."""
    lines = dict.fromkeys(_readable(line) for line in printed.splitlines() if line.strip())
    failed = next((gate for gate in gates if gate["failure"]), None)
    if not lines or failed is None:
        return gates
    shown = [f"    {line}" for line in list(lines)[:MOST_LINES]]
    more = len(lines) - MOST_LINES
    shown += [f"    and {more} other lines"] if more > 0 else []
    text = "\n".join([failed["failure"]["text"], "  printed meanwhile:", *shown])
    told = {**failed, "failure": {**failed["failure"], "text": text}}
    return [told if gate is failed else gate for gate in gates]


def _readable(line: str) -> str:
    """Return a line without the codes that would move a terminal's cursor or change its colours."""
    return "".join(each if each.isprintable() or each == "\t" else "·" for each in line)
