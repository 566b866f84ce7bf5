"""The gates: how far an event moves the state, and how much of the old one is kept."""

from typing import Any

import numpy as np
import torch

from trivet import Choice, Contract, Tensor, reals, sizes
from trivet.impl import scan as kernels
from trivet.oracles import scan as oracles
from trivet.properties._expect import at_most, interval, near, same_bits
from trivet.properties.scan.inputs import ROWS, Array, Rerun

DIMS = {"R": ROWS, "T": sizes(0, 30, production=200), "H": sizes(1, 150, production=128)}
GATE = Tensor("R T H")
ARGS = {
    # As far below 0 as softplus still is a normal number, and as far above as it is delta.
    "delta": Tensor("R T H", domain=reals(-80, 40)),
    "A_log": Tensor("H", domain=reals(-10, 5)),
}
BLOCKS = {"block_rows": Choice(16, 4), "block_channels": Choice(64, 16)}


def delta_in_float64(delta: torch.Tensor) -> dict[str, object]:
    """Inputs of another dtype."""
    return {"delta": delta.double()}


def A_log_too_long(A_log: torch.Tensor) -> dict[str, object]:
    """Rates for a channel more."""
    return {"A_log": torch.zeros(len(A_log) + 1)}


def delta_of_another_rank(delta: torch.Tensor) -> dict[str, object]:
    """Inputs of one event."""
    return {"delta": delta[:, 0]}


def rows_that_are_no_power_of_two() -> dict[str, object]:
    """A block of rows that no tile has."""
    return {"block_rows": 12}


BAD = (
    (TypeError, "delta", delta_in_float64),
    (ValueError, "A_log", A_log_too_long),
    (ValueError, "delta", delta_of_another_rank),
    (ValueError, "block_rows", rows_that_are_no_power_of_two),
)


def g_a_in_float64(g_a: torch.Tensor) -> dict[str, object]:
    """A gradient of another dtype."""
    return {"g_a": g_a.double()}


def g_step_of_another_window(g_step: torch.Tensor) -> dict[str, object]:
    """A gradient with an event too many."""
    R, T, H = g_step.shape
    return {"g_step": torch.zeros(R, T + 1, H)}


scan_gates = Contract(
    kernel=kernels.scan_gates,
    oracles=[oracles.scan_gates, oracles.scan_gates_scalar],
    dims=DIMS,
    args={**ARGS, **BLOCKS},
    outputs={"step": GATE, "a": GATE},
    backward=kernels.scan_gates_backward,
    raises=BAD,
)
scan_gates.bitwise("ignores_batch")

scan_gates_backward = Contract(
    kernel=kernels.scan_gates_backward,
    oracles=[oracles.scan_gates_backward, oracles.scan_gates_backward_scalar],
    dims=DIMS,
    args={"g_step": GATE, "g_a": GATE, **ARGS, **BLOCKS, "parts": Choice(128, 3, 1)},
    outputs={"ddelta": GATE, "dA_log": Tensor("H")},
    raises=(
        *BAD,
        (TypeError, "g_a", g_a_in_float64),
        (ValueError, "g_step", g_step_of_another_window),
    ),
)


@scan_gates.law
def gates_stay_in_their_ranges(out: Any) -> None:
    """A step is at least 0, and what is kept lies from 0 to 1, without any slack."""
    at_most(-out[0], np.zeros_like(out[0]), "-step")
    at_most(-out[1], np.zeros_like(out[1]), "-a")
    at_most(out[1], np.ones_like(out[1]), "a")


@scan_gates.law
def far_inputs_overflow_nothing(delta: Array, rerun: Rerun) -> None:
    """At delta = 1e30 the step is delta and nothing is kept; at -1e30 it is 0 and all is."""
    for far, step, kept in ((np.float32(1e30), np.float32(1e30), 0.0), (np.float32(-1e30), 0, 1)):
        got = rerun(delta=np.full_like(delta, far))
        same_bits(got[0], np.full_like(delta, step), f"step at delta = {far:g}")
        same_bits(got[1], np.full_like(delta, kept), f"a at delta = {far:g}")


@scan_gates_backward.law
def negating_both_cotangents_negates_every_gradient(
    out: Any, g_step: Array, g_a: Array, rerun: Rerun
) -> None:
    """Backward is linear in the cotangents, and rounding knows no sign."""
    again = rerun(g_step=-g_step, g_a=-g_a)
    for name, got, before in zip(("ddelta", "dA_log"), again, out, strict=True):
        same_bits(0.0 + got, 0.0 - before, f"{name} of negated cotangents")


@scan_gates_backward.law
def shut_inputs_pass_on_their_small_slope(
    g_step: Array, delta: Array, A_log: Array, rerun: Rerun
) -> None:
    """Through the step alone ddelta keeps its relative accuracy, however small the slope."""
    shut = -np.abs(delta) - 8.0
    arguments = {"g_step": g_step, "g_a": np.zeros_like(g_step), "delta": shut}
    wanted, error = interval(oracles.scan_gates_backward, A_log=A_log, **arguments)
    near(rerun(**arguments)[0], wanted, error, "ddelta through the step")
