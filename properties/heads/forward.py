"""The heads' forward kernels."""

from functools import partial
from typing import Any

import numpy as np
import torch

from trivet import Contract
from trivet.impl import heads as kernels
from trivet.oracles import heads as oracles
from trivet.properties._expect import at_most, near, same_bits
from trivet.properties.heads.inputs import (
    ARGS,
    BAD_HEAD,
    BAD_PACKED,
    BAD_SKIP,
    BLOCKS,
    DIMS,
    LOGITS,
    SLOTS,
    TABLE,
    W_COMPACT,
    W_SKIP,
    Array,
    Rerun,
    unpacked,
)

OUTPUTS = {"logits": LOGITS, "p": LOGITS}

heads_dense = Contract(
    kernel=kernels.heads,
    oracles=[oracles.heads, oracles.heads_scalar],
    dims=DIMS,
    args={**ARGS, "w_skip": W_SKIP, **BLOCKS},
    outputs=OUTPUTS,
    backward=kernels.heads_backward,
    raises=BAD_HEAD + BAD_SKIP,
)

heads_block_diagonal = Contract(
    kernel=kernels.heads_block_diagonal,
    oracles=[oracles.heads_block_diagonal, oracles.heads_block_diagonal_scalar],
    dims=DIMS | TABLE,
    args={**ARGS, "w_compact": W_COMPACT, "table": SLOTS, **BLOCKS},
    outputs=OUTPUTS,
    backward=kernels.heads_block_diagonal_backward,
    raises=BAD_HEAD + BAD_PACKED,
)


@heads_dense.law
@heads_block_diagonal.law
def probabilities_lie_in_the_unit_interval(out: Any) -> None:
    """p is at least 0 and at most 1, however large the logit."""
    at_most(-out[1], np.zeros_like(out[1]), "-p")
    at_most(out[1], np.ones_like(out[1]), "p")


@heads_dense.law
@heads_block_diagonal.law
def wide_logits_overflow_nothing(bm: Array, w_gate: Array, rerun: Rerun) -> None:
    """Probabilities of logits beyond float32's exponentials are 0 and 1, never NaN."""
    for sign, wanted in ((1.0, 1.0), (-1.0, 0.0)):
        far = rerun(bm=np.full_like(bm, sign * 1e30), w_gate=0 * w_gate)
        same_bits(far[1], np.full_like(far[1], wanted), f"p at bm = {sign:g}e30")


@heads_block_diagonal.law
def packed_skip_equals_the_masked_full_one(
    out: Any, bound: Any, w_compact: Array, table: Array, H: int, rerun: Rerun
) -> None:
    """`heads` with the same weights at their places and 0 elsewhere agrees, within the bound."""
    weights = torch.from_numpy(unpacked(w_compact, table, H)).float()
    full = rerun.other(partial(kernels.heads, w_skip=weights))
    near(full[0], out[0], 2 * bound[0], "logits of the full read")


@heads_block_diagonal.law
def other_buckets_channels_never_reach_the_skip_term(
    s: Array, table: Array, bm: Array, N: int, H: int, rerun: Rerun
) -> None:
    """Without layers and bm the logit is the skip term: NaN off bucket changes no bit of it."""
    bare = without_layers(bm, N, H)
    skip = rerun(**bare)[0]
    for k, row in enumerate(table):
        spoiled = np.full_like(s, np.nan)
        spoiled[:, row[row >= 0]] = s[:, row[row >= 0]]
        same_bits(rerun(s=spoiled, **bare)[0][:, k], skip[:, k], f"skip term of bucket {k}")


@heads_block_diagonal.law
def an_empty_bucket_has_no_skip_term(
    s: Array, table: Array, bm: Array, N: int, H: int, rerun: Rerun
) -> None:
    """Without layers and bm the logit of a bucket without channels is 0, whatever the state."""
    bare = without_layers(bm, N, H)
    logits = rerun(table=np.full_like(table, -1), s=np.full_like(s, np.nan), **bare)[0]
    same_bits(logits, np.zeros_like(logits), "logits of empty buckets")


def without_layers(bm: Array, N: int, H: int) -> dict[str, Array]:
    """Arguments that leave the skip term alone: inner width 0, bm = 0."""
    bare = {"W1": np.zeros((N, 0, H)), "W2": np.zeros((N, 0, 0)), "bm": 0 * bm}
    return bare | dict.fromkeys(("b1", "b2", "w_gate", "w_main"), np.zeros((N, 0)))
