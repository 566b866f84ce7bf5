"""The transition from the dense cell to one branch for each bucket."""

import torch

from trivet.impl.optimiser import block_diagonal_start
from trivet.impl.routing import (
    RoutingRecord,
    bucket_assign,
    bucket_iqr,
    channels_in_bucket,
    iqr_widen,
    tau_sort,
)


def transition(
    tau: torch.Tensor,
    w_skip: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    M: int,
) -> RoutingRecord:
    """Sort, assign, list and widen; zero skip weights and moments off bucket; return the record.

    tau (H,), w_skip and its moments (N, H) are float32; the latter three are changed in place, M
    is the capacity of a bucket. Whoever gets the record packs its own weights from it. Raises
    ValueError for a channel that is not finite and positive, and for a bucket larger than M,
    before anything is changed.
    """
    N = w_skip.shape[0]
    bucket_of, size, offset = bucket_assign(tau_sort(tau), N)
    table = channels_in_bucket(bucket_of, N, M)
    lo, hi = iqr_widen(*bucket_iqr(tau, bucket_of, N))
    record = RoutingRecord.publish(bucket_of, size, offset, table, lo, hi)
    block_diagonal_start(w_skip, exp_avg, exp_avg_sq, bucket_of)
    return record
