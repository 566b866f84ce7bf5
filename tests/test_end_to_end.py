"""The commands on real kernels: a bug is told, saved, replayed, mended and replayed again."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "test_softmax.py"
RIGHT = "inside = cols < N"
WRONG = "inside = cols <= N"


def trivet(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trivet.ci.main", *arguments],
        cwd=cwd,
        env=os.environ | {"COLUMNS": "120", "TRIVET_CACHE": str(cwd / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "case.py"
    path.write_text(one_dtype(EXAMPLE.read_text()))
    return path


def one_dtype(text: str) -> str:
    return text.replace('("float32", "bfloat16")', '("float32",)')


def test_a_bug_is_told_saved_replayed_and_mended(case: Path) -> None:
    case.write_text(case.read_text().replace(RIGHT, WRONG, 1))
    done = trivet("gate", "case.py", "--json", "gate.json", cwd=case.parent)

    assert done.returncode == 1, done.stdout + done.stderr
    gates = json.loads((case.parent / "gate.json").read_text())["contracts"][0]["gates"]
    red = {gate["law"]: gate for gate in gates if gate["verdict"] == "red"}
    assert "stays_in_bounds" in red
    failure = red["stays_in_bounds"]["failure"]
    assert failure["text"] in done.stdout
    assert re.search(r"case\.py:\d+", failure["line"])

    command = failure["replay"].split()[1:]
    again = trivet(*command, cwd=case.parent)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "breaks stays_in_bounds" in again.stdout

    case.write_text(case.read_text().replace(WRONG, RIGHT, 1))
    mended = trivet(*command, cwd=case.parent)
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert mended.stdout.startswith("softmax keeps stays_in_bounds at ")


def test_every_fault_of_an_example_is_killed(case: Path) -> None:
    done = trivet("audit", "case.py", "--faults-only", "--json", "a.json", cwd=case.parent)

    assert done.returncode == 0, done.stdout + done.stderr
    faults = json.loads((case.parent / "a.json").read_text())["faults"]
    assert [fault["verdict"] for fault in faults] == ["killed"] * 3
    assert all(set(fault["expected"]) <= set(fault["red"]) for fault in faults)


def test_the_page_of_an_example(case: Path) -> None:
    page = trivet("show", "case.py", cwd=case.parent).stdout

    assert page.startswith("softmax   case.py:softmax\n\nkernel    fused_softmax  case.py:")
    assert "  M  Sizes(lo=0, hi=40, production=(1048576))\n" in page
    assert "  stays_in_bounds\n    No program loads or stores outside the view" in page
    assert "  mask_off_by_one, red at stays_in_bounds\n    The mask lets one column" in page


@pytest.mark.night
def test_spawned_workers_collect_the_contracts_again(case: Path) -> None:
    script = case.with_name("spawning.py")
    script.write_text(
        "import trivet.ci.gate as gate\n"
        "from trivet.ci.progress import Progress\n"
        "gate.start_method = lambda: 'spawn'\n"
        "if __name__ == '__main__':\n"
        "    done = gate.run_gates(['case.py'], gate.Settings(workers=2), Progress())\n"
        "    print(done['verdict'])\n"
    )
    command = [sys.executable, script.name]
    done = subprocess.run(command, cwd=case.parent, capture_output=True, text=True, check=False)

    assert done.stdout == "green\n", done.stderr
