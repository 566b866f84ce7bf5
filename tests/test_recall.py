"""Planted edits are told from the original, by the sanitizers and without them."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from trivet.ci import _recall_runs, recall
from trivet.ci._recall_runs import Judge, Outcome
from trivet.faults._mutators._source import Edit


def outcomes(name, mutators, most=1):
    names = [subject.name for subject in _recall_runs.subjects("shipped")]
    notes = []
    found = Judge(mutators, most)(("shipped", names.index(name)), notes.append)
    assert len(notes) == len(found) - 1
    return found


def test_edits_of_a_shipped_kernel_are_reported_and_leave_traces():
    original, *edits = outcomes("routing.tau_clamp", ("store_mask_dropped", "load_other_dropped"))
    assert (original.mutator, original.kinds, original.truths) == ("", (), ())
    found = {each.mutator: set(each.kinds) for each in edits}
    assert "out_of_bounds" in found["store_mask_dropped"]
    # The undefined lanes are places of a second load.
    assert "out_of_bounds" in found["load_other_dropped"]


def rows_of(*given):
    rows, suspected = {name: recall.Row() for name in recall.SANITIZERS}, []
    for outcome in given:
        recall._count(outcome, rows, suspected)
    return rows, suspected


def test_a_fault_that_is_not_reported_lowers_recall():
    rows, suspected = rows_of(
        Outcome("a", "load_mask_dropped", ("out_of_bounds",), ("out of bounds",)),
        Outcome("b", "load_mask_dropped", (), ("out of bounds",)),
        Outcome("c", "load_mask_dropped", ("out_of_bounds",), ()),
        Outcome("d", "load_mask_dropped", (), ()),
    )
    row = rows["out of bounds"]
    assert (row.planted, row.faults, row.found, row.harmless) == (4, 2, 1, 1)
    assert (row.unseen, suspected) == (["b"], [])


def test_a_finding_on_an_original_needs_a_trace():
    _, suspected = rows_of(
        Outcome("right", "", ("out_of_bounds",), ()),
        Outcome("writes its input", "", ("read_only",), ("read-only",)),
    )
    assert suspected == ["right: out_of_bounds"]


@pytest.mark.parametrize(("unseen", "status"), [([], 0), (["a fault"], 1)])
def test_the_command_fails_where_a_fault_went_unseen(monkeypatch, capsys, unseen, status):
    row = {"planted": 4, "faults": 2, "found": 2, "harmless": 1, "unseen": unseen}
    result = {"version": 1, "rows": {"races": row}, "suspected": [], "skipped": []}
    monkeypatch.setattr(recall, "measure", lambda *given: result)
    assert recall.main(["shipped"]) == status
    assert "| races | 4 | 2 | 2 | 100% | 1 |" in capsys.readouterr().out


def test_one_sanitizer_alone_plants_its_own_faults(monkeypatch):
    planted = []

    def run_jobs(work, jobs, *given, **options):
        planted.append(work.mutators)
        return []

    monkeypatch.setattr(recall, "run_jobs", run_jobs)
    result = recall.measure(["shipped"], 1, 1, "read-only")
    assert [*result["rows"]] == ["read-only"]
    assert [sorted(each) for each in planted] == [["arguments_swapped", "copy_dropped"]]


def test_an_edit_reaches_who_imported_the_function(monkeypatch):
    module = importlib.import_module("trivet.impl.routing.ranges")
    text = Path(module.__file__).read_text()
    start = text.index("def tau_clamp(")
    start = text.index("-> torch.Tensor:\n", start) + len("-> torch.Tensor:\n")
    name = "tau_clamp"
    elsewhere = ModuleType("elsewhere")
    elsewhere.tau_clamp = original = getattr(module, name)
    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)
    edit = Edit(start, start, "    return None\n")
    planted = _recall_runs.Planted("by hand", module.__name__, name, 1, edit)
    with _recall_runs.swapped(planted):
        assert elsewhere.tau_clamp is module.tau_clamp is not original
    assert elsewhere.tau_clamp is module.tau_clamp is original
