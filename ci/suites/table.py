"""The table of a project's tests: what passed, what failed and why, what could not be judged."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from trivet.ci.suites.explained import explanation_of
from trivet.ci.suites.projects import Project
from trivet.ci.suites.running import FileResult, Outcome

_RED = ("failed", "crashed")
_LONGEST = 160
_HOST = re.compile(r"No module named '([\w.]+)'")
# The folders of an absolute path: they are of the machine that ran the tests.
_FOLDERS = re.compile(r"(?<![\w./])/(?:[\w.+@-]+/)+")


def summary(project: Project, results: Sequence[FileResult]) -> tuple[str, int]:
    """Return the counts of all files on one line and the exit status."""
    outcomes = [item for result in results for item in result.outcomes]
    failed = [item for item in outcomes if item.outcome in _RED]
    open_ones = [item for item in failed if not explanation_of(project.name, item.test)]
    faults = [fault for result in results for fault in result.faults]
    passed = sum(item.outcome == "passed" for item in outcomes)
    text = (
        f"{project.requirement}: {passed} passed, {len(failed)} failed "
        f"({len(failed) - len(open_ones)} explained), {len(faults)} faults, "
        f"{len(outcomes) - passed - len(failed)} not judged"
    )
    return text, 1 if open_ones or faults else 0


def table(project: Project, results: Sequence[FileResult], timeout: int, each: int) -> str:
    """Return the page: a row per file, then every failure, every fault, every reason."""
    reached = [result for result in results if result.outcomes]
    left = [result.file for result in results if not result.outcomes]
    lines = [
        f"# The kernel tests of {project.requirement}, unmodified, on a CPU",
        "",
        f"`python -m trivet.ci.suites {project.name} --table docs/suites.md` wrote this page. Each",
        f"file ran under `trivet run -- pytest`, at most {each} cases of a test function (first,",
        f"last, others drawn by its name), {timeout} s a test. *faults* are the sanitizers'.",
        "",
        summary(project, results)[0] + ".",
        "",
        "| file | passed | failed | faults | too long | skipped | not in the sample | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *map(_row, reached),
        "",
        f"Not reached: {', '.join(left) or 'none'}.",
        "",
        *_section("Failures", _failures(project, results)),
        *_section("Faults", _faults(results)),
        *_section("Not judged", _reasons(results)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _row(result: FileResult) -> str:
    skipped = result.counted("skipped", "failed as expected", "not imported")
    numbers = (
        result.counted("passed"),
        result.counted(*_RED),
        len(result.faults),
        result.counted("too long"),
        skipped,
        result.counted("sampled out"),
        round(result.seconds),
    )
    return f"| {result.file} | {' | '.join(map(str, numbers))} |"


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    found = list(lines)
    yield from (f"## {title}", "", *(found or ["None."]), "")


def _failures(project: Project, results: Sequence[FileResult]) -> Iterator[str]:
    for result in results:
        for item in result.outcomes:
            if item.outcome in _RED:
                why = explanation_of(project.name, item.test)
                yield f"* `{item.test}`: {_short(item.reason)}" + (f" **{why}**" if why else "")


def _faults(results: Sequence[FileResult]) -> Iterator[str]:
    for result in results:
        for item in result.outcomes:
            yield from (f"* `{item.test}`: {_short(fault)}" for fault in item.faults)


def _reasons(results: Sequence[FileResult]) -> Iterator[str]:
    """Every reason for which tests were not judged, with how many and in which files."""
    counts: Counter[str] = Counter()
    files: dict[str, set[str]] = {}
    for result in results:
        for item in result.outcomes:
            if item.outcome not in (*_RED, "passed", "sampled out"):
                reason = _why(item)
                counts[reason] += 1
                files.setdefault(reason, set()).add(result.file.rpartition("/")[2])
    for reason, count in counts.most_common():
        named = sorted(files[reason])
        where = ", ".join(named[:4]) + (f" and {len(named) - 4} more" if len(named) > 4 else "")
        yield f"* {count}: {reason} ({where})"


def _why(item: Outcome) -> str:
    missing = _HOST.search(item.reason)
    if missing:
        return f"needs the package {missing.group(1)}"
    if item.outcome == "too long":
        return "ran longer than the time for one test"
    if item.outcome == "failed as expected":
        return "marked by the project as failing"
    return _short(item.reason.removeprefix("Skipped: ")) or item.outcome


def _short(text: str) -> str:
    line = _FOLDERS.sub("", " ".join(text.split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
