"""What an audit learns for the next one, and laws that were never the first killer."""

from collections.abc import Sequence
from typing import Any

from tests.test_audit import mutant

from trivet.ci.document import Document
from trivet.ci.experience import killers_of, learned, order_of
from trivet.ci.mutant_judge import Job, Original
from trivet.ci.mutants import red_laws
from trivet.ci.proving import TRIES, proved
from trivet.faults._search import PHASES


def killed(phase: str, killer: str, seconds: dict[str, float], **fields: Any) -> Document:
    known = {"phase": phase, "killer": killer, "dtype": "float32", "seconds": seconds}
    return mutant("killed", killed_by="repeats", **known, **fields)


def test_the_phase_that_kills_most_per_second_comes_first() -> None:
    entries = [
        killed("refuses", "a", {"looks": 9.0, "refuses": 0.1}, id="h1"),
        killed("refuses", "a", {"looks": 9.0, "refuses": 0.1}, id="h2"),
        killed("looks", "b", {"looks": 0.1}, id="k1"),
    ]
    lesson = learned(entries, {"h1": "host", "h2": "host", "k1": "kernel"})["softmax"]

    assert order_of(lesson)["host"][0] == "refuses"
    assert order_of(lesson)["kernel"][0] == "looks"
    assert sorted(order_of(lesson)["host"]) == sorted(PHASES)
    assert killers_of(lesson) == {"float32": ["a", "b"]}


def test_nothing_is_known_at_first() -> None:
    assert (killers_of(None), order_of(None)) == ({}, {})


def jobs(count: int, laws: dict[str, tuple[str, ...]]) -> list[Job]:
    return [Job((0,), f"m{n}", f"k{n}", None, (Original(laws),)) for n in range(count)]


def test_a_law_that_kills_later_is_proved_by_itself() -> None:
    tried: list[Job] = []

    def run(asked: Sequence[Job]) -> list[Document]:
        tried.extend(asked)
        law = {job.key: job.originals[0].laws["float32"][0] for job in asked}
        return [
            mutant("killed", killed_by="repeats")
            if job.key == "k2/law/repeats"
            else mutant("survived", id=law[job.key])
            for job in asked
        ]

    kept = {"float32": ("matches_oracle", "repeats", "does_work")}
    found = proved({"repeats", "does_work", "promised_by_none"}, jobs(40, kept), run)

    assert found == {"repeats"}
    assert sum(job.key.endswith("/law/repeats") for job in tried) == 3
    assert sum(job.key.endswith("/law/does_work") for job in tried) == TRIES


def test_every_law_that_was_broken_counts() -> None:
    entries = [mutant("killed", killed_by="repeats", red=("repeats", "does_work"))]

    assert red_laws(entries) >= {"repeats", "does_work"}
