"""Past bugs of the closed-form continuous-time cell."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from trivet.impl.cfc import step_backward
from trivet.properties.cfc import (
    cfc_step,
    cfc_step_backward,
    cfc_step_per_branch,
    cfc_step_per_branch_backward,
)

Edit = Callable[..., Any]
FORWARD = "trivet.impl.cfc.forward"
BACKWARD = "trivet.impl.cfc.backward"
REDUCTIONS = "trivet.impl.cfc.reductions"


@cfc_step_per_branch.fault(
    expects=("matches_oracle", "permuting_channels_permutes_the_branches"), number=2
)
def weights_read_at_the_slots_position(edit: Edit) -> Any:
    """Rows of the weights were found by position in the bucket, not by original channel.

    The output looked like noise but was finite, and right wherever the table was the identity or
    the rows were equal. Tests with several buckets see it.
    """
    old = "pre = preactivation(x, h, w_in, w_rec, b, row, channel, B, D, H, BLOCK_K)"
    new = old.replace("channel", "tl.arange(0, channel.shape[0])")
    return edit(old, new, module=FORWARD)


@cfc_step_per_branch.fault(expects=("matches_oracle", "does_work"), number=5)
def routing_never_handed_to_the_kernel(edit: Edit) -> Any:
    """The record was built, the kernel got an empty one: every program returned early.

    Nothing was computed, so nothing failed. The hand-over had no test; one of the kernel sees it.
    """
    old = "slots = slots_of(table, H, h.device)"
    new = "slots = torch.full_like(slots_of(table, H, h.device), -1)"
    return edit(old, new, module=FORWARD)


@cfc_step_per_branch.fault(expects=("matches_oracle", "is_race_free"), number=7)
def unused_slots_serve_channel_zero(edit: Edit) -> Any:
    """Slots of -1 were raised to 0 to keep their loads legal, and their stores went with them.

    Channel 0 gets its right value twice, unless it is in no bucket; a full bucket has no such slot.
    """
    old = "channel = tl.load(slots + slot, mask=slot < M, other=-1).to(tl.int64)"
    new = "channel = tl.maximum(tl.load(slots + slot, mask=slot < M, other=-1), 0).to(tl.int64)"
    return edit(old, new, module=FORWARD)


@cfc_step_per_branch.fault(expects=("stays_in_bounds",), number=7)
def unused_slots_read_before_the_first_row(edit: Edit) -> Any:
    """The mask asked whether a channel is too large, not whether it is -1.

    What is read before the weights reaches no output, so values never show it.
    """
    old = "channel_live = ((channel >= 0) & (channel < H))[:, None]"
    return edit(old, "channel_live = (channel < H)[:, None]", module=FORWARD)


FIRST_CHUNK = """\
lane = tl.arange(0, BLOCK_K)[None, :]
    feature = tl.load(x + row[:, None] * D + lane, mask=(row < B)[:, None] & (lane < D), other=0.0)
    inside = ((channel >= 0) & (channel < H))[:, None] & (lane < D)
    weight = tl.load(w_in + channel[:, None] * D + lane, mask=inside, other=0.0)
    products += feature[:, None, :] * weight[None, :, :]"""


@cfc_step_per_branch.fault(expects=("matches_oracle", "logic_matches"), number=8)
def only_the_first_chunk_of_features_read(edit: Edit) -> Any:
    """The loop over the features was lost when a tile held all of them.

    Up to 64 features, one chunk, nothing is missing.
    """
    old = "products = _add_products(products, x, w_in, row, channel, B, H, D, BLOCK_K)"
    return edit(old, FIRST_CHUNK, module=FORWARD)


@cfc_step.fault(expects=("matches_oracle", "new_share_is_accurate_for_small_steps"), number=29)
def complement_of_decay_by_subtraction(edit: Edit) -> Any:
    """1 - exp(-x) in place of -expm1(-x): for dt << tau all digits cancel.

    Hidden by the rounding of h unless h = 0; at dt/tau = 1e-8 the new share is lost altogether.
    """
    return edit("expm1(exponent) * tanh(pre)", "(tl.exp(exponent) - 1.0) * tanh(pre)", FORWARD)


@cfc_step_backward.fault(expects=("matches_oracle",), number=29)
def complement_of_decay_by_subtraction_in_the_gradient(edit: Edit) -> Any:
    """dpre with 1 - exp(-x): gradients to the weights vanish for small steps.

    Their absolute error is tiny, as they are.
    """
    old = "grad * -expm1(-periods) * tanh_slope(pre)"
    return edit(old, "grad * (1.0 - decay) * tanh_slope(pre)", module=BACKWARD)


@cfc_step.fault(expects=("matches_oracle",), number=30)
def products_added_in_half_precision(edit: Edit) -> Any:
    """Partial sums were kept in float16; small sizes and loose tolerances pass."""
    old = "products += vector[:, None, :] * weight[None, :, :]"
    new = (
        "products = (products + vector[:, None, :] * weight[None, :, :])"
        ".to(tl.float16).to(tl.float32)"
    )
    return edit(old, new, module=FORWARD)


_kept: dict[tuple[torch.Size, ...], dict[str, torch.Tensor]] = {}


@cfc_step_backward.fault(expects=("repeats",), number=31)
def gradients_added_to_a_buffer_that_was_not_cleared(
    g: torch.Tensor,
    x: torch.Tensor,
    h: torch.Tensor,
    dt: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
    **blocks: int,
) -> dict[str, torch.Tensor]:
    """The buffers of a shape were kept between calls and added to; the first call is right."""
    found = step_backward(g, x, h, dt, W_in, W_rec, b, tau, **blocks)
    shapes = tuple(gradient.shape for gradient in found.values())
    sums = _kept.setdefault(shapes, {name: torch.zeros_like(each) for name, each in found.items()})
    for name, gradient in found.items():
        sums[name] += gradient
    return sums


@triton.jit
def add_rows_in_any_order(rows: tl.tensor, sums: tl.tensor, H: int, BLOCK: tl.constexpr) -> None:
    """Add one row of (B, H) to sums (H,), whichever row comes first."""
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    terms = tl.load(rows + tl.program_id(0) * H + channel, mask=channel < H)
    tl.atomic_add(sums + channel, terms, mask=channel < H)


@cfc_step_backward.fault(expects=("is_deterministic",), number=32)
def batch_summed_by_atomics(edit: Edit) -> Any:
    """The bias's gradient was added up atomically: right within any tolerance, never the same."""
    old = "_input_gradients_kernel[(triton.cdiv(B, block_rows), tiles)]("
    new = f"""\
from trivet.faults.cfc import add_rows_in_any_order

        bias = sums[H * (D + H) : H * (D + H + 1)].zero_()
        add_rows_in_any_order[(B, triton.cdiv(H, 128))](dpre, bias, H, 128)
        {old}"""
    return edit(old, new, module=REDUCTIONS)


# ------------------------------------------------------------------------------ smaller slips


@cfc_step.fault(expects=("no_time_returns_the_state",))
def a_microsecond_added_to_every_step(edit: Edit) -> Any:
    """An epsilon against dt = 0, which needs none: repeated events wear the state away."""
    return edit("-(elapsed[:, None] /", "-((elapsed[:, None] + 1e-6) /", module=FORWARD)


@cfc_step.fault(expects=("state_stays_within_one_or_itself",))
def old_state_not_decayed(edit: Edit) -> Any:
    """The new share was added to all of the old state; right for dt << tau."""
    return edit("old * tl.exp(exponent)", "old", module=FORWARD)


@cfc_step.fault(expects=("offsets_fit",))
def rows_counted_in_32_bits(edit: Edit) -> Any:
    """Row times width wrapped beyond 2^31 elements: right in every test, wrong in a large batch."""
    row = "row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)"
    next_line = "\n    channel = tl.program_id(1)"
    return edit(row + next_line, row.replace(".to(tl.int64)", "") + next_line, module=FORWARD)


@cfc_step_per_branch_backward.fault(
    expects=("matches_oracle", "renaming_channels_in_the_table_renames_the_gradients"), number=2
)
def weights_read_at_the_slots_position_in_the_gradient(edit: Edit) -> Any:
    """The forward kernel was repaired, its copy of the lookup in the backward one was not.

    As in the forward kernel, tests with several buckets see it.
    """
    old = "pre = preactivation(x, h, w_in, w_rec, b, row, channel, B, D, H, BLOCK_K)"
    new = old.replace("channel", "tl.arange(0, channel.shape[0])")
    return edit(old, new, module=BACKWARD)


@cfc_step_backward.fault(expects=("offsets_fit",))
def parts_of_the_batch_counted_in_32_bits(edit: Edit) -> Any:
    """The first row of a late part wrapped once it was multiplied by the width."""
    return edit(
        "part = tl.program_id(2).to(tl.int64)", "part = tl.program_id(2)", module=REDUCTIONS
    )


@cfc_step_per_branch_backward.fault(
    expects=("reads_initialised", "channels_outside_every_bucket_count_as_zero")
)
def channels_of_no_bucket_left_unwritten(edit: Edit) -> Any:
    """Scratch of the branches was not cleared: channels of none held what memory did."""
    return edit("local = h.new_zeros((3, B, H))", "local = h.new_empty((3, B, H))", module=BACKWARD)
