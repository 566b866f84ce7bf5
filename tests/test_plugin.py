"""The pytest plugin: what a contract in a test module becomes, and what it costs others."""

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

FAKES = Path(__file__).with_name("fakes")
HEAD = "import fake_engine\nfake_engine.install()\nfrom fake_engine import Contract, TEXT\n"
# What pytest and other plugins cost is not ours to count: they are the same in both runs.
LIMIT_SECONDS = 0.010


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "TRIVET"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(FAKES), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )


def case(folder: Path, body: str) -> None:
    (folder / "test_case.py").write_text(HEAD + body)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")


def test_each_law_and_dtype_is_one_test(tmp_path: Path) -> None:
    case(
        tmp_path,
        "softmax = Contract({'matches_oracle': 'green', 'repeats': 'green'}, ('float32', 'int8'))",
    )
    shown = run_pytest(tmp_path, "--collect-only", "-q").stdout.splitlines()

    assert shown[:4] == [
        "test_case.py::softmax::matches_oracle[float32]",
        "test_case.py::softmax::repeats[float32]",
        "test_case.py::softmax::matches_oracle[int8]",
        "test_case.py::softmax::repeats[int8]",
    ]


def test_every_verdict_has_its_outcome(tmp_path: Path) -> None:
    states = ("green", "red", "not_judged", "elsewhere", "not_promised")
    laws = {f"is_{state}": state for state in states}
    case(tmp_path, f"softmax = Contract({laws})")
    done = run_pytest(tmp_path, "-v", "-rs")

    outcomes = dict(re.findall(r"::is_(\w+)\[float32\] ([A-Z]+)", done.stdout))
    assert outcomes == {
        "green": "PASSED",
        "red": "FAILED",
        "not_judged": "FAILED",
        "elsewhere": "SKIPPED",
        "not_promised": "SKIPPED",
    }
    assert "elsewhere: a reason" in done.stdout
    assert "not promised: a reason" in done.stdout
    assert "softmax is_not_judged[float32] not judged: a reason" in done.stdout
    assert done.returncode == 1


def test_a_failure_shows_its_own_text_and_nothing_else(tmp_path: Path) -> None:
    case(tmp_path, "softmax = Contract({'stays_in_bounds': 'red'})")
    shown = run_pytest(tmp_path, "-q").stdout

    between = re.search(r"=+ FAILURES =+\n(.*)\n-+ Captured", shown, re.DOTALL)
    assert between is not None
    title, _, text = between[1].partition("\n")
    assert title.strip("_ ") == "softmax::stays_in_bounds[float32]"
    assert text.startswith("softmax breaks stays_in_bounds at float32\n  Every access lies inside")
    assert text.endswith(
        "  replay: trivet replay .trivet/witnesses/softmax-stays_in_bounds-float32.json"
    )
    assert "Traceback" not in shown


def test_a_contract_and_dtype_is_judged_once_for_all_its_laws(tmp_path: Path) -> None:
    case(tmp_path, "softmax = Contract({'a': 'green', 'b': 'green'}, ('float32', 'int8'))")
    done = run_pytest(tmp_path, "-s", "--trivet-profile", "ci", "--trivet-seed", "7")

    path = tmp_path / "test_case.py"
    assert done.stderr.splitlines() == [
        f"judging {path}:softmax at float32: ci, seed 7",
        f"judging {path}:softmax at int8: ci, seed 7",
    ]


def test_a_selection_judges_the_selected_laws_only(tmp_path: Path) -> None:
    case(tmp_path, "def never(): raise SystemExit\nc = Contract({'a': 'green', 'b': never})")
    done = run_pytest(tmp_path, "-q", "-k", "a and not b")

    assert "1 passed, 1 deselected" in done.stdout


def test_a_warning_while_judging_changes_no_verdict_and_is_shown(tmp_path: Path) -> None:
    case(
        tmp_path,
        "import warnings\n"
        "def warned():\n    warnings.warn('the kernel is slow', stacklevel=1)\n    return 'green'\n"
        "softmax = Contract({'repeats': warned})",
    )
    done = run_pytest(tmp_path, "-q")

    assert "1 passed, 1 warning" in done.stdout
    assert "the kernel is slow" in done.stdout


def test_only_a_modules_own_variables_are_collected(tmp_path: Path) -> None:
    case(
        tmp_path,
        "_private = Contract({'a': 'green'})\n"
        "class TestHolder:\n    held = Contract({'a': 'green'})\n    def test_it(self): pass\n",
    )
    assert "1 passed" in run_pytest(tmp_path, "-q").stdout


def test_what_looks_like_anything_is_left_alone(tmp_path: Path) -> None:
    case(
        tmp_path,
        "class Proxy:\n"
        "    @property\n"
        "    def __class__(self): raise RuntimeError('touched')\n"
        "    def __getattr__(self, name): raise AttributeError(name)\n"
        "proxy = Proxy()\n"
        "def test_it(): pass\n",
    )
    assert "1 passed" in run_pytest(tmp_path, "-q").stdout


def test_a_run_without_contracts_imports_nothing_of_trivet(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    ours = sorted(name for name in sys.modules if name.startswith('trivet'))\n"
        "    assert ours == ['trivet', 'trivet.ci', 'trivet.ci.plugin']\n"
        "    assert not {'torch', 'triton', 'numpy', 'hypothesis'} & set(sys.modules)\n"
    )
    done = run_pytest(tmp_path, "-q", "-p", "no:hypothesispytest", "-p", "no:benchmark")
    assert "1 passed" in done.stdout, done.stdout


def test_a_run_without_contracts_costs_little(capsys: pytest.CaptureFixture[str]) -> None:
    """Loading the plugin in a process that has pytest already: what every other run pays."""
    code = (
        "import sys, time, pytest\n"
        "start = time.perf_counter()\n"
        "import trivet.ci.plugin\n"
        "print(time.perf_counter() - start)"
    )
    costs = []
    for _ in range(5):
        shown = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        costs.append(float(shown.stdout))
    cost = statistics.median(costs)
    with capsys.disabled():
        print(f"\nthe plugin costs a run that does not use it {cost * 1000:.1f} ms")
    assert cost < LIMIT_SECONDS


def test_asking_about_a_variable_costs_little() -> None:
    from trivet.ci.plugin import pytest_pycollect_makeitem

    start = time.perf_counter()
    for _ in range(1000):
        pytest_pycollect_makeitem(object(), "name", object())  # type: ignore[arg-type]
    assert time.perf_counter() - start < LIMIT_SECONDS
