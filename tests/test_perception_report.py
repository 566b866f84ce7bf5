"""The epoch's numbers, and the gate on horizons that behave alike."""

import math

import numpy as np
import pytest

from trivet.impl._perception import report

NAN = math.nan


@pytest.mark.parametrize(
    ("p", "labels", "wanted"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], 1.0),
        ([0.9, 0.8, 0.2, 0.1], [0, 0, 1, 1], 0.0),
        ([0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1], 0.5),
        ([0.1, 0.4, 0.4, 0.9], [0, 1, 0, 1], 0.875),
        ([0.9, 0.1, 0.8, 0.2], [0.5, 0, 1, NAN], 1.0),
    ],
)
def test_the_area_counts_pairs_of_a_rise_and_a_fall(
    p: list[float], labels: list[float], wanted: float
) -> None:
    assert report.area_under_curve(np.array(p), np.array(labels)) == wanted


@pytest.mark.parametrize("labels", [[1, 1], [0, 0.5], [NAN, NAN]])
def test_there_is_no_area_without_both(labels: list[float]) -> None:
    assert math.isnan(report.area_under_curve(np.array([0.1, 0.9]), np.array(labels)))


@pytest.mark.parametrize(
    ("series", "wanted"),
    [
        ([0.9, 0.8, 0.1, 0.2, 0.7, 0.9], 2.0),
        ([0.9] * 7, 7.0),
        ([0.9, 0.1] * 3, 1.0),
        ([0.9, NAN, 0.8, 0.1, 0.1], 2.0),
        ([0.5, 0.5, 0.9, 0.9], 2.0),
    ],
)
def test_runs_are_stretches_on_one_side_of_a_half(series: list[float], wanted: float) -> None:
    assert report.mean_run_length(np.array(series)) == wanted


def test_the_best_constant_is_the_mean_of_the_labels() -> None:
    labels = np.array([1, 1, 1, 0, NAN])
    best = report.constant_entropy(labels)
    assert best == report.entropy(np.full(5, 0.75), labels)
    for other in (0.7, 0.8):
        assert report.entropy(np.full(5, other), labels) > best
    assert math.isnan(report.constant_entropy(np.array([NAN])))


@pytest.mark.parametrize(
    ("outputs", "labels", "red"),
    [
        ([5.0, 5.2, 5.4], [3.0, 10.0, 40.0], True),
        ([5.0, 5.2, 5.6], [3.0, 10.0, 40.0], False),
        ([5.0, 5.2, 5.4], [3.0, 10.0, 29.0], False),
        ([5.0, NAN, 5.4], [3.0, 10.0, 40.0], True),
        ([5.0, 5.2, 5.4], [3.0, 10.0, NAN], False),
        ([5.0, NAN, NAN], [3.0, 10.0, 40.0], False),
    ],
)
def test_the_gate_is_red_where_outputs_are_alike_and_labels_are_not(
    outputs: list[float], labels: list[float], red: bool
) -> None:
    assert report.alike(outputs, labels) == red


def test_what_is_not_finite_is_listed_as_none() -> None:
    assert report.listed([0.5, NAN, math.inf]) == [0.5, None, None]
