"""Other people's tests on the simulator: what is kept of a run, and what the table says of it."""

from pathlib import Path

import pytest

from trivet.ci.suites.projects import HOME, Project
from trivet.ci.suites.recorder import lines, sample
from trivet.ci.suites.running import (
    FileResult,
    Limits,
    Outcome,
    files_of_tests,
    read_file,
    record_of,
    run_files,
)
from trivet.ci.suites.table import summary, table

SUITE = """
import os

import pytest

@pytest.mark.parametrize("n", range(9))
def test_cases(n):
    assert n != 8, "the last one"

def test_missing():
    pytest.importorskip("no_such_package")

@pytest.mark.xfail
def test_known():
    assert False

def test_wanting():
    import no_such_backend

def test_crash():
    os._exit(3)

def test_after_the_crash():
    pass
"""

NOT_IMPORTED = "import no_such_package\n"
LIMITS = Limits(each=3, test=30, file=60)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that has been fetched already."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / HOME / "fake-1" / "source" / "test"
    folder.mkdir(parents=True)
    (folder / "test_some.py").write_text(SUITE)
    (folder / "test_other.py").write_text(NOT_IMPORTED)
    (folder.parent.parent / "ready").touch()
    return Project("fake", "fake==1", tests=("test",))


def test_every_outcome_is_kept_and_a_run_goes_on_after_a_crash(project: Project) -> None:
    said: list[str] = []
    files = files_of_tests(project, [])
    project.fetch()
    assert files == ["test/test_other.py", "test/test_some.py"]

    run_files(project, files, LIMITS, said.append)
    first = read_file(project, files[1])
    ended = {item.test.rpartition("::")[2]: item for item in first.outcomes}
    assert first.counted("sampled out") == 6
    assert ended["test_cases[0]"].outcome == "passed"
    assert ended["test_cases[8]"].outcome == "failed"
    assert "the last one" in ended["test_cases[8]"].reason
    assert ended["test_known"].outcome == "failed as expected"
    assert ended["test_wanting"].outcome == "not imported"
    assert ended["test_crash"].outcome == "crashed"
    assert ended["test_crash"].reason == "its process ended with status 3"
    assert "test_after_the_crash" not in ended

    count = len(lines(record_of(project, files[1])))
    run_files(project, files[1:], LIMITS, said.append)
    assert read_file(project, files[1]).counted("passed") == first.counted("passed") + 1
    assert len(lines(record_of(project, files[1]))) == count + 2

    results = [read_file(project, name) for name in files]
    text, status = summary(project, results)
    assert status == 1
    assert text.startswith("fake==1: 3 passed, 2 failed (0 explained), 0 faults")
    page = table(project, results, timeout=30, each=3)
    assert "needs the package no_such_backend (test_some.py)" in page
    assert "Not reached: none." in page
    assert "| test/test_some.py | 3 | 2 | 0 | 0 | 3 | 6 |" in page
    assert "needs the package no_such_package (test_other.py, test_some.py)" in page
    assert "test_crash`: its process ended with status 3" in page


def test_a_sample_holds_both_ends_and_is_the_same_every_time() -> None:
    cases = [f"a.py::test_x[{n}]" for n in range(100)]
    drawn = sample([*cases, "a.py::test_y"], 4)
    assert len(drawn) == 5
    assert {cases[0], cases[99], "a.py::test_y"} <= drawn
    assert sample([*cases, "a.py::test_y"], 4) == drawn


def test_a_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    record.write_text('{"test": "a", "outcome": "passed"}\n{"test": "b", "outc')
    assert [line["test"] for line in lines(record)] == ["a"]


def test_a_page_names_no_folder_of_the_machine_that_ran_it() -> None:
    here = (
        "cannot import name 'a' from 'b.c' (/home/somebody/.work/lib-3.11/b/c.py), see b/c or 1/2"
    )
    ended = [Outcome("t.py::t", "failed", here), Outcome("t.py::u", "not imported", here)]
    page = table(Project("fake", "fake==1"), [FileResult("t.py", ended, 1.0)], timeout=9, each=1)
    assert page.count("from 'b.c' (c.py), see b/c or 1/2") == 2
    assert "somebody" not in page
