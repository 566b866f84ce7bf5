"""The block diagonal step: three layers keep off-bucket weights at +0.0, each on its own."""

from typing import Any

import numpy as np
import torch

from trivet import ANY, Contract, Tensor, reals
from trivet.impl import optimiser as kernels
from trivet.oracles import optimiser as oracles
from trivet.properties._expect import same_bits
from trivet.properties.optimiser.inputs import (
    BAD_MOMENT,
    BAD_SETTINGS,
    GRADIENT,
    MATRIX,
    MEAN,
    PARAMETER,
    POSITIVE,
    SETTINGS,
    Array,
    Rerun,
    inout,
)
from trivet.properties.routing.inputs import BAD_OWNERS, BLOCK, OWNERS

STATE = {
    "params": inout("N H", PARAMETER),
    "exp_avg": inout("N H", MEAN),
    "exp_avg_sq": inout("N H", POSITIVE),
}
STEPS = 4


def rate_of_zero(params: torch.Tensor) -> dict[str, object]:
    """A horizon that would never move again."""
    return {"rate": torch.zeros(len(params))}


def rate_above_one(params: torch.Tensor) -> dict[str, object]:
    """A step longer than AdamW's own."""
    return {"rate": torch.full((len(params),), 1.5)}


def owner_beyond_the_last(params: torch.Tensor, bucket_of: torch.Tensor) -> dict[str, object]:
    """A bucket that no row belongs to."""
    return {"bucket_of": torch.full_like(bucket_of, len(params))}


BAD_BUCKET = ((ValueError, "bucket_of", owner_beyond_the_last), *BAD_OWNERS)

optimiser_block_diagonal_start = Contract(
    kernel=kernels.block_diagonal_start,
    oracles=[oracles.block_diagonal_start, oracles.block_diagonal_start_scalar],
    dims=MATRIX,
    args={**STATE, "bucket_of": OWNERS, "block_channels": BLOCK},
    raises=BAD_BUCKET + BAD_MOMENT,
)

optimiser_block_diagonal_step = Contract(
    kernel=kernels.block_diagonal_step,
    oracles=[oracles.block_diagonal_step, oracles.block_diagonal_step_scalar],
    dims=MATRIX,
    args={
        **STATE,
        "g": Tensor("N H", domain=GRADIENT, unread=ANY),
        "bucket_of": OWNERS,
        **SETTINGS,
        "rate": Tensor("N", domain=reals(2**-10, 1), optional=True),
        "block_channels": BLOCK,
    },
    raises=(
        *BAD_SETTINGS,
        *BAD_MOMENT,
        *BAD_BUCKET,
        (ValueError, "rate", rate_of_zero),
        (ValueError, "rate", rate_above_one),
    ),
)


def off_bucket(params: Array, bucket_of: Array) -> Array:
    """Which entries belong to another bucket than their row's, bool (N, H)."""
    own: Array = np.arange(len(params))[:, None] == bucket_of[None, :]
    return ~own


def all_plus_zero(buffer: Array, off: Array, what: str) -> None:
    """AssertionError unless every off-bucket entry is +0.0."""
    same_bits(np.where(off, buffer, 0.0), np.zeros(buffer.shape), what)


@optimiser_block_diagonal_start.law
def off_bucket_state_is_plus_zero(out: Any, params: Array, bucket_of: Array) -> None:
    """Params and both moments are +0.0 off bucket, however warm they were."""
    for name, buffer in zip(out._fields, out, strict=True):
        all_plus_zero(buffer, off_bucket(params, bucket_of), f"{name} off bucket")


@optimiser_block_diagonal_start.law
def off_bucket_stays_zero_over_steps(
    out: Any, params: Array, bucket_of: Array, rerun: Rerun
) -> None:
    """From the transition on, whatever the gradients and with eps = 0: +0.0 off bucket."""
    off = off_bucket(params, bucket_of)
    state = tuple(out)
    noise = np.random.default_rng(params.size).normal(size=(STEPS, *params.shape))
    for t, drawn in enumerate(noise, start=1):
        g = torch.from_numpy(np.where(off, np.inf, drawn)).float()
        state = rerun.other(_step_of(g, t), params=state[0], exp_avg=state[1], exp_avg_sq=state[2])
        for name, buffer in zip(out._fields, state, strict=True):
            all_plus_zero(buffer, off, f"{name} off bucket after step {t}")


def _step_of(g: torch.Tensor, t: int) -> Any:
    """The step with this gradient and fixed settings, as a function of the state alone."""

    def step(
        params: torch.Tensor,
        exp_avg: torch.Tensor,
        exp_avg_sq: torch.Tensor,
        bucket_of: torch.Tensor,
    ) -> None:
        kernels.block_diagonal_step(
            params, g, exp_avg, exp_avg_sq, bucket_of, 0.1, 0.9, 0.99, 0.0, 0.1, t
        )

    return step


@optimiser_block_diagonal_step.law
def arbitrary_off_bucket_params_end_clean(
    params: Array, exp_avg: Array, bucket_of: Array, rerun: Rerun
) -> None:
    """One step from zero moments, eps = 0 included: params off bucket end at +0.0."""
    again = rerun(params=params - 3.0, exp_avg=0 * exp_avg, exp_avg_sq=0 * exp_avg, eps=0.0)
    all_plus_zero(again[0], off_bucket(params, bucket_of), "params off bucket")


@optimiser_block_diagonal_step.law
def arbitrary_off_bucket_gradients_leave_moments_clean(
    params: Array, g: Array, exp_avg: Array, bucket_of: Array, rerun: Rerun
) -> None:
    """One step from zero moments: off bucket they stay +0.0, whatever the gradient there."""
    off = off_bucket(params, bucket_of)
    for wild in (np.nan, -np.inf, -7.0):
        again = rerun(g=np.where(off, wild, g), exp_avg=0 * exp_avg, exp_avg_sq=0 * exp_avg)
        all_plus_zero(again[1], off, f"exp_avg off bucket after {wild}")
        all_plus_zero(again[2], off, f"exp_avg_sq off bucket after {wild}")


@optimiser_block_diagonal_step.law
def a_rate_of_one_is_the_plain_step(params: Array, rerun: Rerun) -> None:
    """Rate 1 for every horizon gives the bits of no rate at all."""
    plain, one = rerun(rate=None), rerun(rate=np.ones(len(params)))
    same_bits(one[0], plain[0], "params at rate 1")
