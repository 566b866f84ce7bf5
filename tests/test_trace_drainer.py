"""The drainer of the trace: beside a writer, around the ring, killed, in short and plain runs."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from trivet.impl import trace
from trivet.impl._trace import Drained, Drainer, Schema, smoothness_lambda
from trivet.impl._trace.reader import Reader
from trivet.simulator.executors import Simulator

ROOT = Path(__file__).parents[1]


def launched(work: Callable[[], object]) -> None:
    """Run with launches on the simulator."""
    run = Simulator(sanitize=False).run(work, {})
    assert run.error is None, run.error


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def numbers(path: Path) -> list[float]:
    """The first value of each line, checked to be the same in all of its record."""
    found = []
    for line in lines_of(path):
        values = set(line["payload"].values())
        assert len(values) == 1, f"a torn record: {line}"
        found.append(values.pop())
    return found


def rows(start: int, stop: int) -> torch.Tensor:
    return torch.arange(start, stop).float()[:, None].expand(-1, 13).contiguous()


def by_hand(ring: trace.Ring, count: int, pause: float = 0.0) -> None:
    """Write records as a kernel would, fast: every value of record n is n."""
    words = ring.slots.numpy().view(trace.RECORD)[:, 0]
    head = ring.head.numpy()
    for n in range(int(head[0]), int(head[0]) + count):
        record = np.zeros((), trace.RECORD)
        record["magic"], record["payload"] = 0x54524956, n
        words[n % ring.capacity] = record
        head[0] = n + 1
        if pause:
            time.sleep(pause)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


# ------------------------------------------------------------------------ reader beside writer


def test_kernels_write_while_the_thread_drains(path: Path) -> None:
    ring, seen = trace.Ring.create(4096), []

    def work() -> None:
        for step in range(20):
            trace.log_tick(ring.step)
            trace.write(ring.slots, ring.head, ring.step, rows(5 * step, 5 * step + 5), 3, 0)
            seen.append(path.stat().st_size)

    with Drainer(ring, path, interval=0.001) as drainer:
        launched(work)
    assert drainer.close() == Drained(100, 100, 0)
    assert numbers(path) == list(range(100))
    assert [line["step"] for line in lines_of(path)] == [1 + n // 5 for n in range(100)]
    assert 0 < seen[-1] < path.stat().st_size, "nothing was drained while kernels wrote"


def test_a_writer_that_overtakes_tears_no_line_and_hides_no_loss(path: Path) -> None:
    ring, told = trace.Ring.create(64), []
    drainer = Drainer(ring, path, interval=0.0005, report=told.append)
    writer = threading.Thread(target=by_hand, args=(ring, 30_000))
    writer.start()
    writer.join()
    counts = drainer.close()
    found = numbers(path)
    assert counts == Drained(30_000, len(found), 30_000 - len(found))
    assert counts.lost > 0
    assert found == sorted(set(found))
    # One slot is the writer's while it may still be writing.
    assert found[-63:] == list(range(30_000 - 63, 30_000))
    assert sum(int(re.search(r"(\d+) records lost", line)[1]) for line in told) == counts.lost


class _Overtaken(Reader):
    """While it copies, three more records are written, and a fourth has begun."""

    def copy(self, first: int, stop: int) -> np.ndarray:
        copied = super().copy(first, stop)
        if self.ring.head.item() == 8:
            by_hand(self.ring, 3)
        return copied


def test_what_is_overwritten_while_it_is_copied_is_discarded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivet.impl._trace.drainer.Reader", _Overtaken)
    ring, told = trace.Ring.create(8), []
    drainer = Drainer(ring, path, interval=0.001, report=told.append)
    by_hand(ring, 8)
    wait_for(lambda: path.stat().st_size > 0)
    # Numbers 0 to 2 were overwritten meanwhile, and the slot of 3 may be under the writer's hand.
    assert drainer.close() == Drained(11, 7, 4)
    assert numbers(path) == list(range(4, 11))
    assert told == [
        f"trace: {path}: 4 records lost, overwritten before it came to them; a larger ring "
        "holds more"
    ]


# ------------------------------------------------------------------------ around the ring


def test_records_around_the_ring_all_come_when_there_is_time(path: Path) -> None:
    ring = trace.Ring.create(16)
    with Drainer(ring, path, interval=0.001) as drainer:
        for turn in range(8):
            by_hand(ring, 11)
            wait_for(lambda turn=turn: path.read_bytes().count(b"\n") == 11 * turn + 11)
    assert drainer.close() == Drained(88, 88, 0)
    assert numbers(path) == list(range(88))


def test_what_a_kernel_overwrote_is_reported(path: Path) -> None:
    ring, told = trace.Ring.create(8), []
    with Drainer(ring, path, interval=60, report=told.append) as drainer:
        launched(lambda: trace.write(ring.slots, ring.head, ring.step, rows(0, 30), 3, 0))
    assert drainer.close() == Drained(30, 8, 22)
    assert numbers(path) == list(range(22, 30))
    assert [line.split(":")[2] for line in told] == [
        " 22 records lost, overwritten before it came to them; a larger ring holds more"
    ]


def test_a_ring_that_goes_on_is_drained_from_where_it_stands(path: Path) -> None:
    ring = trace.Ring.create(8, step=100)
    by_hand(ring, 5)
    with Drainer(ring, path, interval=60) as drainer:
        launched(lambda: trace.write(ring.slots, ring.head, ring.step, rows(5, 7), 3, 0))
    assert drainer.close() == Drained(2, 2, 0)
    assert [(line["step"], line["payload"]["f0"]) for line in lines_of(path)] == [
        (100, 5),
        (100, 6),
    ]


def test_records_without_magic_or_out_of_step_are_lost_and_reported(path: Path) -> None:
    ring, told = trace.Ring.create(16, step=2**32 - 1), []
    with Drainer(ring, path, interval=60, report=told.append) as drainer:

        def work() -> None:
            for _ in range(4):
                trace.write(ring.slots, ring.head, ring.step, rows(0, 2), 3, 0)
                trace.log_tick(ring.step)

        launched(work)
        records = ring.slots.numpy().view(trace.RECORD)[:, 0]
        records["magic"][1] = 0
        records["step"][5] = 1000
        records["step"][6] = 0
    assert drainer.close() == Drained(8, 5, 3)
    assert [line["step"] for line in lines_of(path)] == [2**32 - 1, 0, 0, 1, 2]
    assert [line.split(":")[2] for line in told] == [
        " 3 records lost, without their magic number, or out of step"
    ]


# ------------------------------------------------------------------------ short runs, programs


def test_a_run_shorter_than_one_period_is_complete(path: Path) -> None:
    ring = trace.Ring.create(64)
    path.write_text("an older trace\n")
    with Drainer(ring, path) as drainer:
        assert path.read_text() == ""
        launched(lambda: trace.write(ring.slots, ring.head, ring.step, rows(0, 3), 3, 0))
    assert drainer.close() == Drained(3, 3, 0)
    assert numbers(path) == [0, 1, 2]
    assert not [each for each in threading.enumerate() if each.name == "trivet-trace"]


PROGRAM = """
import sys
from pathlib import Path
import torch
from trivet.impl import trace
from trivet.impl._trace import Drainer

ring = trace.Ring.create(64)
drainer = Drainer(ring, Path(sys.argv[1]), report=print)
payload = torch.arange(5.0)[:, None].expand(-1, 13).contiguous()
trace.write(ring.slots, ring.head, ring.step, payload, 3, 0)
if sys.argv[2] == "closes":
    print(drainer.close())
"""


@pytest.mark.parametrize("ending", ["closes", "forgets"])
def test_a_plain_synchronous_program_is_traced_whole(ending: str, path: Path) -> None:
    script = path.with_name("program.py")
    script.write_text(PROGRAM)
    trivet = [sys.executable, "-m", "trivet.ci.main", "run", "--", "python"]
    done = subprocess.run(
        [*trivet, str(script), str(path), ending], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert numbers(path) == [0, 1, 2, 3, 4]
    if ending == "closes":
        assert "Drained(written=5, drained=5, lost=0)" in done.stdout


KILLED = """
import sys, threading
from pathlib import Path
from tests.test_trace_drainer import by_hand
from trivet.impl import trace
from trivet.impl._trace import Drainer

ring = trace.Ring.create(4096)
Drainer(ring, Path(sys.argv[1]), interval=0.0005)
by_hand(ring, 10**9, pause=1e-5)
"""


def test_killed_midway_the_whole_lines_are_valid(path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], env=environment)
    try:
        wait_for(lambda: path.exists() and path.stat().st_size > 100_000)
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    found = [json.loads(line)["payload"] for line in whole.splitlines()]
    assert len(found) > 100
    assert [set(values.values()) for values in found] == [{n} for n in range(len(found))]


def test_a_file_that_cannot_be_written_loses_all_and_says_so() -> None:
    ring, told = trace.Ring.create(8), []
    drainer = Drainer(ring, Path("/dev/full"), interval=0.001, report=told.append)
    by_hand(ring, 2)
    wait_for(lambda: bool(told))
    by_hand(ring, 1)
    assert drainer.close() == Drained(3, 0, 3)
    assert [line.split(": ")[2:] for line in told] == [
        ["2 records lost, the file cannot be written", "No space left on device"],
        ["1 records lost, the file failed before"],
    ]


def test_a_drainer_that_stopped_is_reported_at_the_close(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise KeyError("a bug of ours")

    caught = []
    monkeypatch.setattr(threading, "excepthook", caught.append)
    monkeypatch.setattr("trivet.impl._trace.drainer.line_of", broken)
    ring, told = trace.Ring.create(8), []
    drainer = Drainer(ring, path, interval=0.001, report=told.append)
    by_hand(ring, 3)
    wait_for(lambda: bool(caught))
    by_hand(ring, 1)
    assert drainer.close() == Drained(4, 0, 4)
    assert told == [f"trace: {path}: 4 records lost, the drainer had stopped"]


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file or directory"):
        Drainer(trace.Ring.create(8), tmp_path / "absent" / "trace.jsonl")
    assert not [each for each in threading.enumerate() if each.name == "trivet-trace"]


def test_a_header_of_another_ring_is_an_error(path: Path) -> None:
    ring = trace.Ring(trace.Ring.create(4).header, trace.Ring.create(8).slots)
    with pytest.raises(ValueError, match="header must say capacity 8, got 4"):
        Drainer(ring, path)


# ------------------------------------------------------------------------ lines


def horizons_written(path: Path, values: list[float], kinds: tuple[int, ...]) -> None:
    ring = trace.Ring.create(16)
    row = torch.tensor(values)
    with Drainer(ring, path, [smoothness_lambda(len(values))], interval=60):

        def work() -> None:
            for kind in kinds:
                given = (ring.slots, ring.head, ring.step, row, 10 * row)
                trace.write_per_horizon(*given, 1, kind)

        launched(work)


def test_lines_of_the_smoothness_weight_name_their_fields(path: Path) -> None:
    horizons_written(path, [1.5, -2.0], (trace.INPUT, trace.STATE, trace.OUTPUT))
    known = {"step": 0, "kid": 1, "kname": "smoothness_lambda"}
    assert lines_of(path) == [
        known | {"rt": 0, "rt_name": "INPUT", "payload": {"jitter_0": 1.5, "jitter_1": -2.0}},
        known
        | {
            "rt": 1,
            "rt_name": "STATE",
            "payload": {"J_0": 1.5, "J_1": -2.0, "goal_0": 15.0, "goal_1": -20.0},
        },
        known
        | {
            "rt": 2,
            "rt_name": "OUTPUT",
            "payload": {"excess_0": 1.5, "excess_1": -2.0, "lambda_0": 15.0, "lambda_1": -20.0},
        },
    ]


@pytest.mark.parametrize("many", [1, 5, 6, 7, 9, 12, 13])
def test_more_than_six_horizons_go_on_in_a_second_record(many: int, path: Path) -> None:
    values = [float(k + 1) for k in range(many)]
    horizons_written(path, values, (trace.STATE,))
    lines = lines_of(path)
    assert len(lines) == -(-many // 6)
    merged: dict[str, float] = {}
    for line in lines:
        assert not set(merged) & set(line["payload"])
        merged |= line["payload"]
    wanted = {f"J_{k}": values[k] for k in range(many)}
    assert merged == wanted | {f"goal_{k}": 10 * values[k] for k in range(many)}


def test_values_that_are_no_numbers_are_strings(path: Path) -> None:
    horizons_written(path, [float("nan"), float("inf"), float("-inf"), -0.0], (trace.INPUT,))
    (line,) = lines_of(path)
    payload = line["payload"]
    assert list(payload.values()) == ["NaN", "Infinity", "-Infinity", 0.0]
    assert str(payload["jitter_3"]) == "-0.0"


@pytest.mark.parametrize(("kid", "kind", "kname"), [(9, 0, "unknown"), (1, 7, "smoothness_lambda")])
def test_unknown_records_keep_their_thirteen_values(
    kid: int, kind: int, kname: str, path: Path
) -> None:
    ring = trace.Ring.create(4)
    payload = torch.arange(13.0)[None] / 8
    with Drainer(ring, path, [smoothness_lambda(5)], interval=60):
        launched(lambda: trace.write(ring.slots, ring.head, ring.step, payload, kid, kind))
    (line,) = lines_of(path)
    assert line["payload"] == {f"f{k}": k / 8 for k in range(13)}
    assert (line["kname"], line["rt"]) == (kname, kind)
    assert line["rt_name"] == ("INPUT" if kind == 0 else "unknown")


def test_two_kernels_of_one_id_are_an_error(path: Path) -> None:
    twice = [smoothness_lambda(5), Schema(1, "other", {}, 5)]
    with pytest.raises(ValueError, match="kernel id 1 must be of one kernel, got smoothness_lambd"):
        Drainer(trace.Ring.create(4), path, twice)
