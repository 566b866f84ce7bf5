"""`trivet run`: unmodified commands in processes of their own, their launches on the simulator."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trivet.ci.run import run_command

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n, other=0.0) * 2, mask=i < n)

def doubled(x, n=None):
    o = torch.zeros(x.numel())
    double[(triton.cdiv(x.numel(), 16),)](x, o, n or x.numel(), B=16)
    return o
"""
SCRIPT = """
import subprocess
import sys
import torch
import kernels

x = torch.arange(40.0)
extra = int(sys.argv[1])
assert torch.equal(kernels.doubled(x, 40 + extra), x * 2)
if extra:
    subprocess.run([sys.executable, "interpreted.py", "0"], check=True)
print("done")
"""
TESTS = """
import pytest
import torch
import triton
import kernels

@pytest.mark.parametrize("n", [1, 40])
def test_doubled(n):
    assert triton.runtime.driver.active.get_current_target().arch == 90
    x = torch.arange(float(n))
    assert torch.equal(kernels.doubled(x), x * 2)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernels.py").write_text(KERNEL)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "test_kernels.py").write_text(TESTS)
    (tmp_path / "interpreted.py").write_text(
        "import os; os.environ['TRITON_INTERPRET'] = '1'\n" + SCRIPT
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("TRIVET_CACHE", raising=False)
    return tmp_path


def test_somebodys_pytest_suite(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["pytest", "-q", "-p", "no:cacheprovider"]) == 0
    out, err = capfd.readouterr()
    assert "2 passed" in out
    assert err == "trivet: 2 launches on the simulator, 0 faults\n"
    assert list((folder / ".trivet" / "ir").glob("double-*.ttir"))


def test_a_fault_makes_the_status_one(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The script starts a second one, whose kernels are decorated for the interpreter."""
    assert run_command(["python", "script.py", "3"]) == 1
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out.count("done") == 2
    assert lines[0].startswith("trivet: out_of_bounds: program (2, 0, 0) of double accesses ")
    assert "kernels.py:9" in lines[0]
    assert lines[-1] == "trivet: 2 launches on the simulator, 2 faults"
    assert len(lines) == 3


FAULTY = """
import os, pathlib, sys
folder = pathlib.Path(os.environ["TRIVET_RUN_REPORT"])
for process in (1, 2):
    (folder / f"faults-{process}").write_text('{"kind": "race", "text": "two write"}\\n')
sys.exit(int(sys.argv[1]))
"""


def test_the_commands_own_failure_wins(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["python", "-c", FAULTY, "0"]) == 1
    assert capfd.readouterr().err == (
        "trivet: race: two write\ntrivet: 0 launches on the simulator, 1 fault\n"
    )
    assert run_command(["python", "-c", FAULTY, "7"]) == 7
    assert run_command(["python", "-c", "import os; os.kill(os.getpid(), 9)"]) == 137


def test_the_users_own_hook_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os.environ['USER_HOOK'] = 'ran'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_command(["python", "-c", "import os; print(os.environ['USER_HOOK'])"]) == 0
    assert capfd.readouterr().out == "ran\n"


def test_the_interpreter_is_only_a_variable() -> None:
    code = (
        "import os, sys; sys.exit(os.environ['TRITON_INTERPRET'] != '1'"
        " or 'TRIVET_RUN_REPORT' in os.environ)"
    )
    assert run_command(["python", "-c", code], on="interpreter") == 0


def test_commands_that_cannot_start(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["no-such-command-anywhere"]) == 2
    assert run_command([]) == 2
    assert run_command(["python", "-c", ""], on="compile") == 2
    assert "no-such-command-anywhere: not found" in capfd.readouterr().err


def test_processes_without_triton_import_nothing(folder: Path) -> None:
    code = "import sys; sys.exit(any(m.startswith(('trivet', 'torch')) for m in sys.modules))"
    assert run_command(["python", "-c", code]) == 0


def test_importing_the_command_is_light() -> None:
    code = "import sys, trivet.ci.run; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": ""}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )
