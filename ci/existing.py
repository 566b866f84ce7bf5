"""The same mutants against tests that somebody has already: what they see, and only trivet saw.

A warm worker holds torch, Triton and pytest; each mutant is planted and tested in a fork of it, so
that one test run leaves nothing to the next. Without a GPU launches run on the simulator.
"""

import importlib
import importlib.util
import os
import resource
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.ci import _planted, sandbox
from trivet.ci.document import NOTICED, Document
from trivet.ci.errors import CannotJudgeError
from trivet.ci.pool import MOST_MEMORY, Event, Note, run_jobs
from trivet.ci.progress import Progress

if TYPE_CHECKING:
    from trivet.faults._mutants import Mutant
    from trivet.properties._collect import Found

REAL = (*NOTICED, "survived")
_PYTEST = ("pytest", "py.test")
_NO_TEST = 5
_TIMES_LONGER = 10
_LEAST_SECONDS = 30.0
_FIRST_LIMIT = 1800.0
_SHOWN_LINES = 15


@dataclass(frozen=True, slots=True)
class Planted:
    """One job of a worker: the whole text of a file, None for the tests as they are."""

    label: str
    path: str = ""
    text: str | None = None
    limit: float = _FIRST_LIMIT


@dataclass
class Suite:
    """Runs a command's tests in forks of a warm worker; spawned, so it knows no user module.

    ``modules`` are installed ones that the tests import, so that no fork has to do it again.
    """

    command: str
    home: Path
    root: Path
    modules: Sequence[str] = ()
    warm: bool = False

    def __call__(self, job: Planted, note: Note) -> Document:
        """Return how the tests ended: status, seconds, launches, whether the file was loaded."""
        if not self.warm:
            _warm_up(self.root, self.modules)
            self.warm = True
        note("running")
        folder = Path(tempfile.mkdtemp(dir=self.root))
        started = time.monotonic()
        child = os.fork()
        if not child:
            _in_child(self, job, folder)
        status = _wait(child, started + job.limit)
        output = folder / "output"
        return {
            "status": status,
            "seconds": time.monotonic() - started,
            "launches": sum(int(each.read_text() or 0) for each in folder.glob("launches-*")),
            "loaded": (folder / "loaded").exists(),
            "output": output.read_text(errors="replace") if job.text is None else "",
            "modules": _words(folder / "modules"),
        }


def _words(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def _warm_up(root: Path, modules: Sequence[str]) -> None:
    import torch

    torch.set_num_threads(1)
    import pytest  # noqa: F401

    import trivet.simulator.executors
    import trivet.simulator.frontend  # noqa: F401

    sandbox.enter(root)
    if not torch.cuda.is_available():
        from triton.runtime.driver import driver

        from trivet.simulator.device import SimulatedDriver

        driver.set_active(SimulatedDriver())
    for name in modules:
        # One that cannot be imported by itself is left to the tests.
        with suppress(Exception):
            importlib.import_module(name)


def _in_child(suite: Suite, job: Planted, folder: Path) -> None:
    """Run the tests and end this process with their status, whatever happens."""
    status = 1
    try:
        _redirect(folder / "output")
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        _route(folder)
        finder = None
        if job.text is not None:
            finder = _planted.plant(job.path, job.text, (folder / "loaded").touch)
        status = _planted.run_suite(shlex.split(suite.command), suite.home, finder)
        if job.text is None:
            (folder / "modules").write_text(" ".join(_planted.installed_modules()))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _redirect(path: Path) -> None:
    """Write what this process prints into a file; the sandbox has silenced Python's streams."""
    with open(path, "wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _route(folder: Path) -> None:
    """Send launches to the simulator where there is no GPU; undefined lanes hold zeros there."""
    import torch

    if torch.cuda.is_available():
        return
    from trivet.ci import run

    os.environ[run.REPORT] = str(folder)
    run.stand_in()
    run.install(poison="zero")


def _wait(child: int, deadline: float) -> int | None:
    """Return a child's exit status, negative for a signal, None where its time was up."""
    pause = 0.002
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class ExistingTests:
    """A command that runs somebody's tests; run once as they are when it is made.

    Raises CannotJudgeError for a command that is neither pytest nor Python, and where the tests
    fail as they are, are none, or launch no kernel.
    """

    def __init__(self, command: str, workers: int, progress: Progress) -> None:
        _require(command)
        self._command, self._workers, self._progress = command, workers, progress
        self._modules: Sequence[str] = ()
        [outcome] = self._run([Planted("the tests as they are")])
        if outcome.get("status") == _NO_TEST:
            raise CannotJudgeError(f"--tests {command!r}: no test was found")
        if outcome.get("status") != 0:
            ended = f"they ended with status {outcome.get('status')} and said nothing"
            told = outcome.get("output") or outcome.get("detail", ended)
            shown = "\n".join(told.splitlines()[-_SHOWN_LINES:])
            raise CannotJudgeError(f"--tests {command!r}: the tests fail as they are:\n{shown}")
        if not outcome["launches"] and not _has_gpu():
            raise CannotJudgeError(f"--tests {command!r}: they pass and launch no Triton kernel")
        self._seconds = float(outcome["seconds"])
        self._modules = outcome["modules"]

    def judge(self, document: Document, found: "Sequence[Found]") -> None:
        """Run the tests on every real mutant of an audit, and write into it what they saw.

        Each mutant gets ``tests``: True where they fail on it, False where they pass, None where
        they never load its file or were not asked.
        """
        from trivet.faults._mutants import mutants_of

        asked = {entry["id"] for entry in document["mutants"] if entry["verdict"] in REAL}
        known = {m.id: m for item in found for m in mutants_of(item.contract) if m.id in asked}
        limit = max(_LEAST_SECONDS, _TIMES_LONGER * self._seconds)
        outcomes = self._run([_job(mutant, limit) for mutant in known.values()])
        seen = {name: _seen(each) for name, each in zip(known, outcomes, strict=True)}
        for entry in document["mutants"]:
            entry["tests"] = seen.get(entry["id"]) if entry["verdict"] in REAL else None
        document["tests"] = {"command": self._command, "seconds": self._seconds}

    def _run(self, jobs: Sequence[Planted]) -> list[Document]:
        """Return how each run of the tests ended; after Ctrl-C what is missing says so."""
        outcomes: dict[int, Document] = {}
        with tempfile.TemporaryDirectory(prefix="trivet-tests-") as root:
            suite = Suite(self._command, Path.cwd(), Path(root), self._modules)
            events = run_jobs(suite, jobs, self._workers, "spawn")
            try:
                with self._progress.of(len(jobs)):
                    for event in events:
                        _take(event, jobs, outcomes, self._progress)
            except KeyboardInterrupt:
                self._progress.interrupted()
        missing = {"detail": "interrupted before its verdict"}
        return [outcomes.get(number, missing) for number in range(len(jobs))]


def _require(command: str) -> None:
    """Refuse, before any work, a command that cannot be run in a worker."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CannotJudgeError(f"--tests {command!r}: {error}") from error
    program = Path(words[0]).name if words else ""
    if program not in (*_PYTEST, *_planted.PYTHONS) or len(words) < 2:
        raise CannotJudgeError(f"--tests {command!r}: expected 'pytest PATH ...' or 'python ...'")
    if importlib.util.find_spec("pytest") is None:
        raise CannotJudgeError("--tests needs pytest, which is not installed")


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _job(mutant: "Mutant", limit: float) -> Planted:
    before = Path(mutant.path).read_text()
    text = before[: mutant.start] + mutant.replacement + before[mutant.end :]
    label = f"tests on {mutant.operator} {mutant.line}"
    return Planted(label, os.path.realpath(mutant.path), text, limit)


def _seen(outcome: Document) -> bool | None:
    if "status" not in outcome or not outcome["loaded"]:
        return None
    return bool(outcome["status"] != 0)


def _take(
    event: Event, jobs: Sequence[Planted], outcomes: dict[int, Document], progress: Progress
) -> None:
    label = jobs[event.job].label
    if event.kind == "note":
        progress.note(label, event.value)
        return
    outcome: dict[str, Any] = event.value if event.kind == "done" else {"detail": event.value}
    outcomes[event.job] = outcome
    progress.done(label, [{"verdict": _word(outcome)}])


def _word(outcome: Document) -> str:
    if "status" not in outcome:
        return "not_judged"
    if outcome["status"] is None:
        return "timeout"
    return "pass" if outcome["status"] == 0 else "fail"
