"""Wild mutants: whatever edited code does, it gets a verdict, and nothing else is harmed."""

from dataclasses import replace
from typing import Any

import pytest
from tests.test_mutants import KERNEL

from trivet.ci.audit import collect_with_faults
from trivet.ci.cage import Limits
from trivet.ci.mutant_judge import Job, MutantJudge, Original
from trivet.ci.pool import run_jobs
from trivet.faults._mutants import Mutant, mutants_of

LIMITS = Limits(processor=6, memory=2**28)
WILD = {
    "loops": ("while True: pass", {"timeout"}),
    "allocates without end": (
        "held = []\n    while True: held.append(bytearray(2**24))",
        {"timeout", "crash"},
    ),
    "writes out of bounds": ("import ctypes; ctypes.memset(8, 0, 2**20)", {"crash"}),
    "deletes its folder": (
        "import os, shutil; shutil.rmtree(os.getcwd(), ignore_errors=True)",
        {"killed", "crash"},
    ),
    "leaves": ("import os; os._exit(3)", {"crash"}),
    "prints megabytes": ("print('x' * 2**21)", {"equivalent", "survived"}),
}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Judge the original, every wild mutant, and a plain one after them, by one worker."""
    folder = tmp_path_factory.mktemp("wild")
    (folder / "case.py").write_text(KERNEL)
    names = [str(folder / "case.py")]
    found = collect_with_faults(names)
    judge = MutantJudge(names, 0, folder, collect_with_faults, found)
    [(_, kept)] = judged(judge, [Job((0,), "original", "original")])
    original = Original(kept["laws"])
    edits = {name: wild(found[0].contract, text) for name, (text, _) in WILD.items()}
    edits["plain"] = next(m for m in mutants_of(found[0].contract) if m.replacement == "cols <= N")
    jobs = [Job((0,), name, name, edit, (original,)) for name, edit in edits.items()]
    judge.limits = LIMITS
    return dict(zip(edits, (entry for _, entry in judged(judge, jobs)), strict=True))


def judged(judge: MutantJudge, jobs: list[Job]) -> list[tuple[int, Any]]:
    events = [e for e in run_jobs(judge, jobs, 1, "fork") if e.kind != "note"]
    return sorted((event.job, event.value) for event in events)


def wild(contract: Any, text: str) -> Mutant:
    """A mutant whose host function first does something wild."""
    [some, *_] = [m for m in mutants_of(contract) if m.function == "double"]
    place = KERNEL.index("    M, N = x.shape") + 4
    return replace(some, start=place, end=place, replacement=f"{text}\n    ")


@pytest.mark.parametrize("name", WILD)
def test_a_wild_mutant_gets_a_verdict(entries: dict[str, Any], name: str) -> None:
    assert entries[name]["verdict"] in WILD[name][1], entries[name]["detail"]
    assert entries[name]["detail"] or entries[name]["witness"]


def test_the_one_after_them_is_judged_as_ever(entries: dict[str, Any]) -> None:
    assert entries["plain"]["verdict"] == "killed"


def test_no_file_but_the_workers_own_is_left_behind(
    entries: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert entries
    folders = {p.resolve() for p in tmp_path_factory.getbasetemp().glob("wild*/tmp*")}

    assert len(folders) <= 2
