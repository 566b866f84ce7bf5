"""What recovers a dead bucket: swapping channels, and inheriting time constants."""

from typing import Any

import numpy as np
import torch

from trivet import Choice, Contract, Scalar, Tensor, log_uniform, reals, sizes
from trivet.impl import controllers as kernels
from trivet.impl import routing
from trivet.oracles import controllers as oracles
from trivet.properties._assignments import assignment
from trivet.properties._expect import at_most, same_bits, same_values
from trivet.properties.controllers.inputs import (
    FEW_CHANNELS,
    HORIZONS,
    ONE_INTEGER,
    PER_HORIZON,
    Array,
    Rerun,
    lengthened,
    on_grid,
    with_powers_of_two,
)
from trivet.properties.decision.inputs import BLOCK, filled, widened
from trivet.properties.optimiser.inputs import MEAN, PARAMETER, POSITIVE, inout
from trivet.properties.routing.inputs import INDICES, OWNERS

TAU = Tensor("H", domain=log_uniform(1e-3, 1e4).map(with_powers_of_two))
MEAN_SIZE = Tensor("N", domain=log_uniform(1e-6, 1.0).map(with_powers_of_two))
FLOOR = Tensor("N", domain=log_uniform(1e-3, 1.0).map(with_powers_of_two))
BUCKET = Scalar(int, 0, "N-1")
CHANNEL_OWNERS = Tensor("H", dtypes=INDICES)


def bucket_after_the_last(mean: torch.Tensor) -> dict[str, object]:
    """A bucket that does not exist."""
    return {"k": len(mean)}


BAD_RECOVERY = (
    (ValueError, "k", bucket_after_the_last),
    (ValueError, "k", {"k": -1}),
    (ValueError, "tau", filled("tau", 0.0)),
    (ValueError, "mean", filled("mean", np.nan)),
    (ValueError, "floor", filled("floor", -1.0)),
    (ValueError, "bucket_of", filled("bucket_of", 200)),
    (TypeError, "bucket_of", widened("bucket_of")),
)

controllers_channel_swap = Contract(
    kernel=kernels.channel_swap,
    oracles=[oracles.channel_swap, oracles.channel_swap_by_logarithms],
    dims=FEW_CHANNELS | HORIZONS,
    args={
        "tau": TAU,
        "activity": Tensor("H", domain=reals(0, 1).map(on_grid)),
        "bucket_of": OWNERS,
        "mean": MEAN_SIZE,
        "floor": FLOOR,
        "k": BUCKET,
    },
    outputs={"swapped": CHANNEL_OWNERS, "neighbour": ONE_INTEGER},
    raises=(*BAD_RECOVERY, (ValueError, "activity", filled("activity", np.nan))),
)


@controllers_channel_swap.law
def sizes_never_change(out: Any, bucket_of: Array, N: int) -> None:
    """Channels are exchanged one for one."""
    before, after = (np.bincount(each[each >= 0], minlength=N) for each in (bucket_of, out.swapped))
    same_values(after, before, "size")


@controllers_channel_swap.law
def only_the_bucket_and_its_neighbour_exchange(out: Any, bucket_of: Array, k: int) -> None:
    """Who moved went from k to the adjacent neighbour or back; all others stay."""
    moved = out.swapped != bucket_of
    neighbour = int(out.neighbour[0])
    other = np.where(bucket_of == k, neighbour, k)
    same_values(out.swapped[moved], other[moved], "bucket of a channel that moved")
    at_most(np.array(abs(neighbour - k) if neighbour >= 0 else 1), np.ones(()), "|neighbour - k|")


@controllers_channel_swap.law
def the_least_active_leave(out: Any, activity: Array, bucket_of: Array, k: int) -> None:
    """No channel that stays in bucket k is less active than one that left it."""
    mine = bucket_of == k
    left, stayed = activity[mine & (out.swapped != k)], activity[mine & (out.swapped == k)]
    if left.size and stayed.size:
        at_most(left.max(), stayed.min(), "activity of a channel that left")


@controllers_channel_swap.law
def a_silent_bucket_swaps_all_it_can(
    bucket_of: Array, mean: Array, floor: Array, k: int, rerun: Rerun
) -> None:
    """At an average of 0 every channel leaves that the neighbour has one for."""
    silent = np.where(np.arange(len(mean)) == k, 0.0, mean)
    again = rerun(mean=silent)
    neighbour = int(again.neighbour[0])
    theirs = int((bucket_of == neighbour).sum()) if neighbour >= 0 else 0
    wanted = min(int((bucket_of == k).sum()), theirs)
    same_values(((bucket_of == k) & (again.swapped != k)).sum(), np.array(wanted), "swapped")


@controllers_channel_swap.law
def scaling_every_tau_changes_no_swap(out: Any, tau: Array, rerun: Rerun) -> None:
    """Distances of logarithms know no unit: tau times a power of two swaps the same channels."""
    for factor in (4.0, 2.0**-14):
        swapped = rerun(tau=factor * tau).swapped
        same_values(swapped, out.swapped, f"bucket at {factor} tau")


controllers_reset_channels = Contract(
    kernel=kernels.reset_channels,
    oracles=[oracles.reset_channels, oracles.reset_channels_scalar],
    dims={"H": sizes(1, 150, production=128)} | HORIZONS,
    args={
        "params": inout("N H", PARAMETER),
        "exp_avg": inout("N H", MEAN),
        "exp_avg_sq": inout("N H", POSITIVE),
        "before": OWNERS,
        "after": OWNERS,
        "block_channels": BLOCK,
    },
    raises=(
        (ValueError, "exp_avg", lengthened("exp_avg")),
        (ValueError, "after", lengthened("after")),
        (TypeError, "before", widened("before")),
    ),
)


@controllers_reset_channels.law
def channels_that_moved_start_at_plus_zero(out: Any, before: Array, after: Array) -> None:
    """Weight and both moments of a channel that moved are +0.0, in every horizon's row."""
    for name, buffer in zip(out._fields, out, strict=True):
        moved = buffer[:, before != after]
        same_bits(moved, np.zeros_like(moved), f"{name} of channels that moved")


@controllers_reset_channels.law
def channels_that_stayed_keep_their_bits(
    out: Any, params: Array, exp_avg: Array, exp_avg_sq: Array, before: Array, after: Array
) -> None:
    """Who kept its bucket keeps its weight and moments."""
    for name, buffer, old in zip(out._fields, out, (params, exp_avg, exp_avg_sq), strict=True):
        stay = before == after
        same_bits(buffer[:, stay], old[:, stay], f"{name} of channels that stayed")


def states_that_diverged(h: torch.Tensor) -> dict[str, object]:
    """States among which there is an infinite one."""
    return {"h": torch.full((1, h.shape[1]), torch.inf)}


controllers_swap_bucket = Contract(
    kernel=kernels.swap_bucket,
    oracles=[oracles.swap_bucket, oracles.swap_bucket_scalar],
    dims={"B": sizes(0, 5, production=1024), "M": sizes(1, 12, production=28)}
    | {"H": sizes(1, 40, production=128)}
    | {"N": sizes("(H+M-1)//M", 9, production=5)},
    args={
        "h": Tensor("B H", domain=reals(-4, 4).map(on_grid)),
        "tau": TAU,
        "bucket_of": Tensor("H", dtypes=INDICES, domain=assignment("N", "M")),
        "params": inout("N H", PARAMETER),
        "exp_avg": inout("N H", MEAN),
        "exp_avg_sq": inout("N H", POSITIVE),
        "mean": MEAN_SIZE,
        "floor": FLOOR,
        "k": BUCKET,
    },
    outputs={
        "swapped": CHANNEL_OWNERS,
        "table": Tensor("N M", dtypes=INDICES),
        "mask": Tensor("N H"),
        "w_compact": Tensor("H"),
        "neighbour": ONE_INTEGER,
    },
    raises=(
        *BAD_RECOVERY,
        (TypeError, "h", widened("h")),
        (ValueError, "h", states_that_diverged),
        (ValueError, "params", lengthened("params")),
    ),
)


@controllers_swap_bucket.law
def all_of_a_record_agrees(out: Any, M: int) -> None:
    """Table, mask and packed weights say what bucket_of says."""
    rows = np.arange(len(out.table))
    own = rows[:, None] == out.swapped[None, :]
    same_bits(out.mask, 1.0 * own, "mask")
    packed = [channel for row in out.table for channel in row if channel >= 0]
    bucket = np.repeat(rows, (out.table >= 0).sum(axis=1))
    same_values(out.swapped[packed], bucket, "bucket of the table's channels")
    same_bits(out.w_compact[: len(packed)], out.params[bucket, packed], "packed weights")


@controllers_swap_bucket.law
def moved_channels_lose_weights_and_moments(out: Any, bucket_of: Array) -> None:
    """Their old skip weight and moments are gone, the new ones start at +0.0."""
    moved = out.swapped != bucket_of
    for name in ("params", "exp_avg", "exp_avg_sq"):
        found = getattr(out, name)[:, moved]
        same_bits(found, np.zeros_like(found), f"{name} of channels that moved")


controllers_inherit_tau = Contract(
    kernel=kernels.inherit_tau,
    oracles=[oracles.inherit_tau, oracles.inherit_tau_scalar],
    dims=FEW_CHANNELS | HORIZONS,
    args={
        "tau": TAU,
        "bucket_of": OWNERS,
        "lo": Tensor("N", domain=log_uniform(1e-6, 1.0)),
        "hi": Tensor("N", domain=log_uniform(1.0, 1e6)),
        "mean": MEAN_SIZE,
        "floor": FLOOR,
        "k": BUCKET,
        "block_channels": Choice(8, 32),
        "block_others": Choice(128, 16),
    },
    outputs={
        "new_tau": Tensor("H"),
        "new_lo": PER_HORIZON,
        "new_hi": PER_HORIZON,
        "neighbour": ONE_INTEGER,
    },
    raises=(*BAD_RECOVERY, (ValueError, "hi", lengthened("hi")), (TypeError, "lo", widened("lo"))),
)


@controllers_inherit_tau.law
def others_keep_their_bits(
    out: Any, tau: Array, bucket_of: Array, lo: Array, hi: Array, k: int
) -> None:
    """No tau outside bucket k changes, and no range but its own."""
    others, rows = bucket_of != k, np.arange(len(lo)) != k
    same_bits(out.new_tau[others], tau[others], "tau of another bucket")
    same_bits(out.new_lo[rows], lo[rows], "lo of another bucket")
    same_bits(out.new_hi[rows], hi[rows], "hi of another bucket")


@controllers_inherit_tau.law
def inheritance_survives_the_next_clamp(
    tau: Array, bucket_of: Array, lo: Array, rerun: Rerun
) -> None:
    """From channels within ranges that do not overlap: the clamp leaves what is inherited."""
    base = 4.0 ** np.arange(len(lo))
    within = np.frexp(tau)[0] * 2 * base[np.maximum(bucket_of, 0)]
    again = rerun(tau=within, lo=base, hi=2 * base)
    clamped = rerun.other(
        routing.tau_clamp,
        tau=again.new_tau,
        bucket_of=bucket_of,
        lo=again.new_lo,
        hi=again.new_hi,
    )
    same_bits(clamped, again.new_tau, "tau after the clamp")


@controllers_inherit_tau.law
def heirs_lie_among_the_neighbours(out: Any, tau: Array, bucket_of: Array, k: int) -> None:
    """Inherited time constants lie within the neighbour's own, first and last at its ends."""
    neighbour = int(out.neighbour[0])
    theirs, heirs = tau[bucket_of == neighbour], out.new_tau[bucket_of == k]
    if neighbour < 0 or not heirs.size:
        return
    at_most(theirs.min(), heirs, "least of the neighbour's tau")
    at_most(heirs, theirs.max(), "inherited tau")
    if heirs.size > 1:
        ends = np.array([heirs.min(), heirs.max()])
        same_bits(ends, np.array([theirs.min(), theirs.max()]), "first and last heir")


@controllers_inherit_tau.law
def a_single_heir_takes_the_middle(tau: Array, mean: Array, rerun: Rerun) -> None:
    """The one channel of bucket 0 takes the median of all others, bitwise on whole numbers."""
    if len(mean) < 2 or len(tau) < 2:
        return
    owners = np.where(np.arange(len(tau)) == 0, 0, 1)
    again = rerun(tau=np.arange(1.0, len(tau) + 1), bucket_of=owners, k=0)
    median = np.array(np.median(np.arange(2.0, len(tau) + 1)))
    same_bits(again.new_tau[0], median, "tau of a single heir")


@controllers_inherit_tau.law
def the_range_is_the_neighbours(out: Any, lo: Array, hi: Array, k: int) -> None:
    """lo and hi of bucket k become the neighbour's, where there is one."""
    source = int(out.neighbour[0]) if out.neighbour[0] >= 0 else k
    same_bits(out.new_lo[k], lo[source], "lo of the heir")
    same_bits(out.new_hi[k], hi[source], "hi of the heir")
