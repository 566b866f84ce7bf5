"""The smoothness loss: a series' mean squared change, per horizon."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor
from trivet.impl import losses as kernels
from trivet.oracles import losses as oracles
from trivet.properties._expect import near, same_bits
from trivet.properties.losses.inputs import (
    BAD_SERIES,
    PER_HORIZON,
    SERIES,
    STAGES,
    WEIGHT,
    Array,
    P,
    Rerun,
)

losses_output_smoothness = Contract(
    kernel=kernels.output_smoothness,
    oracles=[oracles.output_smoothness, oracles.output_smoothness_scalar],
    dims=SERIES,
    args={"p": P, "weight": WEIGHT, **STAGES},
    outputs={"loss": PER_HORIZON, "mean": PER_HORIZON},
    backward=kernels.output_smoothness_backward,
    raises=BAD_SERIES,
)

losses_output_smoothness_backward = Contract(
    kernel=kernels.output_smoothness_backward,
    oracles=[oracles.output_smoothness_backward, oracles.output_smoothness_backward_scalar],
    dims=SERIES,
    args={"g_loss": PER_HORIZON, "g_mean": PER_HORIZON, "p": P, "weight": WEIGHT, **STAGES},
    outputs={"dp": Tensor("K B N")},
    raises=BAD_SERIES,
)


def whole_numbers(p: Array) -> Array:
    """Small integers in place of p: sums and squares of them are exact."""
    return np.round(16 * p)


def steps_are_a_power_of_two(p: Array) -> bool:
    """Whether dividing by the number of steps is exact."""
    steps = max(p.shape[0] - 1, 0) * p.shape[1]
    return bool(steps > 0 and steps & (steps - 1) == 0)


@losses_output_smoothness.law
def a_constant_series_is_smooth(p: Array, rerun: Rerun) -> None:
    """Where nothing changes loss and mean are exactly 0."""
    for name, got in zip(("loss", "mean"), rerun(p=p[:1].repeat(len(p), 0)), strict=True):
        same_bits(got, np.zeros_like(got), f"{name} of a constant series")


@losses_output_smoothness.law
def reversing_time_changes_nothing(out: Any, bound: Any, p: Array, rerun: Rerun) -> None:
    """The series read backwards has the same loss and mean, within the bound."""
    again = rerun(p=p[::-1])
    for name, got, wanted, error in zip(("loss", "mean"), again, out, bound, strict=True):
        near(got, wanted, 2 * error, f"{name} of the reversed series")


@losses_output_smoothness.law
def reversing_time_keeps_exact_sums(p: Array, rerun: Rerun) -> None:
    """Bitwise where sums of whole numbers and a power of two of steps leave nothing to round."""
    if not steps_are_a_power_of_two(p):
        return
    forward, backward = rerun(p=whole_numbers(p)), rerun(p=whole_numbers(p)[::-1])
    same_bits(backward[1], forward[1], "mean of the reversed series")


@losses_output_smoothness_backward.law
def gradients_sum_to_zero_over_time(out: Array, bound: Array) -> None:
    """Adding one number to a whole series changes nothing: dp sums to 0 over t, in the bound."""
    near(out.sum(axis=0), np.zeros(out.shape[1:]), bound.sum(axis=0), "sum over time of dp")


@losses_output_smoothness_backward.law
def exact_gradients_sum_to_zero(p: Array, g_loss: Array, rerun: Rerun) -> None:
    """Bitwise on whole numbers where the number of steps is a power of two."""
    if not steps_are_a_power_of_two(p):
        return
    ones = np.ones_like(g_loss)
    dp = rerun(p=whole_numbers(p), g_loss=ones, g_mean=0 * ones, weight=ones)
    same_bits(dp.sum(axis=0), np.zeros(p.shape[1:]), "sum over time of dp")


@losses_output_smoothness_backward.law
def an_event_without_neighbours_has_no_gradient(p: Array, rerun: Rerun) -> None:
    """A series of one event has no step, hence gradient 0."""
    dp = rerun(p=p[:1])
    same_bits(np.abs(dp), np.zeros_like(dp), "dp of one event")
