"""Places that are a slice are found to be one, and nothing else is."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl

from trivet.simulator.runs import run_of

SPEC = importlib.util.spec_from_file_location(
    "runner", Path(__file__).parent / "kernels" / "runner.py"
)
runner = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(runner)


@pytest.mark.parametrize("count", [64, 8192, 8193, 20_000])
def test_consecutive_places_are_a_slice(count):
    assert run_of(np.arange(5, 5 + count)) == slice(5, 5 + count)


@pytest.mark.parametrize("swapped", [(1, 2), (8191, 8192), (0, 1), (9998, 9999)])
def test_one_place_out_of_order_is_no_slice(swapped):
    places = np.arange(10_000)
    places[list(swapped)] = places[list(reversed(swapped))]
    assert run_of(places) is places


@triton.jit
def copied(x, out, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(x + place, mask=place < n, other=7.0), mask=place < n)


def run(size, n, **settings):
    given = {"x": np.arange(size, dtype=np.float32), "out": np.zeros(n, np.float32), "n": n}
    sizes = {"STEP": settings.pop("step", 128), "BLOCK": 128}
    return given, runner.run(copied, 4, given, sizes, **settings)


def test_a_masked_tail_is_copied_and_a_tail_behind_the_end_is_a_fault():
    given, report = run(500, 500)
    assert report.faults == []
    assert np.array_equal(given["out"], given["x"])
    assert (report.elements, report.written) == (1000, 500)
    _, report = run(490, 500)
    assert runner.kinds(report) == ["out_of_bounds"]
    assert "element 490 of x (490,)" in report.faults[0].text
    assert report.faults[0].lanes == 10


def test_programs_that_overlap_are_no_slice_and_race():
    given, report = run(500, 500, step=124)
    assert runner.kinds(report) == ["same_value_write"]
    assert report.faults[0].lanes == 12
    assert np.array_equal(given["out"], given["x"])


def test_chunks_one_after_the_other_see_each_others_slices():
    _, report = run(500, 500, step=124, chunk=1)
    assert runner.kinds(report) == ["same_value_write"]
    assert report.faults[0].lanes == 12


def test_a_second_launch_in_the_same_place_writes_over_the_first():
    given = {"x": np.arange(128, dtype=np.float32), "out": np.zeros(128, np.float32), "n": 128}
    report = runner.run(copied, 2, given, {"STEP": 0, "BLOCK": 128}, chunk=1)
    assert runner.kinds(report) == ["same_value_write"]
    assert report.faults[0].lanes == 128
