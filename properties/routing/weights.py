"""The weights and gradients a bucket owns: packed, masked, zeroed."""

from typing import Any

import numpy as np
import torch

from trivet import ANY, Contract, Tensor, integers, partition, reals, sizes
from trivet.impl import routing as kernels
from trivet.oracles import routing as oracles
from trivet.properties._expect import same_bits
from trivet.properties.routing.inputs import (
    BAD_OWNERS,
    BLOCK,
    BUCKETS,
    CHANNELS,
    INDICES,
    OWNERS,
    Array,
    bucket_beyond_the_last,
    with_odd_rows_reversed,
    zero_record,
)

Rerun = Any


def table_naming_a_channel_twice(table: torch.Tensor) -> dict[str, object]:
    """A table whose entries are not disjoint."""
    return {"table": torch.zeros((table.shape[0], 2), dtype=torch.int32)}


def table_naming_a_channel_too_large(
    w_skip: torch.Tensor, table: torch.Tensor
) -> dict[str, object]:
    """A table of more channels than there are."""
    return {"table": torch.full((table.shape[0], 1), w_skip.shape[1], dtype=torch.int32)}


def record_of_zeros(w_skip: torch.Tensor, table: torch.Tensor) -> dict[str, object]:
    """A routing record that was built and never filled."""
    return {"table": zero_record(w_skip.shape[1], table.shape[0], table.shape[1])}


def w_skip_in_float64(w_skip: torch.Tensor) -> dict[str, object]:
    """Weights of another dtype."""
    return {"w_skip": w_skip.double()}


routing_heads_compact = Contract(
    kernel=kernels.heads_compact,
    oracles=[oracles.heads_compact, oracles.heads_compact_scalar],
    dims=CHANNELS | BUCKETS | {"M": sizes(1, "H+3", production=28)},
    args={
        "w_skip": Tensor("N H", domain=reals(-1e4, 1e4, nonfinite=True), unread=ANY),
        "table": Tensor(
            "N M",
            dtypes=INDICES,
            domain=partition("H", total=False).map(with_odd_rows_reversed),
        ),
        "block_slots": BLOCK,
    },
    outputs={"w_compact": Tensor("H"), "offset": Tensor("N", dtypes=INDICES)},
    raises=(
        (ValueError, "table", table_naming_a_channel_twice),
        (ValueError, "table", table_naming_a_channel_too_large),
        (ValueError, "size", record_of_zeros),
        (TypeError, "w_skip", w_skip_in_float64),
    ),
)


@routing_heads_compact.law
def unpacking_gives_the_own_weights_back(out: Any, w_skip: Array, table: Array) -> None:
    """The packed weights from offset[k] on are row k's own, in table order, bitwise."""
    w_compact, offset = out
    for bucket, row in enumerate(table):
        own = row[row >= 0]
        packed = w_compact[offset[bucket] : offset[bucket] + len(own)]
        same_bits(packed, w_skip[bucket, own], f"w_compact of bucket {bucket}")


routing_mask_init = Contract(
    kernel=kernels.mask_init,
    oracles=[oracles.mask_init, oracles.mask_init_scalar],
    dims=CHANNELS | BUCKETS,
    args={"bucket_of": OWNERS, "block_channels": BLOCK},
    outputs={"mask": Tensor("N H")},
    raises=((ValueError, "bucket_of", bucket_beyond_the_last), *BAD_OWNERS),
)


@routing_mask_init.law
def every_channel_is_in_its_one_bucket(out: Array, bucket_of: Array) -> None:
    """A channel's column holds one 1, in its bucket's row, or none where it has no bucket."""
    same_bits(out.sum(axis=0), 1.0 * (bucket_of >= 0), "sum of a channel's column")
    filled = np.flatnonzero(bucket_of >= 0)
    same_bits(out[bucket_of[filled], filled], np.ones(len(filled)), "mask of the own bucket")


def buffer_with_another_bucket(buffer: torch.Tensor, bucket_of: torch.Tensor) -> dict[str, object]:
    """A bucket that the buffer has no row for."""
    return {"bucket_of": torch.full_like(bucket_of, len(buffer))}


def buffer_in_float64(buffer: torch.Tensor) -> dict[str, object]:
    """A buffer of another dtype."""
    return {"buffer": buffer.double()}


routing_zero_off_bucket = Contract(
    kernel=kernels.zero_off_bucket,
    oracles=[oracles.zero_off_bucket, oracles.zero_off_bucket_scalar],
    dims=CHANNELS | BUCKETS,
    args={
        "buffer": Tensor("N H", domain=reals(-1e30, 1e30, nonfinite=True), role="inout"),
        "bucket_of": OWNERS,
        "block_channels": BLOCK,
    },
    raises=(
        (ValueError, "bucket_of", buffer_with_another_bucket),
        *BAD_OWNERS,
        (TypeError, "buffer", buffer_in_float64),
    ),
)


@routing_zero_off_bucket.law
def off_bucket_is_plus_zero(out: Array, buffer: Array, bucket_of: Array) -> None:
    """Off-bucket entries are +0.0, whatever stood there; the others keep their bits."""
    own = np.arange(len(buffer))[:, None] == bucket_of[None, :]
    same_bits(out, np.where(own, buffer, 0.0), "buffer")


def mask_of_another_shape(mask: torch.Tensor) -> dict[str, object]:
    """A mask with a row too many."""
    return {"mask": torch.ones(mask.shape[0] + 1, mask.shape[1])}


def grad_in_float64(grad: torch.Tensor) -> dict[str, object]:
    """A gradient of another dtype."""
    return {"grad": grad.double()}


routing_grad_mask_apply = Contract(
    kernel=kernels.grad_mask_apply,
    oracles=[oracles.grad_mask_apply, oracles.grad_mask_apply_scalar],
    dims=CHANNELS | BUCKETS,
    args={
        "grad": Tensor("N H", domain=reals(-1e30, 1e30, nonfinite=True), unread=ANY),
        "mask": Tensor("N H", domain=integers(0, 1)),
        "block": BLOCK,
    },
    outputs={"masked": Tensor("N H")},
    raises=((ValueError, "mask", mask_of_another_shape), (TypeError, "grad", grad_in_float64)),
)


@routing_grad_mask_apply.law
def masked_out_is_plus_zero(out: Array, grad: Array, mask: Array) -> None:
    """Where the mask is 0 the result is +0.0, of Inf and NaN too; elsewhere it has grad's bits."""
    same_bits(out, np.where(mask == 1, grad, 0.0), "masked gradient")


@routing_grad_mask_apply.law
def off_bucket_values_do_not_matter(out: Array, grad: Array, mask: Array, rerun: Rerun) -> None:
    """Infinities in place of what is masked out change no bit."""
    same_bits(rerun(grad=np.where(mask == 1, grad, -np.inf)), out, "masked gradient")
