"""Somebody's tests on mutants: planted text, both columns, commands that cannot be run."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from trivet.ci.comparison import print_comparison
from trivet.ci.document import Document
from trivet.ci.errors import CannotJudgeError
from trivet.ci.existing import ExistingTests
from trivet.ci.progress import Progress
from trivet.faults._mutants import mutants_of
from trivet.properties._collect import find

KERNEL = """
import torch, triton
import triton.language as tl
from trivet import Contract, Tensor, sizes

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0.0) * 2.0, mask=i < n)

def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), 16)
    return y

case = Contract(
    kernel=double, oracles=[lambda x: 2 * x], dims={"N": sizes(1, 40)}, args={"x": Tensor("N")}
)
"""
TESTS = """
import torch
from doubling import double

def test_one_aligned_shape():
    x = torch.arange(32.0)
    torch.testing.assert_close(double(x), 2 * x)
"""
PLANTED = """
import importlib.util, inspect, sys
from pathlib import Path
from trivet.ci._planted import plant, run_suite

path = Path(sys.argv[1])
told = []
finder = plant(str(path), "def f():\\n    return 'planted'\\n", lambda: told.append(1))
sys.path.insert(0, str(path.parent))
import module_under_test
assert module_under_test.f() == "planted" and "planted" in inspect.getsource(module_under_test.f)
spec = importlib.util.spec_from_file_location("other", path)
other = importlib.util.module_from_spec(spec)
spec.loader.exec_module(other)
assert other.f() == "planted" and len(told) == 2
sys.modules.pop("module_under_test")
sys.exit(run_suite(["pytest", "test_it.py::test_it"], path.parent, finder))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "doubling.py").write_text(KERNEL)
    (tmp_path / "test_doubling.py").write_text(TESTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_way_to_import_a_file_gives_the_planted_text(tmp_path: Path) -> None:
    module = tmp_path / "module_under_test.py"
    module.write_text("def f():\n    return 'on disk'\n")
    (tmp_path / "test_it.py").write_text(
        "from module_under_test import f\ndef test_it():\n    assert f() == 'planted'\n"
    )
    command = [sys.executable, "-c", PLANTED, str(module)]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "on disk" in module.read_text()
    assert not list(tmp_path.rglob("*.pyc"))


def test_the_tests_see_what_their_one_shape_shows(project: Path) -> None:
    [found] = find(["doubling.py"])
    mutants = {m.operator: m for m in mutants_of(found.contract)}
    chosen = [mutants["constant_changed"], mutants["store_mask_dropped"]]
    document: Document = {"mutants": [{"id": m.id, "verdict": "killed"} for m in chosen]}
    document["mutants"].append({"id": "other", "verdict": "invalid"})
    ExistingTests("pytest test_doubling.py", 1, Progress()).judge(document, [found])

    assert [entry["tests"] for entry in document["mutants"]] == [True, False, None]
    assert document["tests"]["command"] == "pytest test_doubling.py"
    assert (project / "doubling.py").read_text() == KERNEL
    assert sorted(path.name for path in project.iterdir() if path.is_file()) == [
        "doubling.py",
        "test_doubling.py",
    ]


def test_tests_that_fail_as_they_are_say_what_they_said(project: Path) -> None:
    (project / "test_doubling.py").write_text("def test_it():\n    assert 'apples' == 'pears'\n")

    with pytest.raises(CannotJudgeError, match=r"fail as they are:\n(.*\n)*.*apples"):
        ExistingTests("pytest test_doubling.py", 1, Progress())


@pytest.mark.parametrize("command", ["make test", "pytest", "", "pytest 'x"])
def test_other_commands_are_refused_at_once(command: str) -> None:
    with pytest.raises(CannotJudgeError, match="--tests"):
        ExistingTests(command, 1, Progress())


def test_the_report_has_both_columns_and_what_only_trivet_saw() -> None:
    def mutant(verdict: str, tests: bool | None) -> dict[str, Any]:
        where = {"contract": "c", "operator": "mask_dropped", "file": "k.py", "line": 3}
        return {**where, "verdict": verdict, "tests": tests, "killed_by": "repeats", "witness": "N"}

    entries = [mutant("killed", True), mutant("killed", False), mutant("invalid", None)]
    stream = io.StringIO()
    print_comparison(
        {"mutants": entries, "tests": {"command": "pytest t.py"}}, Console(file=stream, width=200)
    )

    assert "beside pytest t.py" in stream.getvalue()
    [row] = [line.split() for line in stream.getvalue().splitlines() if line.startswith("c ")]
    assert row == ["c", "2", "2", "(100%)", "1", "(50%)", "1", "(50%)", "0", "(0%)"]
    assert "only trivet saw\n  mask_dropped at k.py:3: repeats, N" in stream.getvalue()
