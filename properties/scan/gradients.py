"""A window backward: kernels of their own, in memory, order and bounds at every size."""

from typing import Any

import numpy as np
import torch

from trivet import Choice, Contract, Tensor
from trivet.impl import scan as kernels
from trivet.oracles import scan as oracles
from trivet.properties._expect import near, same_bits, same_values
from trivet.properties.scan.inputs import (
    BAD_WINDOW,
    CHANNELS,
    PARTS,
    WINDOW,
    WINDOW_ARGS,
    Array,
    Rerun,
    cut_window,
)

GRADIENTS = {
    "da": Tensor("R T H"),
    "dstep": Tensor("R T H"),
    "dB": Tensor("R T S"),
    "dC": Tensor("R T S"),
    "dD": Tensor("H"),
    "du": Tensor("R T H"),
    "dx_0": Tensor("R H S"),
}
# Those with an axis of time.
TIMED = (0, 1, 2, 3, 5)


def g_y_in_float64(g_y: torch.Tensor) -> dict[str, object]:
    """A gradient of another dtype."""
    return {"g_y": g_y.double()}


def g_y_of_another_window(g_y: torch.Tensor) -> dict[str, object]:
    """A gradient with a row too many."""
    return {"g_y": torch.zeros(g_y.shape[0] + 1, *g_y.shape[1:])}


def g_x_T_of_other_states(g_x_T: torch.Tensor) -> dict[str, object]:
    """A gradient with a state too many."""
    return {"g_x_T": torch.zeros(*g_x_T.shape[:2], g_x_T.shape[2] + 1)}


def no_part() -> dict[str, object]:
    """A batch in no part."""
    return {"parts": 0}


scan_chunked_backward = Contract(
    kernel=kernels.scan_chunked_backward,
    oracles=[oracles.scan_chunked_backward, oracles.scan_chunked_backward_scalar],
    dims=WINDOW,
    args={
        "g_y": Tensor("R T H"),
        "g_x_T": Tensor("R H S"),
        **WINDOW_ARGS,
        "chunk": Choice(8, 4),
        "block_channels": CHANNELS,
        "parts": PARTS,
    },
    outputs=GRADIENTS,
    raises=(
        *BAD_WINDOW,
        (TypeError, "g_y", g_y_in_float64),
        (ValueError, "g_y", g_y_of_another_window),
        (ValueError, "g_x_T", g_x_T_of_other_states),
        (ValueError, "parts", no_part),
    ),
)


@scan_chunked_backward.law
def negating_both_cotangents_negates_every_gradient(
    out: Any, g_y: Array, g_x_T: Array, rerun: Rerun
) -> None:
    """Backward is linear in the cotangents, and rounding knows no sign."""
    again = rerun(g_y=-g_y, g_x_T=-g_x_T)
    for name, got, before in zip(GRADIENTS, again, out, strict=True):
        same_bits(0.0 + got, 0.0 - before, f"{name} of negated cotangents")


@scan_chunked_backward.law
def chunks_of_any_size_pass_the_same_gradients(out: Any, bound: Any, rerun: Rerun) -> None:
    """Chunks of one step, and one chunk longer than the window, give the same, within the bound."""
    for chunk in (1, 64):
        again = rerun(chunk=chunk, block_channels=8)
        for name, got, wanted, error in zip(GRADIENTS, again, out, bound, strict=True):
            near(got, wanted, 2 * error, f"{name} in chunks of {chunk}")


@scan_chunked_backward.law
def no_event_passes_the_gradient_on(
    g_y: Array,
    g_x_T: Array,
    a: Array,
    step: Array,
    B: Array,
    C: Array,
    u: Array,
    reset: Array | None,
    rerun: Rerun,
) -> None:
    """At T = 0 dx_0 is g_x_T, bitwise, and dD is 0."""
    empty = cut_window(slice(0, 0), g_y=g_y, a=a, step=step, B=B, C=C, u=u, reset=reset)
    got = rerun(**empty)
    same_bits(got[6], g_x_T, "dx_0 of no event")
    same_values(got[4], 0 * got[4], "dD of no event")


@scan_chunked_backward.law
def halves_pass_the_gradients_of_the_whole(
    out: Any,
    bound: Any,
    g_y: Array,
    a: Array,
    step: Array,
    B: Array,
    C: Array,
    u: Array,
    reset: Array | None,
    T: int,
    rerun: Rerun,
) -> None:
    """The later half first, then the earlier one from its dx_0: the gradients of the whole."""
    window = {"g_y": g_y, "a": a, "step": step, "B": B, "C": C, "u": u, "reset": reset}
    cut = T // 2
    early, late = (cut_window(part, **window) for part in (slice(0, cut), slice(cut, T)))
    forward = {name: each for name, each in early.items() if name != "g_y"}
    middle = rerun.other(kernels.scan_chunked, **forward)[1]
    second = rerun(**late, x_0=middle)
    first = rerun(**early, g_x_T=second[6])
    for at in TIMED:
        got = np.concatenate([first[at], second[at]], axis=1)
        near(got, out[at], 2 * bound[at], f"{out._fields[at]} of two halves")
    near(first[6], out[6], 2 * bound[6], "dx_0 of two halves")


@scan_chunked_backward.law
def no_gradient_crosses_a_reset(
    g_y: Array, u: Array, x_0: Array, T: int, R: int, rerun: Rerun
) -> None:
    """What comes before a reset gets none of the gradients from behind it, infinite ones or not."""
    at = T // 2
    reset = np.zeros((R, T), bool)
    reset[:, at : at + 1] = True
    later = g_y.copy()
    later[:, :at] = 0.0
    later[:, at:] = np.inf
    got = rerun(g_y=later, reset=reset)
    for place in TIMED:
        same_values(got[place][:, :at], 0 * u[:, :at, :1], f"{out_name(place)} before a reset")
    if T:
        same_values(got[6], np.zeros_like(x_0), "dx_0 before a reset")
    same_values(got[0][:, at : at + 1], 0 * u[:, at : at + 1], "da at a reset")


@scan_chunked_backward.law
def no_state_crosses_a_reset(
    out: Any, a: Array, u: Array, x_0: Array, T: int, R: int, rerun: Rerun
) -> None:
    """The gradients behind a reset do not depend on what came before, not finite or not."""
    at = T // 2
    reset = np.zeros((R, T), bool)
    reset[:, at : at + 1] = True
    wanted = rerun(reset=reset)
    spoilt = u.copy()
    spoilt[:, :at] = np.inf
    got = rerun(u=spoilt, x_0=np.full_like(x_0, np.nan), reset=reset)
    for place in TIMED:
        same_values(got[place][:, at:], wanted[place][:, at:], f"{out_name(place)} behind a reset")


def out_name(place: int) -> str:
    """The name of a gradient by its place."""
    return list(GRADIENTS)[place]
