"""Rows against locks: what is red, what an update accepts, and what is another revision's."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from trivet.ci._base_child import redirect
from trivet.ci.base import checkout
from trivet.ci.bench_page import bench_section
from trivet.ci.errors import CannotJudgeError
from trivet.ci.locking import against_base, against_locks, update_locks
from trivet.ci.measuring import Row
from trivet.properties._collect import Found
from trivet.properties._locks import lock_of, lock_path, locks_in

TOOLS = "triton 3.9.0, ptxas 13.4.59"
FAST = {"load_bits": 128.0, "registers": 40, "bytes_read": 4096}


def found(**removed):
    contract = SimpleNamespace(removed=removed)
    return [Found("fast", contract, Path("case.py"), "fast", "case.py:fast")]


def row(kernel="_fast", **metrics):
    return Row(
        contract="fast",
        source="case.py:fast",
        sample=f"float32 largest {kernel}",
        kernel=kernel,
        specialisation="x=*fp32/16",
        target="sm_90",
        toolchain=TOOLS,
        metrics={**FAST, **metrics},
        lines={"kernel": "case.py:3: def _fast(x):"},
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def locked():
    (entry,) = update_locks(found(), [row()])
    assert entry["verdict"] == "green"
    assert "perf_locks/case.fast.lock.json" in entry["reason"]


def judged(*rows):
    return [(e["verdict"], e["reason"] or "") for e in against_locks(found(), rows)]


def test_a_contract_without_a_lock_is_not_judged_and_told_to_update():
    ((verdict, reason),) = judged(row())
    assert verdict == "not_judged"
    assert reason == (
        "perf_locks/case.fast.lock.json does not exist yet: "
        "run trivet bench --update and commit the lock"
    )


@pytest.mark.usefixtures("locked")
def test_what_is_as_it_was_is_green():
    assert judged(row()) == [("green", "")]


@pytest.mark.usefixtures("locked")
def test_what_is_better_is_green_and_may_be_kept():
    ((verdict, reason),) = judged(row(registers=20))
    assert verdict == "green"
    assert reason.startswith("better than locked (registers): trivet bench --update")


@pytest.mark.usefixtures("locked")
def test_a_soft_change_is_red_until_an_update_accepts_it():
    slower = row(registers=60)
    ((verdict, reason),) = judged(slower)
    assert verdict == "red"
    assert "in the same commit" in reason
    (entry,) = update_locks(found(), [slower])
    assert (entry["verdict"], len(entry["changes"])) == ("green", 1)
    assert judged(slower) == [("green", "")]


@pytest.mark.usefixtures("locked")
def test_an_update_does_not_lock_a_hard_change(folder):
    slower = row(load_bits=32.0)
    (entry,) = update_locks(found(), [slower])
    assert entry["verdict"] == "red"
    assert "delete 'float32 largest _fast' from perf_locks/case.fast.lock.json" in entry["reason"]
    assert judged(slower)[0][0] == "red"
    (folder / "perf_locks/case.fast.lock.json").unlink()
    update_locks(found(), [slower])
    assert judged(slower) == [("green", "")]


@pytest.mark.usefixtures("locked")
def test_another_toolchain_asks_for_an_update_of_its_own():
    other = replace(row(), toolchain="triton 3.10.0, ptxas 14.0")
    ((verdict, reason),) = judged(other)
    assert verdict == "not_judged"
    assert f"is locked by {TOOLS}; this is triton 3.10.0, ptxas 14.0" in reason
    update_locks(found(), [other])
    assert judged(other) == judged(row()) == [("green", "")]


@pytest.mark.usefixtures("locked")
def test_a_renamed_kernel_keeps_its_lock_and_one_more_kernel_has_none():
    assert judged(row("_renamed")) == [("green", "")]
    assert judged(row("_renamed", load_bits=32.0))[0][0] == "red"
    verdicts = [verdict for verdict, _ in judged(row(), row("_another"))]
    assert verdicts == ["green", "not_judged"]


@pytest.mark.usefixtures("locked")
def test_a_launch_that_is_specialised_otherwise_says_how():
    other = replace(row(load_bits=32.0), specialisation="x=*fp32")
    ((verdict, reason),) = judged(other)
    assert (verdict, reason) == ("red", "specialised otherwise: x=*fp32/16 -> x=*fp32")


@pytest.mark.usefixtures("locked")
def test_what_could_not_be_measured_is_not_judged_and_keeps_the_lock(folder):
    before = (folder / "perf_locks/case.fast.lock.json").read_text()
    lost = replace(row(), metrics={}, reason="no nvdisasm")
    assert judged(lost) == [("not_judged", "no nvdisasm")]
    update_locks(found(), [lost])
    assert (folder / "perf_locks/case.fast.lock.json").read_text() == before


def test_a_removed_law_locks_nothing(folder):
    (entry,) = update_locks(found(perf_lock="tuned by hand"), [row()])
    assert (entry["verdict"], entry["reason"]) == ("green", "removed: tuned by hand")
    assert not (folder / "perf_locks").exists()


def test_a_target_that_is_only_compiled_for_is_red_where_it_does_not_compile():
    built = replace(row(), target="sm_80")
    assert judged(built) == [("green", "")]
    assert judged(replace(built, metrics={}, error="no fp8"))[0][0] == "red"


def test_against_a_revision_only_hard_changes_are_red():
    cases = [row(), row(registers=60), row(load_bits=32.0), row("_new")]
    verdicts = [against_base([case], [row()], "main")[0]["verdict"] for case in cases]
    assert verdicts == ["green", "green", "red", "green"]
    (entry,) = against_base([row("_new")], [], "main")
    assert entry["reason"] == "main has no such launch"


def test_locks_lie_where_the_settings_say(folder):
    assert lock_path("cfc.step", "cfc.step").name == "cfc.step.lock.json"
    assert lock_path("fast", "cases/one.py:fast") == Path("perf_locks/cases.one.fast.lock.json")
    (folder / "pyproject.toml").write_text('[tool.trivet]\nlocks = "fixtures/perf"\n')
    assert lock_path("fast", "one.py:fast") == Path("fixtures/perf/one.fast.lock.json")
    assert lock_path("fast", "my.cases:fast").name == "my.cases.fast.lock.json"
    with locks_in(folder / "other"):
        assert lock_path("cfc.step", "cfc.step") == folder / "other/cfc.step.lock.json"


def test_a_file_that_is_no_lock_is_refused(folder):
    path = folder / "perf_locks/case.fast.lock.json"
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(CannotJudgeError, match="is no lock file"):
        against_locks(found(), [row()])


@pytest.mark.usefixtures("locked")
def test_a_lock_survives_being_written_again(folder):
    lock = lock_of("fast", "case.py:fast")
    path = folder / lock.path
    before = path.read_text()
    lock.write()
    assert path.read_text() == before


@pytest.mark.usefixtures("locked")
def test_the_page_shows_what_is_worst_first():
    entries = against_locks(found(), [row(registers=60), row("_b"), row("_c", load_bits=32.0)])
    section = bench_section({"entries": entries})
    assert section["counts"] == {"red": 1, "not_judged": 2}
    (table,) = section["tables"]
    assert table["columns"] == ["registers", "load_bits", "bytes_read"]
    assert [shown["worse"] for shown in table["rows"]] == [{"registers"}, set(), set()]


def git(*arguments):
    subprocess.run(["git", *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(folder):
    git("init", "-q")
    git("config", "user.email", "a@example.org")
    git("config", "user.name", "A")
    (folder / "src").mkdir()
    (folder / "src/kernels.py").write_text("AGE = 'old'\n")
    git("add", "-A")
    git("commit", "-q", "-m", "base")
    (folder / "src/kernels.py").write_text("AGE = 'new'\n")
    (folder / "src/added.py").write_text("")
    return folder


def test_another_revision_is_unpacked_beside_the_work_tree(repository):
    with checkout("HEAD") as tree:
        assert (tree.root / "src/kernels.py").read_text() == "AGE = 'old'\n"
        assert tree.counterpart(repository / "src") == tree.root / "src"
        assert tree.counterpart(repository / "src/added.py") == repository / "src/added.py"
        assert tree.counterpart(Path("/usr/lib")) == Path("/usr/lib")
    assert not tree.root.exists()
    assert (repository / "src/kernels.py").read_text() == "AGE = 'new'\n"
    status = subprocess.run(["git", "status", "--short"], capture_output=True, text=True)
    assert status.stdout.split() == ["M", "src/kernels.py", "??", "src/added.py"]


def test_imports_find_the_other_revision(repository, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(repository / "src"), *sys.path])
    with checkout("HEAD") as tree:
        redirect(tree)
        assert sys.path[0] == str(tree.root / "src")


def test_a_revision_that_is_none_is_said(repository):
    with pytest.raises(CannotJudgeError, match="no such revision: v9"), checkout("v9"):
        pass


def test_no_repository_is_said(folder, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    with pytest.raises(CannotJudgeError, match="not a git repository"), checkout("HEAD"):
        pass
