"""Every standard law turns red at its own fault of a tiny kernel, which is green without."""

import pytest

from trivet.faults._judge import judge_fault
from trivet.faults._laws import tiny_contract
from trivet.properties._collect import in_path
from trivet.properties._engine import judge
from trivet.properties._laws import standard_laws

import trivet.faults._laws._tiny as tiny
from pathlib import Path

CONTRACT = tiny_contract()
FAULTS = {fault.name: fault for fault in CONTRACT.faults}


def found():
    path = Path(tiny.__file__)
    return next(f for f in in_path(path) if f.variable == "row_sums_contract")


def test_the_tiny_kernel_keeps_every_law():
    verdicts = judge(CONTRACT, name="row_sums")
    assert {v.law: (v.state, v.failure) for v in verdicts if v.state != "green"} == {}


def test_every_standard_law_has_a_fault():
    expected = {law for fault in CONTRACT.faults for law in fault.expects}
    assert expected == set(standard_laws())


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_turns_its_law_red(name):
    from dataclasses import replace

    verdict = judge_fault(replace(found(), contract=CONTRACT), FAULTS[name])
    assert verdict.verdict == "killed", verdict.detail
