"""What a stranger reads when something is missing, too old or misspelt: one line, status 2."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCKED = Path(__file__).with_name("fakes") / "blocked.py"
NOTHING = "trivet=0.1.0"
CASE = """
import torch, triton, triton.language as tl
from trivet import Contract, Tensor, sizes

@triton.jit
def copy_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols, mask=cols < N), mask=cols < N)

def copy(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y

def contract(kernel, oracle, **dims):
    return Contract(kernel=kernel, oracles=[oracle], dims=dims, args={"x": Tensor("N")})
"""


def trivet(packages: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BLOCKED), packages, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("packages", "installed"),
    [
        ("torch=none,triton=3.9.0", "torch missing, triton 3.9.0"),
        ("torch=2.13.0,triton=none", "torch 2.13.0, triton missing"),
        ("torch=none,triton=none", "torch missing, triton missing"),
        ("torch=2.13.0,triton=3.5.1", "torch 2.13.0, triton 3.5.1"),
        ("torch=2.6.1+cu124,triton=3.9.0", "torch 2.6.1+cu124, triton 3.9.0"),
    ],
)
def test_missing_and_old_packages(packages: str, installed: str, tmp_path: Path) -> None:
    for arguments in (("gate",), ("audit", "--faults-only"), ("list",), ("run", "--", "pytest")):
        done = trivet(packages, *arguments, cwd=tmp_path)

        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == (
            "trivet: trivet runs kernels with torch >= 2.7, triton >= 3.6; "
            f"installed: {installed}. "
            "Install both yourself (pip install 'trivet[torch]'): trivet never upgrades them.\n"
        )


def test_a_missing_template_engine_is_said_before_any_work(tmp_path: Path) -> None:
    done = trivet("jinja2=none", "gate", "--html", "gate.html", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        "trivet: --html needs jinja2, which is not installed: pip install 'trivet[report]'\n"
    )


def test_no_contract_at_all(tmp_path: Path) -> None:
    done = trivet(NOTHING, "gate", "nothing.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "trivet: nothing.py: no such file or folder\n")


def test_a_name_that_is_nearly_right(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text((ROOT / "examples/test_softmax.py").read_text())
    done = trivet(NOTHING, "show", "case.py:sofmax", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        "trivet: case.py:sofmax: no contract has this name; did you mean softmax?\n"
    )


def test_a_file_that_does_not_import(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text("from trivet import Contract\n\nkernel = missing.softmax\n")
    done = trivet(NOTHING, "gate", "case.py", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        "trivet: case.py: NameError: name 'missing' is not defined "
        "(case.py:3: kernel = missing.softmax)\n"
    )


def test_a_contract_that_contradicts_itself(tmp_path: Path) -> None:
    text = (ROOT / "examples/test_softmax.py").read_text().replace('"M N"', '"M K"')
    (tmp_path / "case.py").write_text(text)
    done = trivet(NOTHING, "gate", "case.py", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("trivet: case.py: ValueError: ")
    assert "K" in done.stderr
    assert "case.py:" in done.stderr.partition("ValueError")[2]
    assert done.stderr.count("\n") == 1


def test_a_file_without_a_contract(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text("x = 1\n")
    done = trivet(NOTHING, "gate", "case.py", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (2, "trivet: case.py: holds no Contract\n")


def test_a_domain_that_cannot_be_met(tmp_path: Path) -> None:
    odd = 'contract(copy, lambda x: x, M=sizes(1, 5), N="M - 9")'
    (tmp_path / "case.py").write_text(f"{CASE}odd = {odd}\n")
    done = trivet(NOTHING, "gate", "case.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "dim N: 'M - 9' holds no size at M = 1" in done.stderr
    assert "(case.py:16: return Contract(" in done.stderr


def test_a_kernel_without_launches_and_an_oracle_of_the_wrong_shape(tmp_path: Path) -> None:
    lazy = "lazy = contract(lambda x: x.clone(), lambda m, x: x, N=sizes(1, 200))\n"
    flat = "flat = contract(copy, lambda m, x: x.reshape(-1, 1), N=sizes(1, 200))\n"
    (tmp_path / "case.py").write_text(CASE + lazy + flat)
    done = trivet(NOTHING, "gate", "case.py", cwd=tmp_path)

    assert done.returncode == 1
    assert "vacuous: the kernel launched nothing (lazy[float32])" in done.stdout
    assert "flat breaks matches_oracle at float32" in done.stdout
    assert "out has shape (1,), the oracle gives (1, 1)" in done.stdout
    assert "smallest inputs found: N = 1" in done.stdout


def test_a_witness_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "witness.json").write_text('{"version": 7}')
    done = trivet(NOTHING, "replay", "witness.json", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == ("trivet: witness witness.json: expected version 1, found 7\n")
