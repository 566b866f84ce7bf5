"""Past bugs of AdamW and of its block diagonal step."""

from collections.abc import Callable
from typing import Any

from trivet.properties.optimiser import (
    optimiser_adamw,
    optimiser_block_diagonal_start,
    optimiser_block_diagonal_step,
)

Edit = Callable[..., Any]
ADAM = "trivet.impl.optimiser.adam"
BLOCK_DIAGONAL = "trivet.impl.optimiser.block_diagonal"


@optimiser_block_diagonal_start.fault(
    expects=("off_bucket_state_is_plus_zero", "off_bucket_stays_zero_over_steps"), number=3
)
def momentum_of_before_the_transition_kept(edit: Edit) -> Any:
    """Params were zeroed off bucket and every gradient masked, but the moments were warm.

    After training 512 of 512 off-bucket entries were not zero. Tests began with zero moments.
    """
    old = "    tl.store(exp_avg + place, 0.0, mask=off_bucket)\n"
    return edit(old, "", module=BLOCK_DIAGONAL)


@optimiser_block_diagonal_start.fault(expects=("matches_oracle", "off_bucket_state_is_plus_zero"))
def own_bucket_zeroed(edit: Edit) -> Any:
    """The comparison was turned round: what each horizon had learned was thrown away."""
    return edit("other=-1) != horizon)", "other=-1) == horizon)", module=BLOCK_DIAGONAL)


@optimiser_block_diagonal_step.fault(
    expects=("matches_oracle", "arbitrary_off_bucket_params_end_clean"), number=4
)
def off_bucket_params_not_zeroed_after_the_step(edit: Edit) -> Any:
    """With clean moments and eps > 0 the other two layers hide it for ever; 0 / 0 does not."""
    old = "tl.store(params + place, tl.where(own, after, 0.0), mask=live)"
    return edit(old, "tl.store(params + place, after, mask=live)", module=BLOCK_DIAGONAL)


@optimiser_block_diagonal_step.fault(
    expects=("propagates_nonfinite", "arbitrary_off_bucket_gradients_leave_moments_clean"),
    number=49,
)
def gradient_masked_by_a_product(edit: Edit) -> Any:
    """Off bucket an infinite gradient times 0 is NaN, and the moments keep it."""
    old = "gradient = tl.where(own, tl.load(g + place, mask=live, other=0.0), 0.0)"
    new = "gradient = tl.load(g + place, mask=live, other=0.0) * own.to(tl.float32)"
    return edit(old, new, module=BLOCK_DIAGONAL)


@optimiser_block_diagonal_step.fault(
    expects=("matches_oracle", "arbitrary_off_bucket_gradients_leave_moments_clean")
)
def gradient_not_masked(edit: Edit) -> Any:
    """The last layer cleans the params, so that only the moments show it."""
    old = "gradient = tl.where(own, tl.load(g + place, mask=live, other=0.0), 0.0)"
    new = "gradient = tl.load(g + place, mask=live, other=0.0)"
    return edit(old, new, module=BLOCK_DIAGONAL)


@optimiser_block_diagonal_step.fault(expects=("matches_oracle",), number=28)
def rate_applied_to_the_value(edit: Edit) -> Any:
    """The whole weight was multiplied by the rate, not its step: a decay nobody asked for."""
    old = "tl.where(rate == 1.0, after, before + (after - before) * rate)"
    return edit(old, "after * rate", module=BLOCK_DIAGONAL)


@optimiser_block_diagonal_step.fault(expects=("a_rate_of_one_is_the_plain_step",))
def plain_step_recomputed_at_rate_one(edit: Edit) -> Any:
    """before + (after - before) is not `after` in floating point."""
    old = "tl.where(rate == 1.0, after, before + (after - before) * rate)"
    return edit(old, "before + (after - before) * rate", module=BLOCK_DIAGONAL)


@optimiser_adamw.fault(expects=("matches_oracle",))
def moments_not_corrected(edit: Edit) -> Any:
    """Moments start at 0; without the correction the first steps are ten times too small."""
    return edit("tl.div_rn(mean, correction1)", "mean", module=ADAM)


@optimiser_adamw.fault(expects=("matches_oracle", "scaling_every_gradient_leaves_the_first_step"))
def eps_inside_the_root(edit: Edit) -> Any:
    """sqrt(v + eps) in place of sqrt(v) + eps; of small gradients nothing is left."""
    old = "tl.sqrt_rn(tl.div_rn(square, correction2)) + eps"
    return edit(old, "tl.sqrt_rn(tl.div_rn(square, correction2) + eps + 1e-12)", module=ADAM)


@optimiser_adamw.fault(expects=("matches_oracle",))
def decay_after_the_step(edit: Edit) -> Any:
    """The step was decayed too: a difference of lr * decay of one step."""
    old = "p * (1.0 - lr * decay) - step"
    return edit(old, "(p - step) * (1.0 - lr * decay)", module=ADAM)


@optimiser_adamw.fault(expects=("matches_oracle",))
def decay_coupled_to_the_gradient(edit: Edit) -> Any:
    """Adam with L2 in place of AdamW: the decay went through the moments."""
    old = "mean = beta1 * exp_avg + (1.0 - beta1) * g"
    new = "g = g + decay * p\n    mean = beta1 * exp_avg + (1.0 - beta1) * g"
    return edit(old, new, module=ADAM)


@optimiser_adamw.fault(expects=("matches_oracle",))
def correction_from_zero_based_steps(edit: Edit) -> Any:
    """t - 1 in the second correction: wrong by half at the second step, hardly at the hundredth."""
    old = "1.0 - second**t"
    return edit(old, "1.0 - second ** max(t - 1, 1)", module=ADAM)


@optimiser_adamw.fault(expects=("offsets_fit",))
def entries_counted_in_32_bits(edit: Edit) -> Any:
    """The first entry of a late program wrapped beyond 2^31 parameters."""
    old = "entry = tl.program_id(0).to(tl.int64) * BLOCK"
    return edit(old, "entry = tl.program_id(0) * BLOCK", module=ADAM)
