"""Checkpoints: whole or not at all, checked when read; what `inspect` says of broken ones."""

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from trivet.impl import _whole
from trivet.impl._perception.checkpoint import Checkpoint, CheckpointError, load, save
from trivet.impl._perception.inspect import BROKEN, SOUND, UNREADABLE, inspect
from trivet.impl.routing import RoutingRecord

BUCKET_OF = torch.tensor([1, 0, 1, 0, 0], dtype=torch.int32)
OWN = torch.tensor([[0, 1, 0, 1, 1], [1, 0, 1, 0, 0]], dtype=torch.bool)


def record_of() -> RoutingRecord:
    return RoutingRecord.publish(
        BUCKET_OF,
        torch.tensor([3, 2], dtype=torch.int32),
        torch.tensor([0, 3], dtype=torch.int32),
        torch.tensor([[1, 3, 4], [0, 2, -1]], dtype=torch.int32),
        torch.tensor([0.5, 5.0]),
        torch.tensor([4.0, torch.inf]),
    )


def checkpoint_of(step: int = 7) -> Checkpoint:
    random = torch.Generator().manual_seed(step)
    masked = {
        name: torch.where(OWN, torch.rand(2, 5, generator=random) + 0.5, 0.0)
        for name in ("w_skip", "w_skip.exp_avg", "w_skip.exp_avg_sq")
    }
    tensors = {"tau": torch.tensor([6.0, 1.0, 7.0, 2.0, 3.0]), "b": torch.tensor(float("nan"))}
    controllers = {
        "clock": {"mean": torch.rand((), generator=random, dtype=torch.float64)},
        "random": {"state": random.get_state()},
        "weight": {},
    }
    counters = {"step": step, "phase": 2, "best": 0.1, "seeded": True, "name": "h30"}
    return Checkpoint(tensors | masked, record_of(), controllers, counters)


def with_tensor(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Checkpoint:
    sound = checkpoint_of()
    changed = change(sound.tensors[name].clone())
    return dataclasses.replace(sound, tensors=dict(sound.tensors) | {name: changed})


def with_record(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Checkpoint:
    """A checkpoint with an entry of its record changed behind the record's back."""
    sound = checkpoint_of()
    entries = {key: tensor.clone() for key, tensor in record_of().tensors().items()}
    entries[name] = change(entries[name])
    return dataclasses.replace(sound, record=RoutingRecord(**entries))


def planted(row: int, channel: int, value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor[row, channel] = value
        return tensor

    return change


def same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    same_form = one.dtype == other.dtype and one.shape == other.shape
    return same_form and one.numpy().tobytes() == other.numpy().tobytes()


def same(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether two checkpoints agree to the bit."""
    tables = [(one.tensors, other.tensors)]
    if one.record is None or other.record is None:
        if one.record is not other.record:
            return False
    else:
        tables.append((one.record.tensors(), other.record.tensors()))
        if one.record.version != other.record.version:
            return False
    if list(one.controllers) != list(other.controllers) or one.counters != other.counters:
        return False
    tables += [(one.controllers[name], other.controllers[name]) for name in one.controllers]
    return all(
        set(mine) == set(theirs) and all(same_bytes(mine[name], theirs[name]) for name in mine)
        for mine, theirs in tables
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "last.safetensors"


# ------------------------------------------------------------------------ there and back


def test_everything_comes_back_to_the_bit(path: Path) -> None:
    save(path, checkpoint_of())
    assert same(load(path), checkpoint_of())
    assert not same(load(path), checkpoint_of(8))
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_equal_checkpoints_are_equal_files(path: Path) -> None:
    save(path, checkpoint_of())
    first = path.read_bytes()
    for _ in range(5):
        save(path, load(path))
        assert path.read_bytes() == first


def test_the_record_keeps_its_version(path: Path) -> None:
    record = record_of().replace(lo=torch.tensor([0.25, 5.0]))
    save(path, dataclasses.replace(checkpoint_of(), record=record))
    found = load(path).record
    assert found is not None
    assert found.version == 2


def test_before_the_transition_there_is_no_record(path: Path) -> None:
    sound = checkpoint_of()
    dense = torch.ones(2, 5)
    phase_1 = Checkpoint(dict(sound.tensors) | {"w_skip": dense}, None, {}, {})
    save(path, phase_1)
    assert same(load(path), phase_1)
    report = inspect(path)
    assert report.status == SOUND
    assert "no routing record: phase 1, 5 channels, tau 1 to 7 s" in report.lines


def test_views_of_one_buffer_are_saved_apart(path: Path) -> None:
    buffer = torch.arange(10.0)
    tensors = {"tau": buffer[1:6], "b": buffer[5:], "t": buffer.view(2, 5).t()}
    save(path, Checkpoint(tensors))
    found = load(path).tensors
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize(
    ("checkpoint", "text"),
    [
        (Checkpoint({"record.lo": torch.ones(2)}), "name must not begin with 'record.'"),
        (Checkpoint({}, controllers={"a.b": {}}), "name must hold no dot, got 'a.b'"),
    ],
)
def test_names_that_would_be_mistaken_are_refused(
    checkpoint: Checkpoint, text: str, path: Path
) -> None:
    with pytest.raises(ValueError, match=text):
        save(path, checkpoint)
    assert not path.exists()


# ------------------------------------------------------------------------ killed while writing

WRITER = """
import os, signal, sys
from pathlib import Path
from tests.test_perception_checkpoint import checkpoint_of
from trivet.impl import _whole
from trivet.impl._perception.checkpoint import save

path, moment = Path(sys.argv[1]), sys.argv[2]
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
if moment == "between":
    os.replace = die
elif moment == "after":
    _whole._keep_name = die
else:
    plain = open
    class Cut:
        def __init__(self, file): self.file = file
        def __enter__(self): return self
        def __exit__(self, *_): pass
        def write(self, data):
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            die()
    _whole.open = lambda *given: Cut(plain(*given))
save(path, checkpoint_of(8))
"""


@pytest.mark.parametrize(("moment", "step"), [("inside", 7), ("between", 7), ("after", 8)])
def test_killed_inside_a_write_leaves_one_whole_file(moment: str, step: int, path: Path) -> None:
    save(path, checkpoint_of(7))
    command = [sys.executable, "-c", WRITER, str(path), moment]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert same(load(path), checkpoint_of(step))
    save(path, checkpoint_of(9))
    assert same(load(path), checkpoint_of(9))
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, checkpoint_of(7))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_whole.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(path, checkpoint_of(8))
    assert same(load(path), checkpoint_of(7))
    assert [each.name for each in path.parent.iterdir()] == [path.name]


# ------------------------------------------------------------------------ broken files

MOMENT = "w_skip.exp_avg"
BROKEN_ONES = [
    (
        with_tensor("w_skip", planted(0, 2, 0.25)),
        r"w_skip must be \+0.0 off bucket, got 0.25 in row 0 at channel 2 of bucket 1, one of 1",
    ),
    (with_tensor("w_skip", planted(1, 1, -0.0)), r"w_skip must be \+0.0 off bucket, got -0.0"),
    (with_tensor(MOMENT, planted(0, 0, np.nan)), r"exp_avg must be \+0.0 off bucket, got nan"),
    (
        with_tensor("w_skip.exp_avg_sq", planted(1, 4, 1e-30)),
        r"exp_avg_sq must be \+0.0 off bucket, got 1",
    ),
    (
        with_tensor("w_skip.exp_avg_sq", planted(1, 0, -1.0)),
        r"exp_avg_sq must not be negative, got -1.0",
    ),
    (with_tensor(MOMENT, lambda old: old[:1]), r"w_skip.exp_avg must be like w_skip, torch.float3"),
    (with_tensor("w_skip", lambda old: old[:, :4]), r"w_skip.exp_avg must be like w_skip, torch"),
    (
        with_tensor("tau", lambda old: -old),
        "tau must be finite and positive, got -6.0 at channel 0",
    ),
    (with_tensor("tau", lambda old: old[:4]), "record is broken: bucket_of must have H = 4"),
    (
        with_record("table", lambda old: old.flip(0).contiguous()),
        "the routing record is broken: table must list the channels of bucket 0",
    ),
    (
        with_record("size", lambda old: torch.zeros_like(old)),
        "the routing record is broken: size must not be all zero",
    ),
    (
        with_record("lo", lambda old: old[:1]),
        r"the routing record is broken: lo must have shape \(N\)",
    ),
    (
        with_record("bucket_of", lambda old: old.flip(0).contiguous()),
        "the routing record is broken: table must list the channels",
    ),
]


@pytest.mark.parametrize(("checkpoint", "text"), BROKEN_ONES)
def test_a_broken_invariant_is_named_and_never_loaded(
    checkpoint: Checkpoint, text: str, path: Path
) -> None:
    save(path, checkpoint)
    with pytest.raises(CheckpointError, match=text) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    report = inspect(path)
    assert report.status == BROKEN
    assert f"inspect: {caught.value}" in report.lines


@pytest.mark.parametrize("kept", [0, 5, 60, 0.5, 0.99, -1])
def test_a_truncated_file_is_named(kept: float, path: Path) -> None:
    save(path, checkpoint_of())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if 0 < kept < 1 else int(kept)])
    with pytest.raises(CheckpointError, match=r"cannot be read, is it whole\?"):
        load(path)
    assert inspect(path).status == UNREADABLE


def test_a_flipped_bit_is_found_wherever_it_is(path: Path) -> None:
    save(path, checkpoint_of())
    whole = path.read_bytes()
    first = 8 + int.from_bytes(whole[:8], "little")
    for place in np.linspace(first, len(whole) - 1, 40, dtype=int):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        with pytest.raises(CheckpointError):
            load(path)
        assert inspect(path).status == BROKEN


def test_other_files_are_no_checkpoints(path: Path) -> None:
    save_file({"tau": torch.ones(3)}, path)
    assert inspect(path).status == UNREADABLE
    with pytest.raises(CheckpointError, match=r"must be a checkpoint of format .*, got none"):
        load(path)
    with pytest.raises(CheckpointError, match="there is no such file"):
        load(path.with_name("absent"))
    with pytest.raises(CheckpointError, match="cannot be read"):
        load(path.parent)


# ------------------------------------------------------------------------ the report


def test_inspect_prints_every_bucket(path: Path) -> None:
    dead = with_tensor("w_skip", planted(0, 3, 0.0))
    moments = {f"w_skip.{kind}": torch.zeros(2, 5) for kind in ("exp_avg", "exp_avg_sq")}
    save(path, dataclasses.replace(dead, tensors=dict(dead.tensors) | moments))
    report = inspect(path)
    zero = "off bucket 0 in w_skip, 0 in w_skip.exp_avg, 0 in w_skip.exp_avg_sq"
    assert report.status == SOUND
    assert report.lines[1:] == [
        "routing record: version 1, 5 channels in 2 buckets",
        f"bucket 0: 3 channels, tau 1 to 3 s (allowed 0.5 to 4); {zero}; dead channels: 3",
        f"bucket 1: 2 channels, tau 6 to 7 s (allowed 5 to inf); {zero}; dead channels: none",
    ]


def test_inspect_counts_what_is_off_bucket(path: Path) -> None:
    checkpoint = with_tensor("w_skip", planted(0, 2, 0.25))
    checkpoint.tensors["w_skip"][0, 0] = 1.0
    checkpoint.tensors["w_skip.exp_avg"][1, 4] = 1.0
    save(path, checkpoint)
    lines = inspect(path).lines
    assert "off bucket 2 in w_skip, 0 in w_skip.exp_avg, 0 in w_skip.exp_avg_sq" in lines[2]
    assert "off bucket 0 in w_skip, 1 in w_skip.exp_avg, 0 in w_skip.exp_avg_sq" in lines[3]
