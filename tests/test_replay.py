"""A saved failure judged again: red while the bug is there, green once it is mended."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from trivet.properties._collect import UnknownNameError
from trivet.properties._replay import replay

CASE = """
import torch
import triton
import triton.language as tl

from trivet import ANY, Choice, Contract, Tensor, sizes


@triton.jit
def add_one(x_ptr, y_ptr, n, step, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane * step, mask=lane < n, other=0.0)
    tl.store(y_ptr + lane, x + 1, mask=lane < n - 1)


def incremented(x, kind):
    y = torch.empty(x.shape, dtype=x.dtype)
    if x.numel():
        add_one[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), x.stride(0), BLOCK=32)
    return y


bumped = Contract(
    kernel=incremented,
    oracles=[lambda x: x + 1],
    dims={"N": sizes(0, 70)},
    args={"x": Tensor("N", layouts=ANY), "kind": Choice(torch.float32, torch.float64)},
)
"""
MENDED = CASE.replace("lane < n - 1", "lane < n")
LAW = "writes_every_element"


@dataclass(frozen=True)
class Saved:
    """A folder with a red contract, its witness, and what the gate printed."""

    folder: Path
    witness: str
    printed: str
    status: int


def trivet(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "trivet.ci.main", *arguments],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TRIVET_CACHE": "cache"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    (folder / "case.py").write_text(CASE)
    done = trivet(folder, "gate", "case.py", "--workers", "1", "--json", "gate.json")
    document = json.loads((folder / "gate.json").read_text())
    gates = {gate["law"]: gate for gate in document["contracts"][0]["gates"]}
    return Saved(folder, gates[LAW]["failure"]["witness"], done.stdout, done.returncode)


@pytest.fixture
def copied(saved, tmp_path, monkeypatch):
    """A copy of the folder that a test may change, made the present one."""
    folder = tmp_path / "copy"
    shutil.copytree(saved.folder, folder)
    monkeypatch.chdir(folder)
    return folder / saved.witness


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


def test_the_gate_is_red_and_names_the_command(saved):
    assert saved.status == 1
    assert saved.witness == f"cache/witnesses/bumped-{LAW}-float32.json"
    assert f"  replay: trivet replay {saved.witness}\n" in saved.printed


def test_replay_prints_the_failure_again(saved):
    done = trivet(saved.folder, "replay", saved.witness)
    assert done.returncode == 1, done.stderr
    assert done.stdout == (
        f"bumped breaks {LAW} at float32\n"
        "  Every element of every output is written by a launch or by the host.\n"
        "  out[0] was never written; 1 of 1 elements were not\n"
        "  smallest inputs found: N = 1\n"
        "    x = float32 (1,): [1.]\n"
        "    kind = torch.float32\n"
        f"  replay: trivet replay {saved.witness}\n"
    )
    assert done.stdout in saved.printed


def test_replay_of_a_mended_kernel_is_green(saved, tmp_path):
    folder = tmp_path / "mended"
    shutil.copytree(saved.folder, folder)
    (folder / "case.py").write_text(MENDED)
    done = trivet(folder, "replay", saved.witness)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"bumped keeps {LAW} at float32 on the inputs of {saved.witness}\n"


def test_replay_says_where_it_cannot_judge(saved, tmp_path):
    folder = tmp_path / "crashing"
    shutil.copytree(saved.folder, folder)
    crash = '    raise RuntimeError("no more")\n    y = torch.empty('
    (folder / "case.py").write_text(CASE.replace("    y = torch.empty(", crash))
    done = trivet(folder, "replay", saved.witness)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"trivet: bumped: {LAW}: the call did not come to its end; matches_oracle says why\n"
    )


def test_a_fatal_fault_is_not_judged(copied):
    endless = "    while tl.load(x_ptr) < 100:\n        tl.store(y_ptr, 1.0)\n    x = tl.load"
    Path("case.py").write_text(MENDED.replace("    x = tl.load", endless))
    found = replay(copied)
    assert found.failure is None
    assert "add_one" in found.not_judged


def test_inputs_outside_the_references_domain_are_not_judged(copied):
    gone = "lambda x: np.full(x.shape, np.nan)"
    Path("case.py").write_text("import numpy as np\n" + MENDED.replace("lambda x: x + 1", gone))
    found = replay(edit(copied, law="matches_oracle"))
    assert found.not_judged == "the reference turns finite inputs non-finite"


def test_a_law_that_crashes_is_not_judged(copied):
    law = "\n\n@bumped.law\ndef crashes(x):\n    return x / None\n"
    Path("case.py").write_text(MENDED + law)
    assert "the law crashed: TypeError: " in replay(edit(copied, law="crashes")).not_judged


def test_the_same_law_is_judged_on_strided_inputs_and_any_choice(copied):
    args = json.loads(copied.read_text())["args"]
    args["x"] |= {"shape": [3], "strides": [2], "offset": 1, "storage bytes": 32}
    args["x"]["hex values"] = "0000803f" * 3
    args["kind"] = {"repr": "torch.float64"}
    found = replay(edit(copied, args=args, dims={"N": 3}))
    assert found.failure.index == "out[2]"
    assert "    x = float32 (3,) with strides (2,) and storage offset 1: [1., 1., 1.]" in (
        found.failure.text
    )
    assert "    kind = torch.float64" in found.failure.text


def test_a_contract_whose_arguments_changed_is_named(copied):
    args = json.loads(copied.read_text())["args"]
    edit(copied, args={"y": args["x"], "kind": args["kind"]})
    with pytest.raises(
        ValueError, match=r"witness .*: the contract's arguments have changed: x, y"
    ):
        replay(copied)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "float16"}, r"witness .*json: the contract is no longer judged at float16"),
        ({"law": "is_nice"}, "law 'is_nice': expected one of matches_oracle"),
        ({"version": 9}, r"witness .*json: expected version 1, found 9"),
    ],
)
def test_what_is_gone_is_named(copied, changes, message):
    with pytest.raises(ValueError, match=message):
        replay(edit(copied, **changes))


def test_a_choice_that_is_gone_is_named(copied):
    args = json.loads(copied.read_text())["args"]
    edit(copied, args={**args, "kind": {"repr": "torch.float16"}})
    with pytest.raises(ValueError, match=r"argument kind: torch\.float16 is no longer a choice"):
        replay(copied)


def test_a_contract_that_is_gone_is_named(copied):
    with pytest.raises(UnknownNameError, match="did you mean bumped"):
        replay(edit(copied, source="case.py:bump"))
