"""The README's table of the audit is that of the figures kept."""

import json

from tests import pages

from trivet.ci.audit_table import FIGURES, README, figures_of, table, with_table
from trivet.ci.document import Document, audit_document


def test_the_readme_has_the_figures_that_are_kept() -> None:
    readme = README.read_text()

    assert with_table(readme, json.loads(FIGURES.read_text())) == readme, (
        "run: trivet audit --json A.json; python -m trivet.ci.audit_table A.json --write"
    )


def audited() -> Document:
    def mutant(contract: str, verdict: str, seen: bool | None) -> Document:
        return pages.mutant(1, "k.py", verdict, contract=contract, conventional=seen)

    mutants = [
        mutant("routing.tau_sort", "killed", True),
        mutant("routing.tau_clamp", "waived", None),
        mutant("routing.tau_clamp", "invalid", None),
        mutant("softmax (a.py)", "killed", False),
        mutant("scan", "survived", None),
    ]
    about = {"trivet": "1", "torch": "2", "triton": "3"}
    return audit_document(about, [], mutants, (), [{"verdict": "red"}, {"verdict": "green"}])


def test_a_family_is_a_row_and_waived_mutants_count() -> None:
    text = table(figures_of(audited()))

    assert "| routing | 3 | 2 | 1 of 2 (50.0%) | 1 of 1 (100%) |" in text
    assert "| softmax | 1 | 1 | 1 of 1 (100%) | 0 of 1 (0.0%) |" in text
    assert "| scan | 1 | 1 | 0 of 1 (0.0%) | not tried |" in text
    assert "2 right rewrites of the same kernels were judged beside them: 1 false alarm." in text


def test_the_table_stands_between_its_marks_however_often_it_is_put() -> None:
    readme = "before\n<!-- audit: begin -->\nold\n<!-- audit: end -->\nafter\n"
    figures = figures_of(audited())
    once = with_table(readme, figures)

    assert once.startswith("before\n<!-- audit: begin -->\n| kernels |")
    assert once.endswith("<!-- audit: end -->\nafter\n")
    assert with_table(once, figures) == once
