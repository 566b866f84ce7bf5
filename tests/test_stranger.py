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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, subprocess.Popen[str]]:
    """Start pytest on the right file and on each wrong one, all outside the repository."""
    folder = tmp_path_factory.mktemp("stranger")
    site = install_wheel(folder)
    right = MINE.read_text()
    sources = {"right": right}
    for name, mistake in MISTAKES.items():
        assert right.count(mistake.old) == 1
        sources[name] = right.replace(mistake.old, mistake.new)
    started = {}
    for name, source in sources.items():
        home = folder / name
        home.mkdir()
        (home / f"test_{name}.py").write_text(source)
        started[name] = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", f"test_{name}.py"],
            cwd=home,
            env=environment(site, folder / "cache" / name),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    return started


def test_the_file_has_25_lines() -> None:
    lines = [line for line in MINE.read_text().splitlines() if line.strip()]
    assert len(lines) <= 25


def test_right_kernel_passes(runs: dict[str, subprocess.Popen[str]]) -> None:
    output, _ = runs["right"].communicate()
    assert runs["right"].returncode == 0, output
    assert "passed" in output
    assert "failed" not in output


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_kernel_fails_and_says_where(
    runs: dict[str, subprocess.Popen[str]], name: str
) -> None:
    output, _ = runs[name].communicate()
    mistake = MISTAKES[name]
    assert runs[name].returncode == 1, output
    for told in (mistake.law, mistake.place, mistake.smallest):
        assert told in output, output
