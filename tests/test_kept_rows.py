"""Rows of a bench are taken again only while nothing they came from has changed."""

import os
import sys
from types import ModuleType

import pytest

from trivet.ci import kept_rows as rows_kept
from trivet.ci.kept_rows import keep_rows, kept_rows
from trivet.ci.measuring import Part, Row
from trivet.simulator.traffic import LineTraffic, Traffic

PART = Part(0, "case", "case.py:contract", "float32")


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Rows of a kernel whose module is a file of the test's own."""
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "case.py"
    source.write_text("first = 1\n")
    module = ModuleType("a_case_of_kept_rows")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    rows_kept._unchanged.cache_clear()
    moved = Traffic("_k", read_bytes=64, lines={"case.py:1": LineTraffic(64, 2)})
    about = {"kernel": "_k", "file": str(source), "lines": {"kernel": "case.py:1: first = 1"}}
    return [
        Row("case", PART.source, "float32 largest _k", target="sm_90", metrics={"a": 1}, **about),
        Row("case", PART.source, "float32 largest _k", target="traffic", traffic=moved, **about),
    ]


def test_rows_come_back_as_they_were(rows):
    assert kept_rows(PART) is None
    keep_rows(PART, rows)
    assert kept_rows(PART) == rows


def test_a_file_that_changed_takes_the_rows_with_it(rows):
    keep_rows(PART, rows)
    os.utime(rows[0].file, ns=(1, 1))
    assert kept_rows(PART) is None


def test_another_setting_of_triton_is_another_measurement(rows, monkeypatch):
    keep_rows(PART, rows)
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    assert kept_rows(PART) is None


def test_what_could_not_be_measured_is_measured_again(rows):
    keep_rows(PART, [*rows, PART.unmeasured("the compiler was killed")])
    assert kept_rows(PART) is None
