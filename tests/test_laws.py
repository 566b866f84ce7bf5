"""Every standard law turns red at its own fault of a tiny kernel, which is green without."""

from pathlib import Path

import pytest

from trivet.faults import _laws
from trivet.faults._judge import judge_fault
from trivet.properties._collect import Found
from trivet.properties._compiled import record
from trivet.properties._engine import judge
from trivet.properties._laws import standard_laws
from trivet.properties._locks import locks_in


def found():
    contract = _laws.tiny_contract()
    return Found("row_sums", contract, Path(_laws.__file__), "row_sums_contract", "")


ON_THE_ARTIFACT = {"compiles", "precision_audit", "perf_lock"}


def test_the_tiny_kernel_keeps_every_law():
    verdicts = judge(found().contract, name="row_sums")
    other = {v.law: (v.state, v.failure) for v in verdicts if v.state != "green"}
    assert other == dict.fromkeys(ON_THE_ARTIFACT, ("elsewhere", None))


def test_the_compiler_judges_the_tiny_kernel_by_its_artifact_alone(tmp_path):
    contract = found().contract
    with locks_in(tmp_path):
        record(contract, "row_sums", "")
        verdicts = judge(contract, name="row_sums", executor="compile")
    green = {v.law: v.elements for v in verdicts if v.state == "green"}
    # Two calls, on five targets; four are asked how they round; two are locked.
    assert green == {"compiles": 10, "precision_audit": 8, "perf_lock": 4}
    assert {v.state for v in verdicts if v.law not in green} == {"elsewhere"}


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
