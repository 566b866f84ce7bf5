"""The commands: what they print, what they write, and their exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FAKES = Path(__file__).with_name("fakes")
GATE_KEYS = {
    *("law", "dtype", "executor", "verdict", "reason", "examples", "elements", "launches"),
    *("size_classes", "discarded", "rejected", "undecided", "margin", "seconds", "failure"),
}


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(FAKES / "fake_trivet.py"), *arguments]


def trivet(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "160", "TERM": "dumb"}
    return subprocess.run(
        command(*arguments), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_a_green_gate() -> None:
    done = trivet("gate", "softmax")

    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1][:7] == ["softmax", "float32", "1", "·", "·", "·", "1"]
    assert lines[1][7:] == ["20", "0.96", "0.5", "matches_oracle"]
    assert "  gradients_match: a reason (softmax[float32], softmax[bfloat16])" in done.stdout
    assert done.stdout.endswith("green: 4 gates: 2 green, 2 not_promised\n")
    assert "softmax[bfloat16]: 1 green, 1 not_promised" in done.stderr


def test_a_red_gate_prints_its_failure_in_full() -> None:
    done = trivet("gate", "broken")

    assert done.returncode == 1
    assert (
        "\nsoftmax breaks stays_in_bounds at float32\n"
        "  Every access lies inside the argument's own view.\n"
        "  load at element 3 of x (1, 3), program (0, 0, 0), case.py:13: "
        "x = tl.load(x_ptr + cols)\n"
    ) in done.stdout


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (("softmax",), 0),
        (("unclear", "softmax"), 2),
        (("unclear", "broken"), 1),
        (("crashing", "softmax"), 2),
        (("raising",), 2),
    ],
)
def test_exit_status(names: tuple[str, ...], status: int) -> None:
    assert trivet("gate", *names).returncode == status


def test_a_worker_that_dies_costs_its_own_gates_only(tmp_path: Path) -> None:
    trivet("gate", "crashing", "softmax", "raising", "--json", "gate.json", cwd=tmp_path)

    found = json.loads((tmp_path / "gate.json").read_text())
    verdicts = {
        contract["name"]: {(gate["verdict"], gate["reason"]) for gate in contract["gates"]}
        for contract in found["contracts"]
    }
    assert verdicts == {
        "crashing": {("not_judged", "the worker was ended by SIGKILL")},
        "softmax": {("green", None), ("not_promised", "a reason")},
        "raising": {("not_judged", "ZeroDivisionError: division by zero")},
    }


def test_machine_output(tmp_path: Path) -> None:
    options = ("--profile", "ci", "--seed", "3", "--workers", "1")
    reports = ("--json", "out/gate.json", "--junit", "gate.xml", "--html", "gate.html")
    done = trivet("gate", "softmax", "broken", *options, *reports, cwd=tmp_path)

    found = json.loads((tmp_path / "out/gate.json").read_text())
    assert (found["version"], found["verdict"], done.returncode) == (1, "red", 1)
    assert (found["environment"]["profile"], found["environment"]["seed"]) == ("ci", 3)
    assert [contract["name"] for contract in found["contracts"]] == ["softmax", "broken"]
    for contract in found["contracts"]:
        for gate in contract["gates"]:
            assert set(gate) == GATE_KEYS
    assert "<testsuites" in (tmp_path / "gate.xml").read_text()
    assert "<!doctype html>" in (tmp_path / "gate.html").read_text()


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    arguments = ("gate", "softmax", "slow", "--workers", "2", "--json", "gate.json")
    process = subprocess.Popen(
        command(*arguments),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    done = 0
    while done < 2:
        done += process.stderr.readline().startswith(("softmax[float32]: ", "softmax[bfloat16]: "))
    started = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    shown, _ = process.communicate(timeout=120)

    assert time.monotonic() - started < 10
    assert process.returncode == 2
    assert "  matches_oracle: interrupted before its verdict (slow[float32])" in shown
    found = json.loads((tmp_path / "gate.json").read_text())
    assert found["contracts"][0]["gates"][0]["verdict"] == "green"
    assert found["contracts"][1]["gates"][0]["verdict"] == "not_judged"


def test_every_fault_killed() -> None:
    done = trivet("audit", "softmax", "--faults-only")

    assert done.returncode == 0
    row = done.stdout.splitlines()[1].split()
    assert row == [
        *("softmax.mask_off_by_one", "7", "killed"),
        *("stays_in_bounds", "as", "expected", "pass"),
    ]
    assert (
        "unproved here (no fault turned them red): gradients_match, matches_oracle" in done.stdout
    )
    assert done.stdout.endswith("green: 1 of 1 faults killed\n")


def test_a_surviving_fault_is_red(tmp_path: Path) -> None:
    done = trivet("audit", "weak", "--faults-only", "--json", "audit.json", cwd=tmp_path)

    assert done.returncode == 1
    found = json.loads((tmp_path / "audit.json").read_text())
    assert [fault["verdict"] for fault in found["faults"]] == ["survived", "killed"]
    assert found["faults"][0] == {
        "name": "weak.stale_row",
        "number": 7,
        "expected": ["stays_in_bounds"],
        "red": [],
        "conventional": False,
        "verdict": "survived",
        "detail": "a detail",
    }
    assert (found["mutants"], found["score"]) == ([], {"raw": None, "net": None})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit", "broken", "--faults-only"), "no fault to audit: no @contract.fault on broken"),
        (("audit", "softmax", "--shard", "3/2"), "--shard 3/2: expected K/N, K from 1 to N"),
        (("gate", "sotfmax"), "sotfmax: no contract has this name; did you mean softmax?"),
        (("gate", "--profile", "slow"), "'slow' is not one of 'quick', 'ci', 'deep'"),
        (
            ("gate", "--on", "tpu"),
            "'tpu' is not one of 'simulator', 'interpreter', 'compile', 'gpu'",
        ),
        (("gate", "--workers", "0"), "Input should be greater than or equal to 1"),
        (("gate", "--sed", "1"), "No such option: --sed"),
        (("gates",), "No such command 'gates'"),
    ],
)
def test_what_cannot_be_judged_is_said_with_status_2(
    arguments: tuple[str, ...], message: str
) -> None:
    done = trivet(*arguments)

    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_list_shows_every_contract() -> None:
    done = trivet("list")

    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()[1:]}
    assert rows["softmax"] == ["float32", "bfloat16", "2", "1", "case.py:softmax"]
    assert len(rows) == 7
    assert done.returncode == 0


def test_help_names_the_exit_status() -> None:
    assert "Exit status: 0 green, 1 red, 2 could not judge." in trivet("--help").stdout


def test_a_report_that_cannot_be_written_is_refused_before_judging(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", Path("/proc/report.json")):
        done = trivet("gate", "routing.tau_sort", "--json", str(path))

        assert done.returncode == 2
        assert done.stdout == ""
        [line] = done.stderr.splitlines()
        assert line.startswith(f"trivet: the report {path} cannot be written: ")
