"""The audit on a Ray cluster: the report of the local run, with a node killed on the way."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.test_mutants import KERNEL

from trivet.ci.document import Document

pytest.importorskip("ray", reason="Ray is not installed: `make cluster` installs and tries it")

COMMAND = [sys.executable, "-m", "trivet.ci.main", "audit", "case.py", "--sample", "12"]
CLUSTER = """
import sys
from ray.cluster_utils import Cluster

cluster = Cluster(
    initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
)
second = cluster.add_node(num_cpus=1)
print(cluster.address, flush=True)
if sys.stdin.readline().strip() == "kill":
    cluster.remove_node(second, allow_graceful=False)
    sys.stdin.readline()
cluster.shutdown()
"""


def environment(folder: Path, cache: str) -> dict[str, str]:
    return {
        **os.environ,
        "TRIVET_CACHE": str(folder / cache),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, Any]]:
    """Two nodes of one processor each; yields their address and a call that kills the second."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        cwd=folder,
        env=environment(folder, "nodes"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def kill() -> None:
        assert process.stdin is not None
        process.stdin.write("kill\n")
        process.stdin.flush()

    with process, process.stdin, process.stdout:
        yield process.stdout.readline().strip(), kill


def report(folder: Path, name: str) -> Document:
    """Return a report without the times in it."""
    document: Document = json.loads((folder / name).read_text())
    for entry in document["mutants"]:
        entry.pop("seconds")
    return document


def test_a_cluster_that_loses_a_node_reports_what_one_machine_does(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(KERNEL)
    local = subprocess.run(
        [*COMMAND, "--workers", "1", "--json", "local.json"],
        cwd=tmp_path,
        env=environment(tmp_path, "local"),
        capture_output=True,
        text=True,
    )
    with cluster(tmp_path) as (address, kill):
        audit = subprocess.Popen(
            [*COMMAND, "--ray", address, "--json", "cluster.json"],
            cwd=tmp_path,
            env=environment(tmp_path, "cluster"),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        watchdog = threading.Timer(240, audit.kill)
        watchdog.start()
        assert audit.stderr is not None
        told = []
        with audit, audit.stderr:
            for line in audit.stderr:
                told.append(line)
                if sum("double_contract" in each for each in told) == 4:
                    kill()
        watchdog.cancel()

    judged = sorted(line for line in local.stderr.splitlines() if "double_contract" in line)
    assert sorted(line.strip() for line in told if "double_contract" in line) == judged
    assert audit.returncode == local.returncode
    assert report(tmp_path, "cluster.json") == report(tmp_path, "local.json")


def test_an_address_where_nobody_listens_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(KERNEL)
    done = subprocess.run(
        [*COMMAND, "--ray", "127.0.0.1:1"],
        cwd=tmp_path,
        env=environment(tmp_path, "cache"),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("trivet: --ray 127.0.0.1:1: no cluster answers there (")
