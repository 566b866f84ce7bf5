"""One event, forward and backward: the scan step of streaming inference."""

from typing import Any

import numpy as np
import torch

from trivet import Contract, Tensor
from trivet.impl import scan as kernels
from trivet.oracles import scan as oracles
from trivet.properties._expect import same_bits, same_values
from trivet.properties.scan.inputs import BAD, CHANNELS, EVENT, EVENT_ARGS, PARTS, Array, Rerun

GRADIENTS = {
    "da": Tensor("R H"),
    "dstep": Tensor("R H"),
    "dB": Tensor("R S"),
    "dC": Tensor("R S"),
    "dD": Tensor("H"),
    "du": Tensor("R H"),
    "dx": Tensor("R H S"),
}


def x_of_other_channels(x: torch.Tensor) -> dict[str, object]:
    """A state for a channel more."""
    return {"x": torch.zeros(x.shape[0], x.shape[1] + 1, x.shape[2])}


def more_states_than_a_tile(B: torch.Tensor, x: torch.Tensor) -> dict[str, object]:
    """States that one program cannot hold."""
    wide = torch.zeros(B.shape[0], 129)
    return {"B": wide, "C": wide, "x": torch.zeros(*x.shape[:2], 129)}


def g_y_in_float64(g_y: torch.Tensor) -> dict[str, object]:
    """A gradient of another dtype."""
    return {"g_y": g_y.double()}


def g_x_of_other_channels(g_x: torch.Tensor) -> dict[str, object]:
    """A gradient for a channel more."""
    return {"g_x": torch.zeros(g_x.shape[0], g_x.shape[1] + 1, g_x.shape[2])}


BAD_EVENT = (
    *BAD,
    (ValueError, "x", x_of_other_channels),
    (ValueError, "128 states", more_states_than_a_tile),
)

scan_step = Contract(
    kernel=kernels.scan_step,
    oracles=[oracles.scan_step, oracles.scan_step_scalar],
    dims=EVENT,
    args={**EVENT_ARGS, "block_channels": CHANNELS},
    outputs={"y": Tensor("R H"), "x_next": Tensor("R H S")},
    backward=kernels.scan_step_backward,
    raises=BAD_EVENT,
)
scan_step.bitwise("ignores_batch")

scan_step_backward = Contract(
    kernel=kernels.scan_step_backward,
    oracles=[oracles.scan_step_backward, oracles.scan_step_backward_scalar],
    dims=EVENT,
    args={
        "g_y": Tensor("R H"),
        "g_x": Tensor("R H S"),
        **EVENT_ARGS,
        "block_channels": CHANNELS,
        "parts": PARTS,
    },
    outputs=GRADIENTS,
    raises=(
        *BAD_EVENT,
        (TypeError, "g_y", g_y_in_float64),
        (ValueError, "g_x", g_x_of_other_channels),
    ),
)


@scan_step.law
def a_window_of_one_event_is_the_step(
    out: Any,
    a: Array,
    step: Array,
    B: Array,
    C: Array,
    D: Array,
    u: Array,
    x: Array,
    reset: Array | None,
    rerun: Rerun,
) -> None:
    """`scan_chunked` over T = 1 in chunks of 1 gives the same bits."""
    y, x_next = rerun.other(as_window)
    same_bits(y, out[0], "y of a window of one event")
    same_bits(x_next, out[1], "state after a window of one event")


def as_window(
    a: torch.Tensor,
    step: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    u: torch.Tensor,
    x: torch.Tensor,
    reset: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The event as a window of one."""
    a, step, B, C, u = (each[:, None].contiguous() for each in (a, step, B, C, u))
    cut = None if reset is None else reset[:, None].contiguous()
    y, x_next = kernels.scan_chunked(a, step, B, C, D, u, x, cut, chunk=1)
    return y[:, 0].contiguous(), x_next


@scan_step.law
def a_reset_starts_afresh(x: Array, R: int, rerun: Rerun) -> None:
    """With the reset set the state before is of no account, not a bit, finite or not."""
    reset = np.ones(R, bool)
    afresh = rerun(x=np.zeros_like(x), reset=None)
    for odd in (x, np.full_like(x, np.inf), np.full_like(x, np.nan)):
        got = rerun(x=odd, reset=reset)
        same_values(got[0], afresh[0], "y after a reset")
        same_values(got[1], afresh[1], "state after a reset")


@scan_step.law
def an_open_gate_without_input_keeps_the_state(a: Array, u: Array, x: Array, rerun: Rerun) -> None:
    """At a = 1 and u = 0 the state stays what it was, equal in value."""
    got = rerun(a=np.ones_like(a), u=0 * u, reset=None)
    same_values(got[1], x, "state of an open gate")
    same_values(rerun(a=0 * a, u=0 * u, reset=None)[1], 0 * x, "state of a shut gate")


@scan_step_backward.law
def negating_both_cotangents_negates_every_gradient(
    out: Any, g_y: Array, g_x: Array, rerun: Rerun
) -> None:
    """Backward is linear in the cotangents, and rounding knows no sign."""
    again = rerun(g_y=-g_y, g_x=-g_x)
    for name, got, before in zip(GRADIENTS, again, out, strict=True):
        same_bits(0.0 + got, 0.0 - before, f"{name} of negated cotangents")


@scan_step_backward.law
def a_reset_passes_no_gradient_to_the_state(g_y: Array, x: Array, R: int, rerun: Rerun) -> None:
    """With the reset set da and dx are 0, whatever the state and the gradients hold."""
    got = rerun(x=np.full_like(x, np.nan), g_y=np.full_like(g_y, np.inf), reset=np.ones(R, bool))
    same_values(got[0], np.zeros_like(got[0]), "da at a reset")
    same_values(got[6], np.zeros_like(x), "dx at a reset")
