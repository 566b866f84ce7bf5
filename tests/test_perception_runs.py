"""Whole runs: what is told and written, stopped anywhere and gone on with, traced or not."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.perceptions import TINY, command, contents

from trivet.impl._perception.checkpoint import Checkpoint, read, save
from trivet.impl._perception.run import LAST, REPORTS

ROOT = Path(__file__).resolve().parent.parent
STEPS, FILES = 6, 9
# In the tiny run: reports, the best of either horizon now and then, the last.
KILLS = [("write", 1), ("write", 4), ("step", 4)]
NIGHT = 20


def seeded_kills(seed: int, count: int) -> list[tuple[str, int]]:
    """Points anywhere in the run: half of them in or around a write."""
    drawn = random.Random(seed)
    kinds = ["step", "write", "rename", "renamed", "write"]
    return [
        (kind, drawn.randint(1, STEPS if kind == "step" else FILES))
        for kind in (kinds[place % len(kinds)] for place in range(count))
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of an uninterrupted run, and what it told."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return folder, command(*TINY, "-o", folder)


def test_a_run_is_told_and_written(whole: tuple[Path, str]) -> None:
    folder, text = whole
    reports = [json.loads(line) for line in (folder / REPORTS).read_text().splitlines()]
    assert [report["step"] for report in reports] == [2, 4, 6]
    assert [report["phase"] for report in reports] == [2, 2, 2]
    assert all(len(report["auc"]) == 2 for report in reports)
    assert reports[-1]["jitter_ratio"][0] == 1.0
    assert "train: transition after step 2" in text
    assert "train: step 6 phase 2: loss h2 " in text
    assert "test: h5 loss " in text
    assert f"train: 6 steps, phase 2, written to {folder}" in text
    best = max(report["auc"][0] for report in reports)
    assert read(folder / "best-h2.safetensors")[0].counters["best_auc_h2"] == best
    assert read(folder / LAST)[0].counters["step"] == 6


def killed(kind: str, count: int, folder: Path) -> None:
    """A run under `trivet run` that dies at a point, and another that goes on to the end."""
    own = [sys.executable, "-m", "tests.killed", kind, str(count), *map(str, TINY)]
    own += ["-o", str(folder)]
    routed = [sys.executable, "-m", "trivet.ci.main", "run", "--", *own]
    done = subprocess.run(routed, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), done.stderr
    last = folder / LAST
    command(*TINY, "-o", folder, *(["--resume", last] if last.exists() else []))


def check_kill(kind: str, count: int, folder: Path, whole: Path) -> None:
    killed(kind, count, folder)
    assert contents(folder) == contents(whole)


@pytest.mark.parametrize(("kind", "count"), KILLS)
def test_a_killed_run_goes_on_to_the_same_bytes(
    kind: str, count: int, tmp_path: Path, whole: tuple[Path, str]
) -> None:
    check_kill(kind, count, tmp_path / "run", whole[0])


@pytest.mark.night
@pytest.mark.parametrize(("kind", "count"), seeded_kills(20, NIGHT))
def test_a_run_killed_anywhere_goes_on_to_the_same_bytes(
    kind: str, count: int, tmp_path: Path, whole: tuple[Path, str]
) -> None:
    check_kill(kind, count, tmp_path / "run", whole[0])


def test_a_trace_changes_no_result_bit(tmp_path: Path, whole: tuple[Path, str]) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text("old\n")
    command(*TINY, "-o", tmp_path / "run", "--kernel-step-trace", trace)
    assert contents(tmp_path / "run") == contents(whole[0])
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [line["step"] for line in lines] == [step for step in range(1, 7) for _ in range(3)]
    assert {line["kname"] for line in lines} == {"smoothness_lambda"}


def test_going_on_needs_the_same_settings(tmp_path: Path, whole: tuple[Path, str]) -> None:
    last = whole[0] / LAST
    text = command(*TINY, "--seed", 1, "--resume", last, "-o", tmp_path / "o", status=2)
    assert text.splitlines()[-1] == "train: seed must be as in the checkpoint, 0, got 1"
    assert not (tmp_path / "o").exists()


def planted(folder: Path, to: Path, what: str) -> Path:
    """A copy of the last checkpoint with one thing wrong, saved as if it were right."""
    kept, _ = read(folder / LAST)
    assert kept.record is not None
    if what == "off bucket":
        channel = int((kept.record.bucket_of != 0).nonzero()[0])
        kept.tensors["w_skip"][0, channel] = 1e-30
    elif what == "swapped table":
        kept.record.table.copy_(kept.record.table.flip(0).clone())
    path = to / "planted.safetensors"
    save(path, Checkpoint(kept.tensors, kept.record, kept.controllers, kept.counters))
    if what == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    return path


@pytest.mark.parametrize(
    ("what", "status", "told"),
    [
        ("nothing", 0, "bucket 1: 2 channels, tau "),
        ("off bucket", 1, "w_skip must be +0.0 off bucket"),
        ("swapped table", 1, "the routing record is broken: table must"),
        ("truncated", 2, "cannot be read, is it whole?"),
    ],
)
def test_inspect_finds_what_is_planted(
    what: str, status: int, told: str, tmp_path: Path, whole: tuple[Path, str]
) -> None:
    text = command("inspect", planted(whole[0], tmp_path, what), status=status)
    assert told in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--size", "huge"), "--size: expected tiny or small or production, got 'huge'"),
        (("--horizons", "3,x"), "--horizons: expected positive integers like 30,100, got '3,x'"),
        (("--data", "none.csv"), "none.csv: "),
        (("--resume", "none.safetensors"), "none.safetensors: there is no such file"),
    ],
)
def test_what_cannot_be_trained_is_told_in_one_line_and_leaves_nothing(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    text = command("train", "--size", "tiny", "-o", tmp_path / "o", *words, status=2)
    [line] = text.splitlines()
    assert line.startswith("train: ")
    assert told in line
    assert not list(tmp_path.iterdir())


def test_without_a_gpu_it_says_what_to_do(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    own = [sys.executable, "-m", "trivet.impl", "train", "--size", "tiny", "-o", "o"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        own, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "train: no GPU here; on a CPU: trivet run -- python -m trivet.impl" in done.stderr


def over_the_constant(text: str) -> list[float]:
    """How far the test losses lie over those of the best constant, in percent."""
    return [float(each) for each in re.findall(r"^test: .*\((-?[\d.]+) %\)", text, re.MULTILINE)]


def test_real_labels_are_learned_and_shuffled_ones_are_not(tmp_path: Path) -> None:
    """Against the best constant in hindsight: at least 5 % better on each horizon, or on none."""
    words = ("train", "--horizons", "3,10", "--steps", 24, "--epoch", 24, "-o")
    real = over_the_constant(command(*words, tmp_path / "real"))
    shuffled = over_the_constant(command(*words, tmp_path / "shuffled", "--shuffle-labels"))
    assert len(real) == len(shuffled) == 2
    assert max(real) < -5
    assert min(shuffled) > -5
