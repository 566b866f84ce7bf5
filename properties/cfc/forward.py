"""The cell's forward kernels: what dense and per-branch steps promise."""

from typing import Any

import numpy as np
import torch

from trivet import ANY, Contract, Tensor, reals
from trivet.impl import cfc as kernels
from trivet.oracles import cfc as oracles
from trivet.properties._expect import at_most, interval, near, same_bits, same_values
from trivet.properties.cfc.inputs import (
    ARGS,
    BAD_CELL,
    BAD_TABLE,
    BLOCKS,
    CELL,
    SLOTS,
    STATE,
    TABLE,
    Array,
    Rerun,
    renamed,
    served_channels,
    shuffled,
)

# ------------------------------------------------------------------------------ dense

cfc_step = Contract(
    kernel=kernels.step,
    oracles=[oracles.step, oracles.step_scalar],
    dims=CELL,
    args={**ARGS, **BLOCKS},
    outputs={"h_next": STATE},
    backward=kernels.step_backward,
    raises=BAD_CELL,
)
# The reduction order of a row does not depend on B.
cfc_step.bitwise("ignores_batch")


@cfc_step.law
def no_time_returns_the_state(h: Array, dt: Array, rerun: Rerun) -> None:
    """dt = 0 gives h back, equal in value."""
    same_values(rerun(dt=0 * dt), h, "h' at dt = 0")


@cfc_step.law
def state_stays_within_one_or_itself(out: Array, h: Array, bound: Array) -> None:
    """|h'| is at most max(|h|, 1), within the bound."""
    at_most(np.abs(out), np.maximum(np.abs(h), 1) + bound, "|h'|")


@cfc_step.law
def two_half_steps_equal_one(
    x: Array,
    h: Array,
    dt: Array,
    W_in: Array,
    W_rec: Array,
    b: Array,
    tau: Array,
    rerun: Rerun,
) -> None:
    """With W_rec = 0 and x fixed, two steps of dt/2 are one of dt, within the three bounds."""
    rest = {"x": x, "W_in": W_in, "W_rec": np.zeros_like(W_rec), "b": b, "tau": tau}
    half = {**rest, "dt": dt / 2}
    middle = rerun(h=h, **half)
    twice = rerun(h=middle, **half)
    once = rerun(h=h, dt=dt, **rest)
    steps = ({**half, "h": h}, {**half, "h": middle}, {**rest, "dt": dt, "h": h})
    # The second half step passes an error of the first one on, times decay <= 1.
    bounds = np.stack([interval(oracles.step, **step)[1] for step in steps])
    near(twice, once, bounds.sum(axis=0), "h' after two half steps")


@cfc_step.law
def new_share_is_accurate_for_small_steps(
    x: Array, h: Array, dt: Array, W_in: Array, W_rec: Array, b: Array, tau: Array, rerun: Rerun
) -> None:
    """At h = 0 the new state is (1 - decay) tanh(pre), to its relative accuracy, at any dt."""
    start = np.zeros_like(h)
    wanted, error = interval(
        oracles.step, x=x, h=start, dt=dt, W_in=W_in, W_rec=W_rec, b=b, tau=tau
    )
    near(rerun(h=start), wanted, error, "h' from h = 0")


@cfc_step.law
def permuting_channels_permutes_the_state(
    out: Array,
    bound: Array,
    h: Array,
    W_in: Array,
    W_rec: Array,
    b: Array,
    tau: Array,
    H: int,
    rerun: Rerun,
) -> None:
    """Channels have no order: only rounding may tell one numbering of them from another."""
    order = shuffled(H)
    square = W_rec[np.ix_(order, order)]
    again = rerun(h=h[:, order], W_in=W_in[order], W_rec=square, b=b[order], tau=tau[order])
    near(again, out[:, order], 2 * bound[:, order], "h' of permuted channels")


# ------------------------------------------------------------------------------ per branch


def out_is_the_state(h: torch.Tensor) -> dict[str, object]:
    """A buffer that branches would overwrite while others still read it."""
    return {"out": h}


def out_in_float64(out: torch.Tensor) -> dict[str, object]:
    """A buffer of another dtype."""
    return {"out": out.double()}


cfc_step_per_branch = Contract(
    kernel=kernels.step_per_branch,
    oracles=[oracles.step_per_branch, oracles.step_per_branch_scalar],
    dims=CELL | TABLE,
    args={
        **ARGS,
        "table": SLOTS,
        "out": Tensor("B H", domain=reals(-4, 4), role="inout", unread=ANY),
        **BLOCKS,
    },
    backward=kernels.step_per_branch_backward,
    raises=(
        *BAD_CELL,
        *BAD_TABLE,
        (ValueError, "out", out_is_the_state),
        (TypeError, "out", out_in_float64),
    ),
)
cfc_step_per_branch.bitwise("ignores_batch")


@cfc_step_per_branch.law
def branches_together_are_the_dense_cell(out: Array, table: Array, H: int, rerun: Rerun) -> None:
    """At every channel of a bucket the result is the dense cell's, bitwise."""
    dense = rerun.other(kernels.step)
    served = served_channels(table, H)
    same_bits(out[:, served], dense[:, served], "h' of a branch")


@cfc_step_per_branch.law
def channels_outside_every_bucket_keep_their_bits(
    out: Array, table: Array, H: int, rerun: Rerun
) -> None:
    """What the buffer held before stays at channels of no bucket and is lost at the others."""
    before = np.where(np.arange(out.size).reshape(out.shape) % 2 == 1, -0.0, np.nan)
    after = rerun(out=before)
    served = served_channels(table, H)
    same_bits(after[:, ~served], before[:, ~served], "out of no bucket")
    same_bits(after[:, served], out[:, served], "out of a bucket")


@cfc_step_per_branch.law
def permuting_channels_permutes_the_branches(
    out: Array,
    bound: Array,
    h: Array,
    W_in: Array,
    W_rec: Array,
    b: Array,
    tau: Array,
    table: Array,
    H: int,
    rerun: Rerun,
) -> None:
    """Renaming the channels, in the table too, renames the result, within the bound."""
    order = shuffled(H)
    cell: dict[str, Any] = {"h": h[:, order], "W_in": W_in[order], "b": b[order]}
    cell |= {"W_rec": W_rec[np.ix_(order, order)], "tau": tau[order]}
    again = rerun(table=renamed(table, order), **cell)
    served = served_channels(table, H)[order]
    wanted, allowed = out[:, order][:, served], 2 * bound[:, order][:, served]
    near(again[:, served], wanted, allowed, "h' of permuted channels")
