"""The run on a GPU comes to its end: here on a device and a clock of the test's own."""

import json
import subprocess
import sys

import pytest
import torch
from tests.fakes.devices import FakeDevice

from trivet.ci.on_gpu import PARTS, main, status_of
from trivet.properties import _collect
from trivet.properties._collect import find

CHEAP, OTHER = find(["decision.smooth", "routing.tau_sort"])


class Clock:
    """Seconds that pass with every look at the clock."""

    def __init__(self, step):
        self.step = step
        self.now = 0.0

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def _few(monkeypatch):
    """Two kernels that are judged in no time stand for all."""
    monkeypatch.setattr(_collect, "shipped", lambda: [CHEAP, OTHER])


def run(tmp_path, *arguments, step=7.0, costs=lambda launch, call: 1e-5):
    path = tmp_path / "figures.jsonl"
    asked = [*arguments, "--rounds", "24", "--json", str(path)]
    status = main(asked, device=FakeDevice(costs), clock=Clock(step))
    return status, [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.usefixtures("_few")
def test_all_parts_run_in_order_and_say_what_they_left_out(tmp_path, capsys):
    status, rows = run(tmp_path, step=8.0)
    parts = list(dict.fromkeys(row["part"] for row in rows))
    assert parts == ["device", *PARTS, "end"]
    left_out = {row["part"]: row["left_out"] for row in rows if "left_out" in row}
    assert "planted" in left_out
    assert status == 2
    assert len(capsys.readouterr().out.splitlines()) == len(rows)
    gates = {row["kernel"]: row["verdict"] for row in rows if row["part"] == "gates"}
    assert gates == {CHEAP.name: "green", OTHER.name: "green"}
    assert [row["kernel"] for row in rows if "times_floor" in row] == [CHEAP.name, OTHER.name]


def test_equal_kernels_give_the_limit_that_the_pairs_are_held_to(tmp_path):
    def costs(launch, call):
        return 1.04e-5 if getattr(launch, "name", "") == "candidate" else 1e-5

    status, rows = run(tmp_path, "--only", "aa", "--seconds", "1000", costs=costs)
    assert (status, rows[-2]["spread"], rows[-2]["limit"]) == (0, 0.04, 1.08)
    assert [row["ratio"] for row in rows if "pair" in row] == [1.04] * 3


@pytest.mark.usefixtures("_few")
def test_a_kernel_slower_than_what_people_use_is_a_figure_and_no_failure(tmp_path):
    def costs(launch, call):
        return 1e-5 if "rivals" in launch.__module__ else 3e-5

    _, rows = run(tmp_path, "--only", "kernels", "--seconds", "60", step=20.0, costs=costs)
    figures = next(row for row in rows if row.get("kernel"))
    assert figures["ratio to torch"] == 3.0
    assert figures["microseconds"] == 30.0
    assert figures["times_floor"] > 1
    assert figures["verdict"] == "green"


@pytest.mark.usefixtures("_few")
def test_a_kernel_with_a_red_gate_gets_no_time(tmp_path, monkeypatch):
    monkeypatch.setattr("trivet.ci.timed.gate_of", lambda *given: "matches_oracle is red")
    status, rows = run(tmp_path, "--only", "gates", "--only", "kernels", step=1.0)
    timed = [row for row in rows if row["part"] == "kernels" and "kernel" in row]
    assert timed
    assert {row["reason"] for row in timed} == {"matches_oracle is red: a wrong result has no time"}
    assert all("microseconds" not in row for row in timed)
    assert status == 1


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [((), 0), (("green",), 0), (("green", "not_judged"), 2), (("not_judged", "red"), 1)],
)
def test_the_exit_status_is_that_of_the_worst_figure(verdicts, status):
    rows = [{"part": "gates", "verdict": verdict} for verdict in verdicts]
    assert status_of([{"part": "device"}, *rows]) == status


def test_without_a_gpu_it_says_so_and_needs_no_more_than_it_says():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    code = (
        "import sys\n"
        "for n in ('jinja2', 'pytest', 'yaml', 'ray', 'flint', 'pyarrow'): sys.modules[n] = None\n"
        "import trivet.ci._pairs, trivet.ci.timed, trivet.ci.timing.subjects\n"
        "from trivet.ci.on_gpu import main\n"
        "sys.exit(main(['--only', 'aa']))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sees no device: run it on a machine with a GPU" in done.stderr


@pytest.mark.night
def test_every_part_runs_whole(tmp_path):
    path = tmp_path / "figures.jsonl"
    asked = ["--rounds", "24", "--seconds", "100000", "--json", str(path)]
    status = main(asked, FakeDevice())
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert not [row for row in rows if "left_out" in row]
    assert not [row for row in rows if row.get("verdict") == "red"]
    assert status in (0, 2)
