"""The heads' backward kernels as kernels of their own: memory, order and bounds at every size."""

from functools import partial
from typing import Any

import torch

from trivet import Contract, Tensor
from trivet.impl import heads as kernels
from trivet.oracles import heads as oracles
from trivet.properties._expect import interval, near, same_bits
from trivet.properties.heads.inputs import (
    ARGS,
    BAD_HEAD,
    BAD_PACKED,
    BAD_SKIP,
    BLOCKS,
    FEWER,
    LOGITS,
    PARTS,
    SLOTS,
    TABLE,
    W_COMPACT,
    W_SKIP,
    Array,
    Rerun,
    unpacked,
)

COTANGENTS = {"g_logits": LOGITS, "g_p": LOGITS}
LAYERS = {
    "ds": Tensor("B H"),
    "dW1": Tensor("N E H"),
    "db1": Tensor("N E"),
    "dW2": Tensor("N E E"),
    "db2": Tensor("N E"),
    "dw_gate": Tensor("N E"),
    "dbg": Tensor("N"),
    "dw_main": Tensor("N E"),
    "dbm": Tensor("N"),
}

heads_dense_backward = Contract(
    kernel=kernels.heads_backward,
    oracles=[oracles.heads_backward, oracles.heads_backward_scalar],
    dims=FEWER,
    args={**COTANGENTS, **ARGS, "w_skip": W_SKIP, **BLOCKS, **PARTS},
    outputs={**LAYERS, "dw_skip": Tensor("N H")},
    raises=BAD_HEAD + BAD_SKIP,
)

heads_block_diagonal_backward = Contract(
    kernel=kernels.heads_block_diagonal_backward,
    oracles=[oracles.heads_block_diagonal_backward, oracles.heads_block_diagonal_backward_scalar],
    dims=FEWER | TABLE,
    args={**COTANGENTS, **ARGS, "w_compact": W_COMPACT, "table": SLOTS, **BLOCKS, **PARTS},
    outputs={**LAYERS, "dw_compact": Tensor("H")},
    raises=BAD_HEAD + BAD_PACKED,
)


@heads_dense_backward.law
@heads_block_diagonal_backward.law
def negating_both_cotangents_negates_every_gradient(
    out: Any, g_logits: Array, g_p: Array, rerun: Rerun
) -> None:
    """Backward is linear in the cotangents, and rounding knows no sign."""
    again = rerun(g_logits=-g_logits, g_p=-g_p)
    for name, got, before in zip(out._fields, again, out, strict=True):
        same_bits(0.0 + got, 0.0 - before, f"{name} of negated cotangents")


@heads_dense_backward.law
def sure_heads_pass_on_their_small_slope(
    g_p: Array,
    s: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    w_gate: Array,
    bg: Array,
    w_main: Array,
    bm: Array,
    w_skip: Array,
    rerun: Rerun,
) -> None:
    """Through the probability alone ds keeps its relative accuracy, also where p is nearly 1."""
    layers = {"W1": W1, "b1": b1, "W2": W2, "b2": b2, "w_gate": w_gate, "bg": bg}
    wanted, error = interval(
        oracles.heads_backward,
        **(layers | {"g_logits": 0 * g_p, "g_p": g_p, "s": s, "w_main": w_main, "bm": bm}),
        w_skip=w_skip,
    )
    near(rerun(g_logits=0 * g_p)[0], wanted, error, "ds through p alone")


@heads_block_diagonal_backward.law
def packed_gradients_equal_the_full_ones(
    out: Any, bound: Any, w_compact: Array, table: Array, H: int, rerun: Rerun
) -> None:
    """`heads_backward` with the weights at their places agrees wherever a bucket owns an entry."""
    weights = torch.from_numpy(unpacked(w_compact, table, H)).float()
    full = rerun.other(partial(kernels.heads_backward, w_skip=weights))
    for name, got, wanted, error in zip(LAYERS, full, out, bound, strict=False):
        near(got, wanted, 2 * error, f"{name} of the full weights")
