"""Calls that compute for ever, or ask for all memory, end with a clear word and no verdict."""

import resource
import signal
import time

import numpy as np
import pytest
import torch
from tests.tiny import contract_of, doubled

from trivet.properties._engine import judge
from trivet.simulator.executors import Simulator
from trivet.simulator.limits import Limits, limits_of_calls

SHORT = Limits(seconds=0.3)
SMALL = Limits(memory=2**30)


def computes_for_ever(x):
    while True:
        x = x + 0


def swallows(x):
    while True:
        try:
            computes_for_ever(x)
        except Exception:
            continue


def sleeps(x):
    time.sleep(60)


def takes_gigabytes(x):
    return x + torch.ones(25 * 2**30)[: x.numel()]


def takes_gigabytes_in_numpy(x):
    return torch.from_numpy(np.ones(2**33)[: x.numel()])


def limited(kernel, limits):
    return Simulator(limits=limits).run(kernel, {"x": torch.ones(8)})


@pytest.mark.parametrize("kernel", [computes_for_ever, swallows])
def test_computing_for_ever_is_ended(kernel):
    run = limited(kernel, SHORT)
    assert run.failed.kind == "time"
    assert run.failed.fatal
    assert not run.rejected
    assert run.failed.text.startswith(
        "the call had not ended after 0.3 s of computing, at test_limits.py:"
    )
    assert run.failed.source in ("x = x + 0", "while True:")


def test_waiting_for_ever_is_ended_too():
    started = time.monotonic()
    run = limited(sleeps, SHORT)
    assert run.failed.text.startswith("the call had not ended after 1.8 s, at test_limits.py:")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("kernel", [takes_gigabytes, takes_gigabytes_in_numpy])
def test_asking_for_all_memory_is_refused(kernel):
    run = limited(kernel, SMALL)
    assert run.failed.kind == "memory"
    assert run.failed.text.startswith("the call asks for more than 1 GiB of memory, at test_lim")


def test_nothing_is_left_behind():
    limited(doubled, Limits(seconds=30, memory=2**31))
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def test_a_gate_is_not_judged_after_one_such_call(monkeypatch):
    monkeypatch.setenv("TRIVET_CALL_SECONDS", "0.5")
    found = judge(contract_of(computes_for_ever), name="endless")
    judged = [each for each in found if each.state not in ("elsewhere", "not_promised")]
    assert {each.state for each in judged} == {"not_judged"}
    assert "TRIVET_CALL_SECONDS allows more" in judged[0].reason


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_setting_that_is_no_number_is_refused(monkeypatch, text):
    monkeypatch.setenv("TRIVET_CALL_SECONDS", text)
    with pytest.raises(ValueError, match=r"TRIVET_CALL_SECONDS=.*expected a positive number"):
        limits_of_calls()
