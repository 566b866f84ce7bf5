"""`trivet bench --static`: what gets slower in the artifact is red and names its line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SLOWER = {
    "left = tl.load(x + i, mask=ok)": "left = tl.load(x + (i ^ 1), mask=ok)",
    "right = tl.load(y + i, mask=ok)": (
        "right = tl.load(y + i, mask=ok)\n"
        "    right += tl.load(x + i, mask=ok, cache_modifier='.cg')"
    ),
    "tl.store(o + i, left + right, mask=ok)": (
        "tl.store(o + i, left, mask=ok)\n    tl.store(o + (i ^ 1), left + right, mask=ok)"
    ),
    "w = (v * v + v) * v + 1.5": "w = (v.to(tl.float64) * v + v) * v + 1.5",
    "tl.store(o + i, w, mask=ok)": "tl.atomic_add(o + i, w.to(tl.float32), mask=ok)",
    "num_warps=4": "num_warps=4, maxnreg=24",
    "acc = tl.dot(left, right, acc)": (
        "acc = tl.dot(left.to(tl.float32), right.to(tl.float32), acc, input_precision='ieee')"
    ),
    "num_stages=3": "num_stages=1",
}
# By metric: the contract it is planted in, and the text of the line that must be named.
PLANTED = {
    "load_bits": ("moves_contract", "tl.load(x + (i ^ 1), mask=ok)"),
    "bytes_read": ("moves_contract", "tl.load("),
    "store_bits": ("moves_contract", "tl.store(o + (i ^ 1), left + right, mask=ok)"),
    "bytes_written": ("moves_contract", "tl.store("),
    "double": ("curve_contract", "w = (v.to(tl.float64) * v + v) * v + 1.5"),
    "atomics": ("curve_contract", "tl.atomic_add("),
    "bytes_atomic": ("curve_contract", "tl.atomic_add("),
    "spills": ("rows_contract", "tl."),
    "local_bytes": ("rows_contract", "tl."),
    "matrix_rank": ("product_contract", "acc = tl.dot("),
    "async_copies": ("product_contract", "tl.load("),
}
NEUTRAL = {
    "def _neutral(x, o, n, BLOCK: tl.constexpr):": (
        "def _renamed(source, o, n, BLOCK: tl.constexpr):\n    # What the old name did not say."
    ),
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    v = tl.load(x + i, mask=i < n)": (
        "    first = tl.program_id(0) * BLOCK\n    i = first + tl.arange(0, BLOCK)\n"
        "    inside = i < n\n    v = tl.load(source + i, mask=inside)"
    ),
    "v * 2 + 1, mask=i < n": "1 + v * 2, mask=inside",
    "_neutral[": "_renamed[",
}


def bench(folder, *arguments):
    output = folder / "bench.json"
    environment = {**os.environ, "TRIVET_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "trivet.ci.main", "bench", *arguments, "--json", output],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    return done, json.loads(output.read_text()) if output.exists() else None


def edit(file, edits):
    text = file.read_text()
    for old, new in edits.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(HERE / "kernels/locked.py", folder / "locked.py")
    return folder


@pytest.fixture(scope="module")
def locked(project):
    return bench(project, "locked.py", "--static", "--update")


@pytest.fixture(scope="module")
def edited(project, locked):
    edit(project / "locked.py", {**SLOWER, **NEUTRAL})
    return bench(project, "locked.py", "--static")


def entries_of(document, contract):
    return [entry for entry in document["entries"] if entry["contract"] == contract]


def test_an_update_locks_every_contract_and_is_green(project, locked):
    done, document = locked
    assert done.returncode == 0, done.stdout + done.stderr
    assert {entry["verdict"] for entry in document["entries"]} == {"green"}
    locks = sorted(path.name for path in (project / "perf_locks").iterdir())
    assert locks == [
        f"locked.{name}_contract.lock.json"
        for name in ("curve", "moves", "neutral", "product", "rows")
    ]
    targets = {entry["target"] for entry in document["entries"]}
    assert targets == {"sm_80", "sm_90", "sm_100", "gfx942", "gfx1100", "traffic"}


@pytest.mark.parametrize("metric", PLANTED)
def test_a_planted_regression_is_red_and_names_metric_and_line(edited, metric):
    done, document = edited
    contract, line = PLANTED[metric]
    assert done.returncode == 1
    found = [
        change
        for entry in entries_of(document, contract)
        if entry["target"] == "sm_90"
        for change in entry["changes"]
        if change["metric"] == metric
    ]
    assert [(change["class"], line in change["line"]) for change in found] == [("HARD", True)]
    assert found[0]["line"].startswith("locked.py:")
    told = f"HARD {metric}: {found[0]['was']} -> {found[0]['now']}"
    assert told in done.stdout
    assert f"at {found[0]['line']}" in done.stdout


def test_a_neutral_refactoring_beside_them_is_green(edited):
    _, document = edited
    found = entries_of(document, "neutral_contract")
    assert len(found) == 6
    assert [(entry["verdict"], entry["changes"]) for entry in found] == [("green", [])] * 6
