"""Packed values at their places."""

import numpy as np

from trivet import ANY, Choice, Contract, Tensor, reals
from trivet.impl import heads as kernels
from trivet.oracles import heads as oracles
from trivet.properties._expect import same_bits
from trivet.properties.heads.inputs import SLOTS, TABLE, Array
from trivet.properties.routing.inputs import BUCKETS, CHANNELS

heads_scatter = Contract(
    kernel=kernels.heads_scatter,
    oracles=[oracles.heads_scatter, oracles.heads_scatter_scalar],
    dims=CHANNELS | BUCKETS | TABLE,
    args={
        "packed": Tensor("H", domain=reals(-1e4, 1e4, nonfinite=True), unread=ANY),
        "table": SLOTS,
        "block_slots": Choice(128, 32),
    },
    outputs={"full": Tensor("N H")},
)


@heads_scatter.law
def packing_gives_the_values_back(out: Array, packed: Array, table: Array) -> None:
    """routing.heads_compact undoes it, bitwise, at every place that a bucket owns."""
    own = int((table >= 0).sum())
    rows = np.repeat(np.arange(len(table)), (table >= 0).sum(axis=1))
    same_bits(out[rows, table[table >= 0]], packed[:own], "values at their places")


@heads_scatter.law
def other_places_are_plus_zero(out: Array, table: Array) -> None:
    """What no bucket owns is +0.0."""
    free = np.ones(out.shape, bool)
    for bucket, row in enumerate(table):
        free[bucket, row[row >= 0]] = False
    same_bits(out[free], np.zeros(int(free.sum())), "places of no bucket")
