"""What laws compare with: signs of zeros, NaN, bounds, and the text of a failure."""

import numpy as np
import pytest

from trivet.properties._expect import at_most, near, same_bits, same_values

NAN = np.nan


def test_zeros_of_two_signs_are_equal_values_and_unequal_bits() -> None:
    same_values(np.array([-0.0]), np.array([0.0]), "x")
    with pytest.raises(AssertionError, match=r"x\[1\] = -0\.0, wanted 0\.0; 1 of 2 elements"):
        same_bits(np.array([1.0, -0.0]), np.array([1.0, 0.0]), "x")


def test_nan_equals_nan_alone() -> None:
    same_bits(np.array([NAN]), np.array([NAN]), "x")
    same_values(np.array([NAN]), np.array([NAN]), "x")
    near(np.array([NAN]), np.array([NAN]), np.array([0.0]), "x")
    for compare in (same_bits, same_values):
        with pytest.raises(AssertionError):
            compare(np.array([NAN]), np.array([0.0]), "x")
    with pytest.raises(AssertionError):
        near(np.array([NAN]), np.array([0.0]), np.array([np.inf]), "x")


def test_a_bound_is_met_and_missed() -> None:
    near(np.array([1.0, np.inf]), np.array([1.5, np.inf]), np.array([0.5, 0.0]), "y")
    text = r"y\[0, 1\] = 2\.0, wanted 1\.0, bound 0\.5; 1 of 2 elements are wrong"
    with pytest.raises(AssertionError, match=text):
        near(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0]]), np.array([[0.5, 0.5]]), "y")


def test_nan_is_at_most_nothing() -> None:
    at_most(np.array([1.0]), np.array([1.0]), "z")
    with pytest.raises(AssertionError, match=r"z\[0\] = nan, at most inf"):
        at_most(np.array([NAN]), np.array([np.inf]), "z")
