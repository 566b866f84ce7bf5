"""Windows: the features, and the whole forward pass in both phases."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor
from trivet.impl import model as kernels
from trivet.oracles import model as oracles
from trivet.properties._expect import near, same_bits
from trivet.properties.model.inputs import (
    BAD_ROUTING,
    BLOCKS,
    CELL,
    DIMS,
    HEAD,
    HEADS,
    ROWS,
    SLOTS,
    TABLE,
    W_SKIP,
    WINDOW,
    Array,
    Rerun,
    dt_of_another_batch,
    no_event,
    served,
    tau_of_zero,
    x_in_float64,
    x_of_another_width,
)

WEIGHTS = {**BLOCKS, "q": Tensor("H"), **CELL, **HEAD, "w_skip": W_SKIP}
OUTPUTS = {
    "logits": Tensor("K B N"),
    "p": Tensor("K B N"),
    "states": Tensor("K B H"),
}
BAD = (
    (TypeError, "x", x_in_float64),
    (ValueError, "W_x", x_of_another_width),
    (ValueError, "dt", dt_of_another_batch),
    (ValueError, "x", no_event),
    (ValueError, "tau", tau_of_zero),
)

model_features = Contract(
    kernel=kernels.features,
    oracles=[oracles.features, oracles.features_scalar],
    dims=ROWS | DIMS,
    args={"x": WINDOW["x"], **BLOCKS},
    outputs={"u": Tensor("B K H")},
)

model_window_dense = Contract(
    kernel=kernels.window,
    oracles=[oracles.window_dense, oracles.window_dense_scalar],
    dims=ROWS | DIMS | HEADS,
    args={**WINDOW, **WEIGHTS},
    outputs=OUTPUTS,
    raises=BAD,
)

model_window = Contract(
    kernel=kernels.window,
    oracles=[oracles.window, oracles.window_scalar],
    dims=ROWS | DIMS | HEADS | TABLE,
    args={**WINDOW, **WEIGHTS, "table": SLOTS},
    outputs=OUTPUTS,
    raises=BAD + BAD_ROUTING,
)


@model_features.law
def later_events_change_no_earlier_feature(
    out: Array, bound: Array, x: Array, rerun: Rerun
) -> None:
    """The scan blocks look back alone: another last event leaves all features before it.

    Within the bound: a matrix product may sum in another order where memory lies otherwise.
    """
    other = x.copy()
    other[:, -1] += 1
    before = 2 * bound[:, :-1]
    near(rerun(x=other)[:, :-1], out[:, :-1], before, "features before the last event")


@model_window_dense.law
@model_window.law
def no_time_keeps_the_first_state(out: Any, dt: Array, rerun: Rerun) -> None:
    """With dt = 0 everywhere the state never moves from the pool's."""
    states = rerun(dt=0 * dt)[2]
    same_bits(0 + states, 0 + np.broadcast_to(states[:1], states.shape), "states without time")


@model_window.law
def channels_of_no_bucket_stay_zero(out: Any, table: Array, H: int) -> None:
    """A branch writes the channels of its bucket and nothing else."""
    free = out[2][:, :, ~served(table, H)]
    same_bits(free, np.zeros_like(free), "states of channels in no bucket")


@model_window.law
def off_bucket_skip_weights_are_never_read(
    out: Any, w_skip: Array, table: Array, rerun: Rerun
) -> None:
    """NaN in a skip weight of another bucket's channel changes no bit."""
    spoiled = np.full_like(w_skip, np.nan)
    for bucket, row in enumerate(table):
        own = row[row >= 0]
        spoiled[bucket, own] = w_skip[bucket, own]
    same_bits(rerun(w_skip=spoiled)[0], out[0], "logits")


@model_window_dense.law
@model_window.law
def p_is_the_sigmoid_of_its_logit(out: Any, bound: Any) -> None:
    """Both outputs tell the same, within both bounds; the sigmoid's slope is at most 1/4."""
    near(out[1], 1 / (1 + np.exp(-out[0])), bound[1] + bound[0] / 4, "p of the logits")
