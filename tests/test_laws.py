"""Every standard law turns red at its own fault of a tiny kernel, which is green without."""

from pathlib import Path

import pytest

from trivet.faults import _laws
from trivet.faults._judge import judge_fault
from trivet.properties._collect import Found
from trivet.properties._engine import judge
from trivet.properties._laws import standard_laws


def found():
    contract = _laws.tiny_contract()
    return Found("row_sums", contract, Path(_laws.__file__), "row_sums_contract", "")


def test_the_tiny_kernel_keeps_every_law():
    verdicts = judge(found().contract, name="row_sums")
    assert {v.law: (v.state, v.failure) for v in verdicts if v.state != "green"} == {}


def test_every_standard_law_has_a_fault():
    expected = {law for fault in found().contract.faults for law in fault.expects}
    assert expected == set(standard_laws())


@pytest.mark.parametrize("law", standard_laws())
def test_the_faults_of_a_law_turn_it_red(law):
    faults = [fault for fault in found().contract.faults if fault.expects == (law,)]
    assert faults
    for fault in faults:
        verdict = judge_fault(found(), fault)
        assert verdict.verdict == "killed", verdict.detail
