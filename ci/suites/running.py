"""Runs a project's own tests, file by file and unmodified, with their launches on the simulator."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trivet.ci.suites import recorder
from trivet.ci.suites.projects import Project, environment

_PYTEST = (
    *("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", recorder.__name__),
    # The project's own settings stay, but for what only fills the terminal or retries.
    *("-o", "log_cli=false", "-o", "addopts=", "-W", "ignore"),
)
_GRACE = 60.0
# A test that fails for want of a package says nothing of a kernel.
_WANTING = ("ImportError", "ModuleNotFoundError")


@dataclass(frozen=True)
class Limits:
    """``each``: cases of a test function; seconds for one ``test`` and for one ``file``."""

    each: int
    test: int
    file: int


@dataclass
class Outcome:
    """How one test ended: passed, failed, or why it was not judged."""

    test: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


@dataclass
class FileResult:
    """One file of tests; ``seconds`` are those of all its runs."""

    file: str
    outcomes: list[Outcome]
    seconds: float

    def counted(self, *outcomes: str) -> int:
        """Return how many tests ended in one of these ways."""
        return sum(item.outcome in outcomes for item in self.outcomes)

    @property
    def faults(self) -> list[str]:
        """What the simulator found in the file's launches."""
        return [fault for item in self.outcomes for fault in item.faults]


def files_of_tests(project: Project, patterns: Sequence[str]) -> list[str]:
    """Return the project's files of tests whose path holds one of ``patterns``; all without."""
    found = [
        str(path.relative_to(project.source))
        for folder in project.tests
        for path in (project.source / folder).rglob("test_*.py")
    ]
    return sorted(name for name in found if not patterns or any(p in name for p in patterns))


def run_files(
    project: Project, files: Sequence[str], limits: Limits, say: Callable[[str], None]
) -> None:
    """Run the files one after another; what is on record already is not run again."""
    for number, name in enumerate(files, 1):
        say(f"{number}/{len(files)} {name}")
        start = time.monotonic()
        status = _run(project, name, limits)
        seconds = time.monotonic() - start
        lost = ("crashed", f"its process ended with status {status}")
        if status is None:
            lost = ("too long", "its process had to be killed")
        _settle(record_of(project, name), *lost)
        with open(_clock(project, name), "a") as file:
            file.write(f"{seconds:.1f}\n")
        result = read_file(project, name)
        judged = f"{result.counted('passed')} passed, {result.counted('failed')} failed"
        say(f"    {judged}, {len(result.faults)} faults, {seconds:.0f} s")


def read_file(project: Project, name: str) -> FileResult:
    """Return what is on record of one file."""
    ended: dict[str, Outcome] = {}
    for line in recorder.lines(record_of(project, name)):
        new = Outcome(**line)
        if new.outcome == "failed" and new.reason.startswith(_WANTING):
            new.outcome = "not imported"
        old = ended.get(new.test)
        if old is not None:
            new.faults = [*old.faults, *new.faults]
            # An error while tearing down does not undo a failure before it.
            new.outcome, new.reason = max((new, old), key=_weight).outcome, new.reason or old.reason
        ended[new.test] = new
    clock = _clock(project, name)
    seconds = sum(map(float, clock.read_text().split())) if clock.exists() else 0.0
    return FileResult(name, list(ended.values()), seconds)


def record_of(project: Project, name: str) -> Path:
    """Return the file that holds the record of one file of tests."""
    folder = project.folder / "records"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / (re.sub(r"\W+", "-", name) + ".jsonl")


def _clock(project: Project, name: str) -> Path:
    return record_of(project, name).with_suffix(".seconds")


def _weight(item: Outcome) -> int:
    order = ("begun", "sampled out", "passed", "skipped", "failed as expected", "too long")
    return order.index(item.outcome) if item.outcome in order else len(order)


def _run(project: Project, name: str, limits: Limits) -> int | None:
    """Return the exit status, None where the time was over and the process did not listen."""
    settings = {
        recorder.RECORD: str(record_of(project, name)),
        recorder.EACH: str(limits.each),
        recorder.SECONDS: str(limits.file),
    }
    command = [
        *(sys.executable, "-c", "from trivet.ci.main import main; main()", "run", "--"),
        *_PYTEST,
        *("-o", f"timeout={limits.test}", name),
    ]
    log = record_of(project, name).with_suffix(".log")
    with open(log, "a") as file:
        process = subprocess.Popen(
            command,
            cwd=project.source,
            env={**environment(project), **settings},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            return process.wait(limits.file + limits.test + _GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def _settle(record: Path, outcome: str, reason: str) -> None:
    """Say of a test that began and never ended what became of its process."""
    known: dict[str, dict[str, Any]] = {}
    for line in recorder.lines(record):
        known[line["test"]] = line
    lost = [test for test, line in known.items() if line["outcome"] == "begun"]
    with open(record, "a") as file:
        for test in lost:
            line = asdict(Outcome(test, outcome, reason))
            file.write(json.dumps(line) + "\n")
