"""Single events: a step from given states, and the event after a window."""

from typing import Any

import numpy as np
import torch

from trivet import Contract, Tensor, reals
from trivet.impl import model as kernels
from trivet.oracles import model as oracles
from trivet.properties._expect import same_bits
from trivet.properties.model.inputs import (
    BAD_ROUTING,
    BLOCKS,
    CELL,
    DIMS,
    EVENT,
    EVENTS,
    HEAD,
    HEADS,
    ROWS,
    SECONDS,
    SLOTS,
    TABLE,
    W_COMPACT,
    W_SKIP,
    WINDOW,
    Array,
    Rerun,
    dt_of_another_batch,
    no_event,
    served,
    state_of_another_batch,
    tau_of_zero,
    x_in_float64,
    x_of_another_width,
)

STATES = reals(-2, 2)
OUTPUTS = {
    "logits": Tensor("B N"),
    "p": Tensor("B N"),
    "states": Tensor("B H"),
    "scan_after": Tensor("L B H S"),
}

model_step = Contract(
    kernel=kernels.step,
    oracles=[oracles.step, oracles.step_scalar],
    dims=ROWS | {name: DIMS[name] for name in "DHSL"} | HEADS | TABLE,
    args={
        **EVENT,
        "state": Tensor("B H", domain=STATES),
        "scan_states": Tensor("L B H S", domain=STATES),
        **BLOCKS,
        **CELL,
        **HEAD,
        "w_compact": W_COMPACT,
        "table": SLOTS,
    },
    outputs=OUTPUTS,
    raises=(
        (TypeError, "x", x_in_float64),
        (ValueError, "W_x", x_of_another_width),
        (ValueError, "dt", dt_of_another_batch),
        (ValueError, "state", state_of_another_batch),
        (ValueError, "tau", tau_of_zero),
        *BAD_ROUTING,
    ),
)

model_after_window = Contract(
    kernel=kernels.after_window,
    oracles=[oracles.after_window, oracles.after_window_scalar],
    dims=ROWS | DIMS | HEADS | TABLE,
    args={
        **WINDOW,
        "x_next": Tensor("B D", domain=EVENTS),
        "dt_next": Tensor("B", domain=SECONDS),
        **BLOCKS,
        "q": Tensor("H"),
        **CELL,
        **HEAD,
        "w_skip": W_SKIP,
        "table": SLOTS,
    },
    outputs=OUTPUTS,
    raises=((ValueError, "x", no_event), *BAD_ROUTING),
)


@model_step.law
def channels_of_no_bucket_keep_their_state(out: Any, state: Array, table: Array, H: int) -> None:
    """A branch writes the channels of its bucket and nothing else."""
    free = ~served(table, H)
    same_bits(out[2][:, free], state[:, free], "states of channels in no bucket")


@model_step.law
def no_time_keeps_the_recurrent_state(state: Array, dt: Array, rerun: Rerun) -> None:
    """At dt = 0 the recurrent state stays, equal in value, however the scan states move."""
    same_bits(0 + rerun(dt=0 * dt)[2], 0 + state, "state at dt = 0")


@model_step.law
def packed_weights_are_those_of_the_window(
    out: Any, w_compact: Array, table: Array, H: int, rerun: Rerun
) -> None:
    """Weights that no bucket owns, behind the packed ones, change no bit of the logits."""
    own = int((table >= 0).sum())
    other = np.where(np.arange(H) < own, w_compact, np.nan)
    same_bits(rerun(w_compact=other)[0], out[0], "logits")


def states_of_the_seed(
    x: torch.Tensor, dt: torch.Tensor, x_next: torch.Tensor, dt_next: torch.Tensor, **weights: Any
) -> tuple[torch.Tensor, ...]:
    """The window's last logits, p and state, and the scan states after K + 1 single steps."""
    blocks = [weights[name] for name in BLOCKS]
    logits, p, states = kernels.window(x, dt, **weights)
    _, scan_states = kernels.next_features(x_next, kernels.seed(x, *blocks), *blocks)
    return logits[-1], p[-1], states[-1], scan_states


@model_after_window.law
def seeded_state_is_the_windows_last(dt_next: Array, rerun: Rerun) -> None:
    """Seeding copies the state at event K - 1, bitwise: at dt = 0 the next event shows it."""
    last = rerun.other(states_of_the_seed)[2]
    same_bits(0 + rerun(dt_next=0 * dt_next)[2], 0 + last, "state after a window and no time")


@model_after_window.law
def seeded_scan_states_are_those_of_single_steps(out: Any, rerun: Rerun) -> None:
    """Seeding replays the window's events one by one, bitwise."""
    same_bits(out[3], rerun.other(states_of_the_seed)[3], "scan states after K + 1 events")
