"""Worker processes: one that dies loses its job, not the run."""

import multiprocessing
import os
import signal
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from trivet.ci.pool import Event, Note, run_jobs, start_method


def work(job: Any, note: Note) -> Any:
    if job == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if job == "leave":
        os._exit(3)
    if job == "raise":
        raise ValueError("wrong size")
    note(f"at {job}")
    return job * 2


def outcomes(events: list[Event]) -> dict[int, tuple[str, Any]]:
    return {event.job: (event.kind, event.value) for event in events if event.kind != "note"}


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_every_job_has_one_outcome(workers: int) -> None:
    events = list(run_jobs(work, [1, 2, 3, 4, 5], workers, "fork"))

    assert outcomes(events) == {n: ("done", 2 * n + 2) for n in range(5)}
    notes = {(event.job, event.value) for event in events if event.kind == "note"}
    assert notes == {(n, f"at {n + 1}") for n in range(5)}


def test_a_dead_worker_loses_its_own_job_only() -> None:
    events = list(run_jobs(work, ["die", 1, "leave", 2, "raise", 3], 2, "fork"))

    assert outcomes(events) == {
        0: ("lost", "the worker was ended by SIGKILL"),
        1: ("done", 2),
        2: ("lost", "the worker ended with exit code 3"),
        3: ("done", 4),
        4: ("failed", "ValueError: wrong size"),
        5: ("done", 6),
    }


def test_no_worker_is_left_when_the_caller_stops_early() -> None:
    events = run_jobs(work, [1, 2, 3, 4], 2, "fork")
    next(events)
    events.close()  # type: ignore[attr-defined]

    assert multiprocessing.active_children() == []


def test_no_jobs_need_no_worker() -> None:
    assert list(run_jobs(work, [], 2, "fork")) == []


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS frameworks do not survive a fork")
def test_torch_with_several_threads_must_not_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads, method in ((1, "fork"), (8, "spawn")):
        fake = SimpleNamespace(get_num_threads=lambda threads=threads: threads)
        monkeypatch.setitem(sys.modules, "torch", fake)
        assert start_method() == method


def silent(job: Any, note: Note) -> Any:
    note("starts")
    time.sleep(job)
    return job


def test_a_job_that_says_nothing_for_too_long_is_ended() -> None:
    events = list(run_jobs(silent, [60, 0], 1, "fork", quiet=0.5))

    assert outcomes(events) == {0: ("late", "no word within 0.5 s"), 1: ("done", 0)}


def test_a_slow_job_gives_signs_of_life() -> None:
    events = list(run_jobs(silent, [2.5], 1, "fork", slow=1.0))

    assert [event.value for event in events if event.kind == "slow"] == [1, 2]
    assert events[-1] == Event("done", 0, 2.5)
