"""Runs and sweeps from configuration to table: the same bytes however they came about."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tests.test_backtest_files import table_of
from typer.testing import CliRunner

from trivet.impl import _replay
from trivet.impl.__main__ import main
from trivet.impl._backtest import sweep
from trivet.impl._backtest.config import read_config
from trivet.impl._backtest.program import app
from trivet.impl._backtest.synthetic import synthetic
from trivet.impl._whole import written
from trivet.simulator.executors import Simulator

CONFIG = """
data: {source: synthetic, regime: trending, events: 40, seed: 2, horizons: [30, 50]}
base: {cost: 0.25, max_lots: 20, stop_multiple: 10, slots: 2}
variants:
- {threshold: 0, delta_floor: 0}
- {latency_ns: 150_000_000, max_hold_ns: 2_000_000_000}
- name: own
  policy: |
    PUSH_P 0
    CONST 0.5
    SUB
    WRITE_ORDER
    HALT
- {cost: 3, max_lots: 2}
- {conviction_floor: 1}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path


def command(*words: object, status: int = 0) -> str:
    """What the command prints, its launches on the simulator."""
    done = []

    def call() -> None:
        done.append(CliRunner().invoke(app, ["backtest", *map(str, words)]))

    run = Simulator(sanitize=False).run(call, {})
    assert run.error is None, run.error
    assert done[0].exit_code == status, done[0].output
    return str(done[0].output)


def swept(folder: Path, name: str, *options: object) -> bytes:
    command("sweep", folder / "c.yaml", "-o", folder / name, *options)
    return (folder / name).read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The sweep of CONFIG, without interruption."""
    place = tmp_path_factory.mktemp("whole")
    (place / "c.yaml").write_text(CONFIG)
    return swept(place, "r.parquet")


def test_a_sweep_is_told_and_written(folder: Path) -> None:
    text = command("sweep", folder / "c.yaml", "-o", folder / "r.parquet", "--variant", "own")
    table = pq.read_table(folder / "r.parquet")
    assert table["name"].to_pylist()[:3] == ["variant 0", "variant 1", "own"]
    assert table["events"].to_pylist() == [40] * 5
    assert sum(table["trades"].to_pylist()) > 5
    net = np.array(table["realised"]) - np.array(table["cost"]) * np.array(table["filled_lots"])
    assert (net == np.array(table["net_profit"])).all()
    mean = table["h50_raw_mean_run_len"][2].as_py()
    assert f"crt_diag h50: flips=7 mean_run_len={mean:.2f} events" in text
    told = r"^backtest: 200 simulations x events in .*, \d+ \(simulations x events\)/s$"
    assert re.search(told, text, re.M)
    assert "per_horizon_logit_diag" not in text
    assert sorted(path.name for path in folder.iterdir()) == ["c.yaml", "r.parquet"]


def test_sharpe_and_win_rate_are_of_the_trades() -> None:
    state = _replay.State.fresh(3, 1, 1)
    state.counts[4] = torch.tensor([4, 1, 2])
    state.counts[5] = torch.tensor([1, 1, 0])
    state.results[0] = torch.tensor([3.0, 5.0, 2.0])
    state.results[1] = torch.tensor([16.0, 0.0, 0.0])
    settings = _replay.Settings.of(3)
    table = sweep.table_of(["a", "b", "c"], 0, settings, state, ["h30"])
    assert table["sharpe"].to_pylist() == [1.5, 0, 0]
    assert table["win_rate"].to_pylist() == [0.25, 1, 0]


def test_blocks_ranges_and_samples_change_no_byte(
    folder: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert swept(folder, "again.parquet", "--at-once", 3) == whole
    monkeypatch.setattr(sweep, "_FIRST_EVENTS", 17)
    monkeypatch.setattr(sweep, "_LAUNCH_SECONDS", 0.0)
    flag = "--per-horizon-logit-sampling-stride"
    text = command("sweep", folder / "c.yaml", "-o", folder / "cut.parquet", flag, 7)
    assert (folder / "cut.parquet").read_bytes() == whole
    lines = re.findall(r"^per_horizon_logit_diag (h\d+): count=6 mean=", text, re.M)
    assert lines == ["h30", "h50"]


def test_uniform_and_a_sweep_of_one_give_the_same_bytes(folder: Path) -> None:
    own = "{cost: 0.25, max_lots: 20, stop_multiple: 10, delta_floor: 0}"
    data, _, _ = CONFIG.partition("base")
    (folder / "c.yaml").write_text(f"{data}variants:\n- {own}\n")
    one = swept(folder, "sweep.parquet")
    (folder / "c.yaml").write_text(f"{data}base: {own}\nvariants: {{cost: [5, 6]}}\n")
    command("run", folder / "c.yaml", "-o", folder / "run.parquet")
    assert (folder / "run.parquet").read_bytes() == one


def test_events_from_a_file_give_the_bytes_of_their_source(folder: Path, whole: bytes) -> None:
    pq.write_table(table_of(synthetic("trending", 40, 2, (30, 50))), folder / "e.parquet")
    _, found, rest = CONFIG.partition("base")
    data = "data: {source: parquet, path: e.parquet}\n"
    (folder / "c.yaml").write_text(data + found + rest)
    assert swept(folder, "r.parquet") == whole


# ------------------------------------------------------------------------ killed and gone on


class _Stopped(Exception):
    pass


def stop(folder: Path, calls: int, stride: int | None = None) -> None:
    """Stop a sweep at so many calls of progress: one when a block begins, one for each launch."""
    config = replace(read_config(folder / "c.yaml"), stride=stride)
    output = folder / "r.parquet"
    prepared = sweep.Sweep(config, config.tape(), output, at_once=3, save_every=0)
    told: list[int] = []

    def progress(work: int) -> None:
        told.append(work)
        if len(told) == calls:
            raise _Stopped

    run = Simulator(sanitize=False).run(lambda: prepared.perform(0, progress), {})
    assert isinstance(run.error, _Stopped)


# Launches end after 32 and 40 events of three variants, then after 32 and 40 of the other two; the
# one that is stopped is lost.
@pytest.mark.parametrize(("calls", "left"), [(3, 3 * 8 + 2 * 40), (4, 2 * 40), (6, 2 * 8)])
def test_a_stopped_sweep_goes_on_to_the_same_bytes(
    folder: Path, whole: bytes, calls: int, left: int
) -> None:
    stop(folder, calls)
    assert not (folder / "r.parquet").exists()
    text = command("sweep", folder / "c.yaml", "-o", folder / "r.parquet", "--at-once", 3)
    assert (folder / "r.parquet").read_bytes() == whole
    assert f"backtest: {left} simulations x events" in text
    assert not (folder / "r.parquet.partial").exists()


def test_samples_go_on_where_they_were_stopped(folder: Path) -> None:
    options = ("--at-once", 3, "--per-horizon-logit-sampling-stride", 7)
    wanted = command("sweep", folder / "c.yaml", "-o", folder / "w.parquet", *options)
    stop(folder, 3, stride=7)
    text = command("sweep", folder / "c.yaml", "-o", folder / "r.parquet", *options)
    lines = [found for found in text.splitlines() if "_diag" in found]
    assert lines == [found for found in wanted.splitlines() if "_diag" in found]


def test_checkpoints_of_something_else_are_refused(folder: Path, whole: bytes) -> None:
    stop(folder, 3)
    (folder / "c.yaml").write_text(CONFIG.replace("cost: 3", "cost: 4"))
    sweep_it = ("sweep", folder / "c.yaml", "-o", folder / "r.parquet", "--at-once", 3)
    text = command(*sweep_it, status=2)
    assert "r.parquet.partial: is of a run of another configuration" in text
    command(*sweep_it, "--restart")
    assert (folder / "r.parquet").read_bytes() != whole


def test_two_runs_do_not_write_the_same_result(folder: Path) -> None:
    stop(folder, 3)
    with open(folder / "r.parquet.partial" / "lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        text = command("sweep", folder / "c.yaml", "-o", folder / "r.parquet", status=2)
    assert "r.parquet.partial: another run is writing there" in text


def test_a_sweep_killed_at_any_time_goes_on_to_the_same_bytes(folder: Path, whole: bytes) -> None:
    own = [sys.executable, "-m", "trivet.ci.main", "run", "--"]
    own += [sys.executable, "-m", "trivet.impl", "backtest", "sweep", str(folder / "c.yaml")]
    own += ["-o", str(folder / "r.parquet"), "--at-once", "3", "--save-every", "0"]
    child = subprocess.Popen(own, start_new_session=True, stderr=subprocess.DEVNULL)
    kept = folder / "r.parquet.partial" / "block-000000.npz"
    while not kept.exists():
        assert child.poll() is None, "the sweep ended before it kept anything"
        time.sleep(0.01)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    with open(kept.parent / "lock", "w") as lock:
        # The process that held it may die a little later than the one that was waited for.
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert not (folder / "r.parquet").exists()
    text = command("sweep", folder / "c.yaml", "-o", folder / "r.parquet", "--at-once", 3)
    assert (folder / "r.parquet").read_bytes() == whole
    assert "backtest: 200 simulations x events" not in text


# ------------------------------------------------------------------------ what cannot be run


@pytest.mark.parametrize(
    ("edit", "options", "text"),
    [
        (("cost: 3", "cots: 3"), (), "line 14: variants[3] has no key 'cots'; the nearest is"),
        (("PUSH_P 0", "PUSH_P 9"), (), "variants[2].policy is no valid program: instruction 0"),
        (("trending", "slow"), ("-o", "none/r.parquet"), "there is no folder none"),
        (("trending", "slow"), ("-o", "r.yaml"), "would take the place of something else"),
        (("trending", "slow"), ("--variant", "owl"), "no variant 'owl'; the nearest is 'own'"),
        (
            (
                "synthetic, regime: trending, events: 40, seed: 2, horizons: [30, 50]",
                "csv, path: e.csv",
            ),
            (),
            "e.csv: ",
        ),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line_and_leaves_nothing(
    edit: tuple[str, str],
    options: tuple[str, ...],
    text: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    (folder / "c.yaml").write_text(CONFIG.replace(*edit))
    [line] = command("sweep", folder / "c.yaml", *options, status=2).splitlines()
    assert line.startswith("backtest: ")
    assert text in line
    assert [path.name for path in folder.iterdir()] == ["c.yaml"]


def test_without_a_gpu_it_says_what_to_do(folder: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    own = [sys.executable, "-m", "trivet.impl", "backtest", "run", "c.yaml"]
    done = subprocess.run(own, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "backtest: no GPU here; on a CPU: trivet run -- python -m trivet.impl" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["c.yaml"]


def test_a_missing_package_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "trivet.impl._backtest.program", None)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "pip install 'trivet[torch,suite]'" in capsys.readouterr().err


def test_a_file_is_written_whole_or_left_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "r"
    written(place, lambda file: file.write(b"old"))

    def fail(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        written(place, fail)
    assert place.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [place]
