"""What a swap of channels changes, all of it at once."""

from typing import NamedTuple

import torch

from trivet.impl import _checks
from trivet.impl.controllers.buckets import channel_activity
from trivet.impl.controllers.swap import channel_swap, check_recovery, reset_channels
from trivet.impl.routing import channels_in_bucket, heads_compact, mask_init


class Swap(NamedTuple):
    """What consumers need anew after a swap, and the neighbour (1,) int32, -1 if there is none.

    bucket_of (H,) and table (N, M) int32, mask (N, H) and w_compact (H,) float32.
    """

    bucket_of: torch.Tensor
    table: torch.Tensor
    mask: torch.Tensor
    w_compact: torch.Tensor
    neighbour: torch.Tensor


def swap_bucket(
    h: torch.Tensor,
    tau: torch.Tensor,
    bucket_of: torch.Tensor,
    params: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    mean: torch.Tensor,
    floor: torch.Tensor,
    k: int,
    M: int,
) -> Swap:
    """Exchange channels of bucket k with its healthier neighbour, and all that follows from it.

    `channel_swap` by the activity of h (B, H); params and moments (N, H) of the channels that
    moved become +0.0, in place; table, mask and packed weights are made of what came out. M is
    the capacity of a bucket. Raises TypeError or ValueError naming the argument.
    """
    check_recovery(tau, bucket_of, mean, floor, k)
    arguments = _checks.Arguments(H=tau.shape[0], N=mean.shape[0])
    arguments.device = tau.device
    arguments.tensor("h", h, "B H", torch.float32)
    for name, tensor in (("params", params), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        arguments.tensor(name, tensor, "N H", torch.float32)
    _checks.count("M", M, 1)
    _checks.every("h", h, h.isfinite(), "finite")
    swapped, neighbour = channel_swap(tau, channel_activity(h), bucket_of, mean, floor, k)
    reset_channels(params, exp_avg, exp_avg_sq, bucket_of, swapped)
    N = params.shape[0]
    table = channels_in_bucket(swapped, N, M)
    w_compact, _ = heads_compact(params, table)
    return Swap(swapped, table, mask_init(swapped, N), w_compact, neighbour)
