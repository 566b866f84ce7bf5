"""Parts of an audit: what changed since a revision, shards merged, runs that were killed."""

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.test_audit import COMMAND, mutant
from tests.test_mutants import KERNEL

from trivet.ci.document import Document, audit_document, gate_document
from trivet.ci.errors import CannotJudgeError
from trivet.ci.merge import merge
from trivet.ci.since import changed_functions

SEEDS = {"killed": 20260101}
FILE = """
LIMIT = 3
OTHER = 4


def early(x):
    return x


def late(x):
    return x + LIMIT


class Table:
    def row(self, x):
        return x
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "k.py").write_text(FILE)
    for arguments in (["init", "-q"], ["add", "k.py"], ["commit", "-q", "-m", "First"]):
        git(tmp_path, *arguments)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("return x\n\n\ndef late", "return -x\n\n\ndef late", {"early"}),
        ("LIMIT = 3", "LIMIT = 5", {"late"}),
        ("OTHER = 4", "OTHER = 5", set()),
        ("LIMIT = 3", "# a remark\nLIMIT = 3", set()),
        ("        return x\n", "        return 2 * x\n", {"Table.row"}),
    ],
)
def test_what_changed_since_a_revision(
    repository: Path, old: str, new: str, changed: set[str]
) -> None:
    file = repository / "k.py"
    file.write_text(FILE.replace(old, new))

    assert {name for _, name in changed_functions([str(file)], "HEAD")} == changed
    assert file.read_text() == FILE.replace(old, new)


def test_a_new_file_changed_as_a_whole(repository: Path) -> None:
    file = repository / "new.py"
    file.write_text(FILE)

    assert len(changed_functions([str(file)], "HEAD")) == 3


def test_a_revision_that_is_none_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotJudgeError, match="--since nowhere: no such revision"):
        changed_functions([str(repository / "k.py")], "nowhere")


def shard(number: int, *entries: Document, **part: Any) -> Document:
    asked = {"names": [], "sample": None, "since": None, "shard": [number, 2], **part}
    fault = {"name": "f", "verdict": "killed"}
    return audit_document({"seed": 0}, [fault], list(entries), unproved=["repeats"], part=asked)


Written = Callable[..., list[Path]]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(*documents: object) -> list[Path]:
        paths = [tmp_path / f"{number}.json" for number in range(len(documents))]
        for path, document in zip(paths, documents, strict=True):
            path.write_text(json.dumps(document))
        return paths

    return write


def test_merged_shards_are_the_whole(written: Written) -> None:
    one = shard(1, mutant("killed", id="b", code="c"), mutant("survived", id="d"))
    two = shard(2, mutant("killed", id="a", code="c"))
    whole = merge(written(one, two))

    assert [(m["id"], m["verdict"]) for m in whole["mutants"]] == [
        ("a", "killed"),
        ("b", "duplicate"),
        ("d", "survived"),
    ]
    assert len(whole["faults"]) == 1
    assert whole["part"]["shard"] == [1, 1]
    assert (whole["verdict"], whole["score"]["raw"]) == ("red", 0.5)


def test_a_law_that_nothing_turns_red_fails_a_whole_audit(written: Written) -> None:
    documents = [shard(number, mutant("killed", id=str(number))) for number in (1, 2)]
    named = [shard(n, mutant("killed", id=str(n)), names=["softmax"]) for n in (1, 2)]

    assert merge(written(*documents))["verdict"] == "red"
    assert merge(written(*named))["verdict"] == "green"


@pytest.mark.parametrize(
    ("documents", "text"),
    [
        ([shard(1, mutant("killed"))], "shard 2/2 is missing"),
        ([shard(1), {**shard(2), "environment": {"seed": 1}}], "seed is 1, elsewhere 0"),
        ([shard(1), shard(2, sample=3)], "asked for different names or parts"),
        ([shard(1), gate_document({"seed": 0}, [])], "gates and audits cannot be merged"),
        ([{"version": 7}], "expected a report of"),
        ([shard(1, mutant("killed")), shard(2, mutant("survived"))], "is killed in one report"),
    ],
)
def test_what_cannot_be_merged_is_named(
    written: Written, documents: list[Document], text: str
) -> None:
    with pytest.raises(CannotJudgeError, match=text):
        merge(written(*documents))


def test_gates_are_merged_by_contract(written: Written) -> None:
    gates = [
        {"law": law, "dtype": "float32", "verdict": v} for law, v in (("a", "green"), ("b", "red"))
    ]
    documents = [gate_document({"seed": 0}, [("softmax", [gate])]) for gate in gates]
    whole = merge(written(*documents))

    assert whole["contracts"] == [{"name": "softmax", "gates": gates}]
    assert whole["verdict"] == "red"


class Audits:
    """Audits of one small kernel, each in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        (folder / "case.py").write_text(KERNEL)

    def command(self, cache: str, *options: str) -> tuple[list[str], dict[str, str]]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment["TRIVET_CACHE"] = str(self.folder / cache)
        report = str(self.folder / "a.json")
        command = [*COMMAND, "audit", "case.py", *self.options, *options, "--json", report]
        return command, environment

    def run(self, cache: str, *options: str) -> Document:
        command, environment = self.command(cache, *options)
        subprocess.run(command, cwd=self.folder, env=environment, capture_output=True)
        return stripped(json.loads((self.folder / "a.json").read_text()))

    def kill_after(self, cache: str, lines: int) -> list[str]:
        """Kill -9 an audit once it has told so many verdicts; return the mutants told of."""
        command, environment = self.command(cache)
        told = []
        with subprocess.Popen(
            command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                told.append(line.rpartition(":")[0])
                if len(told) > lines:
                    process.send_signal(signal.SIGKILL)
        return told


def stripped(document: Document) -> Document:
    mutants = [{k: v for k, v in m.items() if k != "seconds"} for m in document["mutants"]]
    return {**document, "mutants": mutants}


@pytest.mark.night
def test_shards_merge_into_the_report_of_one_run(tmp_path: Path, written: Written) -> None:
    audits = Audits(tmp_path, "--sample", "5")
    whole = audits.run("one")
    shards = [audits.run("many", "--shard", f"{number}/2") for number in (1, 2)]

    assert stripped(merge(written(*shards))) == whole
    assert len(whole["mutants"]) == 5


def kill_again_and_again(folder: Path, kills: int, *options: str) -> None:
    """Kill one audit at random moments until it may finish: its report is as if undisturbed."""
    moments = random.Random(SEEDS["killed"])
    audits = Audits(folder, *options)
    told: list[str] = []
    for _ in range(kills):
        told += audits.kill_after("killed", moments.randrange(4))[:-1]
    finished = audits.run("killed")

    assert finished == audits.run("undisturbed")
    assert finished["mutants"]


def test_an_audit_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 3, "--sample", "5")


@pytest.mark.night
def test_an_audit_that_is_killed_twenty_times_goes_on_where_it_was(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 20)
