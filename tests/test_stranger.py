"""Somebody installs the wheel, writes a 25-line test of a softmax and runs plain pytest on it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MINE = Path(__file__).with_name("stranger") / "mine.py"
PACKAGE = ("src", "impl", "oracles", "simulator", "properties", "faults", "fixtures", "ci")


@dataclass(frozen=True)
class Mistake:
    """One edit of the stranger's kernel, and what its test has to tell about it."""

    old: str
    new: str
    law: str
    place: str
    smallest: str


LOAD = 'x = tl.load(x_ptr + place, mask=mask, other=-float("inf"))'
MISTAKES = {
    "mask_off_by_one": Mistake(
        "cols < N", "cols <= N", "stays_in_bounds", "test_mask_off_by_one.py:13", "M = 1, N = 3"
    ),
    "mask_dropped": Mistake(
        LOAD,
        "x = tl.load(x_ptr + place)",
        "stays_in_bounds",
        "test_mask_dropped.py:13",
        "M = 1, N = 3",
    ),
    "half_accumulator": Mistake(
        "tl.sum(e, axis=0)",
        "tl.sum(e.to(tl.float16), axis=0).to(tl.float32)",
        "matches_oracle",
        "out[0, ",
        "M = 1, N = 2",
    ),
    "rows_unwritten": Mistake(
        "(len(x),)", "(len(x) - 1,)", "writes_every_element", "out[0, 0]", "M = 1, N = 1"
    ),
}


def environment(installed: Path, cache: Path) -> dict[str, str]:
    """The stranger's environment: the installed wheel is found before the checkout."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "TRIVET"))}
    return kept | {
        "PYTHONPATH": str(installed),
        "TRIVET_CACHE": str(cache),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "100",
    }


def install_wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the package's folders and install it under ``folder``."""
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in PACKAGE:
        unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, checkout / name, symlinks=True, ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *offline, "-w", folder / "wheels", checkout], check=True)
    (wheel,) = (folder / "wheels").glob("trivet-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", folder / "site", wheel], check=True)
    return folder / "site"


def started(folder: Path, site: Path, sources: dict[str, str]) -> subprocess.Popen[str]:
    """Start pytest in ``folder``, outside the repository, on files of these sources."""
    folder.mkdir()
    for name, source in sources.items():
        (folder / f"test_{name}.py").write_text(source)
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=folder,
        env=environment(site, folder / "cache"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Exit status and output of pytest on the right file, and on the four wrong ones."""
    folder = tmp_path_factory.mktemp("stranger")
    site = install_wheel(folder)
    right = MINE.read_text()
    wrong = {}
    for name, mistake in MISTAKES.items():
        assert right.count(mistake.old) == 1
        # A contract is called as its variable: so each failure tells whose it is.
        wrong[name] = right.replace(mistake.old, mistake.new).replace("softmax =", f"{name} =")
    processes = {
        "right": started(folder / "right", site, {"softmax": right}),
        "wrong": started(folder / "wrong", site, wrong),
    }
    outputs = {name: process.communicate()[0] for name, process in processes.items()}
    return {name: (process.returncode, outputs[name]) for name, process in processes.items()}


def test_the_file_has_25_lines() -> None:
    lines = [line for line in MINE.read_text().splitlines() if line.strip()]
    assert len(lines) <= 25


def test_right_kernel_passes(runs: dict[str, tuple[int, str]]) -> None:
    status, output = runs["right"]
    assert status == 0, output
    assert "passed" in output
    assert "failed" not in output


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_kernel_fails_and_says_where(runs: dict[str, tuple[int, str]], name: str) -> None:
    status, output = runs["wrong"]
    mistake = MISTAKES[name]
    assert status == 1, output
    heading = f"{name} breaks {mistake.law} at float32"
    assert heading in output, output
    failure = output.partition(heading)[2].partition("\n____")[0]
    assert mistake.place in failure, output
    assert mistake.smallest in failure, output
