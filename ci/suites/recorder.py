"""The pytest plugin in a project's own test run: samples, records each test as it ends, resumes.

Every test leaves two lines, one before and one after, so that one which takes the process with it
is known. Imports nothing of torch; configured by the environment, as the tests are not ours.
"""

import json
import os
import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

RECORD = "TRIVET_SUITE_RECORD"
EACH = "TRIVET_SUITE_EACH"
SECONDS = "TRIVET_SUITE_SECONDS"
_LONGEST_REASON = 600


class Recorder:
    """Writes down the outcome of every test of one file."""

    def __init__(self, path: Path, each: int, seconds: float) -> None:
        self._path = path
        self._each = each
        self._ends = time.monotonic() + seconds
        self._told: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep a sample of each test function's cases, less those that are on record."""
        known = {line["test"] for line in lines(self._path)}
        chosen = sample([item.nodeid for item in items], self._each)
        for item in items:
            if item.nodeid not in chosen and item.nodeid not in known:
                self._write(test=item.nodeid, outcome="sampled out")
        kept = [item for item in items if item.nodeid in chosen and item.nodeid not in known]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test begins."""
        self._write(test=nodeid, outcome="begun")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test ended; an error around it counts as its failure."""
        if report.when == "call" or report.outcome != "passed":
            self._write(
                test=report.nodeid,
                outcome=_outcome(report),
                reason=_reason(report),
                seconds=round(report.duration, 2),
                faults=self._new_faults(),
            )

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Stop in good order when the file's time is over; the tests left stay without a line."""
        if time.monotonic() > self._ends:
            pytest.exit("the time for this file is over", returncode=0)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot even be imported, or that skips itself."""
        if report.outcome != "passed":
            outcome = "skipped" if report.outcome == "skipped" else "not imported"
            self._write(test=report.nodeid, outcome=outcome, reason=_reason(report))

    def _new_faults(self) -> list[str]:
        """Return what the simulator has found since the last call."""
        folder = os.environ.get("TRIVET_RUN_REPORT")
        written = Path(folder or "") / f"faults-{os.getpid()}"
        if not folder or not written.exists():
            return []
        told = [json.loads(line) for line in written.read_text().splitlines()]
        texts = [f"{fault['kind']}: {fault['text']}" for fault in told]
        new = [text for text in texts if text not in self._told]
        self._told.update(new)
        return new

    def _write(self, **line: Any) -> None:
        with open(self._path, "a") as file:
            file.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder that the environment describes."""
    each, seconds = int(os.environ[EACH]), float(os.environ[SECONDS])
    config.pluginmanager.register(Recorder(Path(os.environ[RECORD]), each, seconds))


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines on record; a last one that was cut off does not count."""
    if not path.exists():
        return []
    found = []
    for text in path.read_text().splitlines():
        try:
            found.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return found


def sample(tests: list[str], each: int) -> set[str]:
    """Return at most ``each`` cases of every test function: its first and last, others drawn."""
    cases: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        cases[test.partition("[")[0]].append(test)
    chosen: set[str] = set()
    for function, found in cases.items():
        if len(found) <= each:
            chosen.update(found)
            continue
        draw = random.Random(function)
        chosen.update([found[0], found[-1], *draw.sample(found[1:-1], max(0, each - 2))][:each])
    return chosen


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "failed as expected" if report.outcome == "skipped" else "passed"
    if report.outcome == "failed" and "from pytest-timeout" in _reason(report):
        return "too long"
    return str(report.outcome)


def _reason(report: Any) -> str:
    """Return the exception's own lines of a failure, the reason of a skip, "" without either."""
    told = report.longrepr
    if told is None:
        return ""
    if isinstance(told, tuple):
        return str(told[2])
    crash = getattr(told, "reprcrash", None)
    text = crash.message if crash is not None else str(told).strip().rpartition("\n")[2]
    return str(text)[:_LONGEST_REASON]
