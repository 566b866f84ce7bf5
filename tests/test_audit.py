"""The audit: workers with limits, verdicts kept by content, parts, waivers, score and report."""

import datetime
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tests.test_mutants import KERNEL

from trivet.ci import sandbox
from trivet.ci.document import Document, audit_document, score
from trivet.ci.errors import CannotJudgeError
from trivet.ci.junit import junit
from trivet.ci.mutants import Part, without_duplicates
from trivet.ci.pool import Note, run_jobs
from trivet.ci.report import print_audit
from trivet.ci.verdicts import Store, content_of
from trivet.ci.waivers import Waiver, waive, waivers
from trivet.properties._collect import find

COMMAND = [sys.executable, "-m", "trivet.ci.main"]


def mutant(verdict: str, **fields: Any) -> Document:
    entry = {
        "id": "a1",
        "contract": "softmax",
        "operator": "mask_dropped",
        "file": "k.py",
        "line": 3,
        "replacement": "x",
        "diff": "--- k.py\n+++ k.py (mask_dropped)",
        "verdict": verdict,
        "killed_by": None,
        "witness": None,
        "detail": "",
        "code": "",
        "conventional": None,
        "needs_device": False,
    }
    return {**entry, **fields}


def work(job: str, note: Note) -> str:
    if job == "loop":
        time.sleep(60)
    if job == "child":
        subprocess.Popen(["sleep", "60"])
    return f"{job} {os.getpid()}"


def test_a_worker_that_takes_too_long_loses_its_job_only() -> None:
    started = time.monotonic()
    events = list(run_jobs(work, ["loop", "a", "b"], 2, "fork", limit=2.0))
    kinds = {event.job: event.kind for event in events}

    assert kinds == {0: "late", 1: "done", 2: "done"}
    assert {e.value for e in events if e.kind == "late"} == {"no verdict within 2 s"}
    assert time.monotonic() - started < 30


def test_a_worker_is_replaced_after_its_share_of_jobs() -> None:
    events = run_jobs(work, ["a", "b", "c", "d"], 1, "fork", jobs_each=2)
    workers = [event.value.split()[1] for event in events]

    assert workers[0] == workers[1] != workers[2] == workers[3]


def test_a_worker_has_an_empty_folder_and_says_nothing(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from trivet.ci import sandbox\n"
        "sandbox.enter(Path(sys.argv[1])); print('loud')\n"
        "here = Path.cwd(); assert not list(here.iterdir()) and os.getpgid(0) == os.getpid()\n"
        "assert os.environ['HOME'] == str(here) and here.parent == Path(sys.argv[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "")
    assert sandbox.__doc__


def test_verdicts_are_kept_by_content(tmp_path: Path) -> None:
    store = Store(tmp_path / "audit" / "verdicts.sqlite")
    store.put("key", {"verdict": "killed"})
    store.close()

    again = Store(tmp_path / "audit" / "verdicts.sqlite")
    assert again.get("key") == {"verdict": "killed"}
    assert again.get("other") is None
    again.close()


CASE = """
from helper import scale
from trivet import Contract, Tensor

def double(x):
    return scale(x)

case = Contract(kernel=double, oracles=[lambda x: 2 * x], dims={"N": 4}, args={"x": Tensor("N")})
"""


def test_content_is_that_of_every_module_the_case_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    helper, other = tmp_path / "helper.py", tmp_path / "unrelated.py"
    (tmp_path / "case.py").write_text(CASE)
    helper.write_text("def scale(x):\n    return 2 * x\n")
    [found] = find([str(tmp_path / "case.py")])
    first = content_of(found, 0)

    other.write_text("x = 1\n")
    assert content_of(found, 0) == first
    assert content_of(found, 1) != first
    helper.write_text("def scale(x):\n    return x + x\n")
    assert content_of(found, 0) != first


def test_parts_share_the_mutants_out() -> None:
    ids = [SimpleNamespace(id=f"{n:012x}") for n in range(10)]
    shards = [Part(shard=(k, 3)).of(ids) for k in (1, 2, 3)]  # type: ignore[arg-type]

    assert sorted(m.id for part in shards for m in part) == [m.id for m in ids]
    assert Part(sample=4).of(ids) == ids[:4]  # type: ignore[arg-type]


WAIVER = '[[tool.trivet.waivers]]\nmutant = "a1"\nreason = "a wider loop"\n'
ALWAYS = datetime.date(2999, 1, 1)


def holds() -> None:
    """A proof of nothing."""


def fails() -> None:
    raise AssertionError("1 is not 2")


def test_a_waiver_has_a_reason_a_proof_and_an_end(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    lines = WAIVER + 'proof = "performance only"\n'
    project.write_text(lines + "expires = 2999-01-01\n")
    assert waivers(project) == {"a1": Waiver("a1", "a wider loop", "performance only", ALWAYS)}

    project.write_text(lines + "expires = 2001-01-01\n")
    assert waivers(project) == {}
    project.write_text(lines)
    with pytest.raises(CannotJudgeError, match="needs mutant, reason, proof and expires"):
        waivers(project)
    project.write_text(WAIVER + 'proof = "trust me"\nexpires = 2999-01-01\n')
    with pytest.raises(CannotJudgeError, match="expected module:function or 'performance only'"):
        waivers(project)


def test_waivers_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.trivet]\nwaivers = "waivers.toml"\n')
    with pytest.raises(CannotJudgeError, match=r"expected \[\[waivers\]\]"):
        waivers(project)
    text = WAIVER.replace("tool.trivet.", "") + 'proof = "a:b"\nexpires = 2999-01-01\n'
    (tmp_path / "waivers.toml").write_text(text)

    assert waivers(project)["a1"].proof == "a:b"


@pytest.mark.parametrize(
    ("proof", "alike", "verdict", "detail"),
    [
        ("performance only", True, "waived", "why"),
        ("performance only", False, "survived", "it returned other results than the original"),
        (f"{__name__}:holds", False, "waived", "why"),
        (f"{__name__}:fails", True, "survived", "AssertionError: 1 is not 2"),
        (f"{__name__}:nowhere", True, "survived", "AttributeError"),
    ],
)
def test_a_waiver_holds_while_its_proof_does(
    proof: str, alike: bool, verdict: str, detail: str
) -> None:
    known = {"a1": Waiver("a1", "why", proof, ALWAYS)}
    [entry] = waive([mutant("survived", alike=alike)], known)

    assert entry["verdict"] == verdict
    assert detail in entry["detail"]
    assert waive([mutant("killed")], known) == [mutant("killed")]


def test_one_ir_counts_once() -> None:
    entries = [mutant("killed", id=i, code="c", killed_by="repeats") for i in ("a", "b")]
    entries.append(mutant("killed", id="d", code="", killed_by="repeats"))

    assert [e["verdict"] for e in without_duplicates(entries)] == ["killed", "duplicate", "killed"]


@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [
        (["killed", "equivalent", "invalid"], "green"),
        (["killed", "survived"], "red"),
        (["killed", "waived"], "red"),
        (["killed"] * 40 + ["waived"], "green"),
        (["killed", "not_judged"], "not_judged"),
        (["equivalent"], "not_judged"),
        ([], "red"),
    ],
)
def test_an_audit_is_green_when_nothing_survives(verdicts: list[str], overall: str) -> None:
    document = audit_document({}, [], [mutant(verdict) for verdict in verdicts])

    assert document["verdict"] == overall


def test_a_red_original_and_a_device_only_mutant() -> None:
    entries = [mutant("killed"), mutant("not_judged", needs_device=True)]

    assert audit_document({}, [], entries)["verdict"] == "green"
    assert audit_document({}, [], entries, ["softmax breaks repeats"])["verdict"] == "red"


def test_raw_counts_what_was_waived() -> None:
    entries = [mutant(v) for v in ("killed", "crash", "timeout", "waived", "duplicate")]

    assert score(entries) == {"raw": 0.75, "net": 1.0}
    assert score([]) == {"raw": None, "net": None}


def test_survivors_are_shown_as_diffs() -> None:
    entries = [
        mutant("survived"),
        mutant("killed", diff="unseen"),
        mutant("not_judged", detail="z"),
    ]
    document = audit_document({}, [], entries)
    stream = io.StringIO()
    print_audit(document, {"repeats"}, Console(file=stream, width=160))
    text = stream.getvalue()

    assert "+++ k.py (mask_dropped)" in text
    assert "unseen" not in text
    assert "not judged, 1 mutants: z" in text
    assert "red: 3 mutants: 1 survived, 1 killed, 1 not judged; score 50.0% raw, 50.0% net" in text
    assert junit(document).count("<failure") == 1


def audit(folder: Path, *options: str) -> tuple[Document, str, int]:
    case = folder / "case.py"
    if not case.exists():
        case.write_text(KERNEL)
    done = subprocess.run(
        [*COMMAND, "audit", "case.py", "--sample", "4", "--json", "a.json", *options],
        cwd=folder,
        env={**os.environ, "TRIVET_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    return json.loads((folder / "a.json").read_text()), done.stderr, done.returncode


def test_unchanged_code_is_not_audited_again(tmp_path: Path) -> None:
    first, judged, status = audit(tmp_path)
    second, again, _ = audit(tmp_path)

    assert len(first["mutants"]) == 4
    assert status == int(any(m["verdict"] == "survived" for m in first["mutants"]))
    assert first["mutants"] == second["mutants"]
    assert "double_contract original" in judged
    assert "double_contract original" not in again
    assert {m["killed_by"] for m in first["mutants"] if m["verdict"] == "killed"}
