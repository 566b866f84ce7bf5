"""AdamW on any parameter."""

from typing import Any

import numpy as np

from trivet import Choice, Contract, Tensor, sizes
from trivet.impl import optimiser as kernels
from trivet.oracles import optimiser as oracles
from trivet.properties._expect import same_bits
from trivet.properties.optimiser.inputs import (
    BAD_MOMENT,
    BAD_SETTINGS,
    GRADIENT,
    MEAN,
    PARAMETER,
    SETTINGS,
    SQUARE,
    Array,
    Rerun,
    inout,
)

optimiser_adamw = Contract(
    kernel=kernels.adamw,
    oracles=[oracles.adamw, oracles.adamw_scalar],
    dims={"P": sizes(0, 600, production=2**31 + 9)},
    args={
        "p": inout("P", PARAMETER),
        "g": Tensor("P", domain=GRADIENT),
        "exp_avg": inout("P", MEAN),
        "exp_avg_sq": inout("P", SQUARE),
        **SETTINGS,
        "block": Choice(128, 32),
    },
    raises=BAD_SETTINGS + BAD_MOMENT,
)
# Every entry stands alone.
optimiser_adamw.bitwise("ignores_batch")
optimiser_adamw.bitwise("ignores_block_size")


@optimiser_adamw.law
def scaling_every_gradient_leaves_the_first_step(p: Array, g: Array, rerun: Rerun) -> None:
    """From zero moments, eps = 0: gradients times a power of two give the same p, bitwise.

    Hence no weight on the loss can do what a rate on the step does.
    """
    # Far from where squares of float32 underflow, at either scale.
    sound = np.where(np.abs(g) < 1e-6, 1.0, g)
    rest: dict[str, Any] = {"exp_avg": 0 * p, "exp_avg_sq": 0 * p, "eps": 0.0, "t": 1}
    once, scaled = rerun(g=sound, **rest), rerun(g=sound * 2.0**-10, **rest)
    same_bits(scaled[0], once[0], "p after gradients times 2^-10")


@optimiser_adamw.law
def negating_gradient_and_mean_mirrors_the_step(
    out: Any, p: Array, g: Array, exp_avg: Array, rerun: Rerun
) -> None:
    """Step and mean change sign with the gradients, the square does not, bitwise."""
    again = rerun(p=-p, g=-g, exp_avg=-exp_avg)
    same_bits(0.0 + again[0], 0.0 - out[0], "p of the mirrored step")
    same_bits(0.0 + again[1], 0.0 - out[1], "exp_avg of the mirrored step")
    same_bits(again[2], out[2], "exp_avg_sq of the mirrored step")


@optimiser_adamw.law
def no_rate_changes_no_parameter(p: Array, exp_avg_sq: Array, rerun: Rerun) -> None:
    """lr = 0 leaves p, equal in value, while the moments go on; eps and the square are positive."""
    again = rerun(lr=0.0, eps=1e-3, exp_avg_sq=exp_avg_sq)
    same_bits(0.0 + again[0], 0.0 + p, "p after a step of rate 0")
