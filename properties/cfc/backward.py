"""The cell's backward kernels as kernels of their own: memory, order and bounds at every size."""

from typing import Any

import numpy as np
import torch

from trivet import Choice, Contract, Tensor, sizes
from trivet.impl import cfc as kernels
from trivet.oracles import cfc as oracles
from trivet.properties._expect import near, same_bits, same_values
from trivet.properties.cfc.inputs import (
    ARGS,
    BAD_CELL,
    BAD_TABLE,
    BATCH,
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

# Up to 13 rows are four parts of the batch, or 13, so that the second stage has an order.
# Partial sums (parts, H (D + H + 2)) are counted in 31 bits, so channels stay few.
SUMMED = CELL | {
    "B": sizes(0, 13, production=BATCH[0]),
    "H": sizes(1, 300, production=128),
}
PARTS = Choice(16, 3, 1)
GRADIENTS = {
    "dx": Tensor("B D"),
    "dh": Tensor("B H"),
    "dW_in": Tensor("H D"),
    "dW_rec": Tensor("H H"),
    "db": Tensor("H"),
    "dtau": Tensor("H"),
}


def g_in_float64(g: torch.Tensor) -> dict[str, object]:
    """A gradient of another dtype."""
    return {"g": g.double()}


def g_of_another_batch(g: torch.Tensor) -> dict[str, object]:
    """A gradient with a row too many."""
    return {"g": torch.zeros(g.shape[0] + 1, g.shape[1])}


BAD_GRADIENT = ((TypeError, "g", g_in_float64), (ValueError, "g", g_of_another_batch))

cfc_step_backward = Contract(
    kernel=kernels.step_backward,
    oracles=[oracles.step_backward, oracles.step_backward_scalar],
    dims=SUMMED,
    args={"g": STATE, **ARGS, **BLOCKS, "parts": PARTS},
    outputs=GRADIENTS,
    raises=BAD_GRADIENT + BAD_CELL,
)

cfc_step_per_branch_backward = Contract(
    kernel=kernels.step_per_branch_backward,
    oracles=[oracles.step_per_branch_backward, oracles.step_per_branch_backward_scalar],
    dims=SUMMED | TABLE | {"M": sizes(1, "H+3", production=28)},
    args={"g": STATE, **ARGS, "table": SLOTS, **BLOCKS, "parts": PARTS},
    outputs=GRADIENTS,
    raises=BAD_GRADIENT + BAD_CELL + BAD_TABLE,
)


@cfc_step_backward.law
@cfc_step_per_branch_backward.law
def time_constants_have_no_slope_once_all_is_forgotten(dt: Array, tau: Array, rerun: Rerun) -> None:
    """Where even dt/tau overflows, decay * dt/tau is 0 and no NaN: so are the gradients of tau."""
    forever = np.full_like(dt, np.finfo(np.float32).max)
    dtau = rerun(dt=forever, tau=np.minimum(tau, np.float32(0.5)))[-1]
    same_values(dtau, np.zeros_like(dtau), "dtau")


@cfc_step_backward.law
@cfc_step_per_branch_backward.law
def negating_the_gradient_negates_every_gradient(out: Any, g: Array, rerun: Rerun) -> None:
    """Backward is linear in g, and rounding knows no sign."""
    for name, got, before in zip(GRADIENTS, rerun(g=-g), out, strict=True):
        same_bits(0.0 + got, 0.0 - before, f"{name} of -g")


def renumbered(gradients: Any, order: Array) -> tuple[Array, ...]:
    """The six gradients when new channel i is the old channel order[i]."""
    dx, dh, dW_in, dW_rec, db, dtau = gradients
    square = dW_rec[np.ix_(order, order)]
    return dx, dh[:, order], dW_in[order], square, db[order], dtau[order]


@cfc_step_backward.law
def permuting_channels_permutes_the_gradients(
    out: Any,
    bound: Any,
    g: Array,
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
    cell: dict[str, Any] = {"g": g[:, order], "h": h[:, order], "W_in": W_in[order]}
    cell |= {"W_rec": W_rec[np.ix_(order, order)], "b": b[order], "tau": tau[order]}
    wanted, allowed = renumbered(out, order), renumbered(bound, order)
    for name, got, value, error in zip(GRADIENTS, rerun(**cell), wanted, allowed, strict=True):
        near(got, value, 2 * error, f"{name} of permuted channels")


@cfc_step_per_branch_backward.law
def renaming_channels_in_the_table_renames_the_gradients(
    out: Any,
    bound: Any,
    g: Array,
    h: Array,
    W_in: Array,
    W_rec: Array,
    b: Array,
    tau: Array,
    table: Array,
    H: int,
    rerun: Rerun,
) -> None:
    """Gradients follow the original channel, wherever its slot lies, within the bound."""
    order = shuffled(H)
    cell: dict[str, Any] = {"g": g[:, order], "h": h[:, order], "W_in": W_in[order]}
    cell |= {"W_rec": W_rec[np.ix_(order, order)], "b": b[order], "tau": tau[order]}
    again = rerun(table=renamed(table, order), **cell)
    wanted, allowed = renumbered(out, order), renumbered(bound, order)
    for name, got, value, error in zip(GRADIENTS, again, wanted, allowed, strict=True):
        near(got, value, 2 * error, f"{name} of renamed channels")


@cfc_step_per_branch_backward.law
def channels_outside_every_bucket_count_as_zero(
    out: Any, bound: Any, g: Array, table: Array, H: int, rerun: Rerun
) -> None:
    """The gradients are the dense cell's with g = 0 at channels of no bucket, within the bound."""
    dense = rerun.other(kernels.step_backward, g=np.where(served_channels(table, H), g, 0.0))
    for name, got, wanted, error in zip(GRADIENTS, out, dense, bound, strict=True):
        near(got, wanted, 2 * error, f"{name} beside the dense cell's")
