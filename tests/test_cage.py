"""The process of one mutant: whatever edited code does, it brings a verdict and harms nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trivet.ci.cage import EndedError, Limits, in_child

SHORT = Limits(processor=1, wall=20, memory=64 * 2**20)


def loop() -> None:
    while True:
        pass


def allocate() -> None:
    held = []
    while True:
        held.append(bytearray(2**24))
        time.sleep(0.02)


def write_out_of_bounds() -> None:
    import ctypes
    import faulthandler

    faulthandler.disable()  # pytest's would print the crash
    ctypes.memset(8, 0, 2**20)


def leave() -> None:
    os._exit(3)


def sleep() -> None:
    time.sleep(60)


@pytest.mark.parametrize(
    ("work", "limits", "kind", "text"),
    [
        (loop, SHORT, "late", "no verdict within 1 s of processor time"),
        (allocate, SHORT, "late", "it took 0.1 GiB"),
        (sleep, Limits(processor=9, wall=0.3), "late", "no verdict within 0.3 s"),
        (sleep, Limits(processor=9, idle=0.3), "late", "no work done for 0.3 s"),
        (write_out_of_bounds, SHORT, "lost", "ended by SIGSEGV"),
        (leave, SHORT, "lost", "ended with exit code 3"),
    ],
)
def test_what_ends_without_an_answer_says_how(
    work: Callable[[], None], limits: Limits, kind: str, text: str
) -> None:
    with pytest.raises(EndedError, match=text) as raised:
        in_child(work, limits)

    assert raised.value.kind == kind
    assert in_child(lambda: "the next one", SHORT) == "the next one"


def test_an_answer_of_any_size_comes_back() -> None:
    assert in_child(lambda: "x" * 2**22, SHORT) == "x" * 2**22


def test_an_exception_is_told() -> None:
    def fail() -> None:
        raise ValueError("wrong size")

    with pytest.raises(RuntimeError, match="ValueError: wrong size"):
        in_child(fail, SHORT)


def test_what_a_child_starts_ends_with_it(tmp_path: Path) -> None:
    def start() -> int:
        return subprocess.Popen(["sleep", "60"]).pid

    started = in_child(start, SHORT)

    assert _gone(started)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_child_ends_with_its_parent(how: signal.Signals) -> None:
    code = (
        "import os, sys, time\nfrom trivet.ci.cage import Limits, in_child\n"
        "def wait():\n    print(os.getpid(), flush=True)\n    time.sleep(60)\n"
        "in_child(wait, Limits())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(how)

    assert _gone(child)


def _gone(process: int) -> bool:
    """Whether a process ends within two seconds; one that nobody waits for is gone as well."""
    for _ in range(100):
        state: Any = Path(f"/proc/{process}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False
