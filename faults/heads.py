"""Past bugs of the gated residual heads."""

from collections.abc import Callable
from typing import Any

from trivet.properties.heads import (
    heads_block_diagonal,
    heads_block_diagonal_backward,
    heads_dense,
    heads_dense_backward,
    heads_scatter,
)

Edit = Callable[..., Any]
FORWARD = "trivet.impl.heads.forward"
BACKWARD = "trivet.impl.heads.backward"
REDUCTIONS = "trivet.impl.heads.reductions"
PACKED = "trivet.impl.heads.packed"
OWN_STATE = """\
            s + row[:, None] * H + channel[None, :],
            mask=(row < B)[:, None] & live[None, :],"""


@heads_block_diagonal.fault(
    expects=("matches_oracle", "packed_skip_equals_the_masked_full_one"), number=2
)
def states_read_at_the_slots_position(edit: Edit) -> Any:
    """The state was read by position in the bucket, not by original channel.

    Right for the first bucket of channels that lie in a row.
    """
    return edit(OWN_STATE, OWN_STATE.replace("channel[", "slot["), module=FORWARD)


@heads_block_diagonal.fault(expects=("matches_oracle",), number=7)
def unused_slots_serve_channel_zero(edit: Edit) -> Any:
    """Slots of -1 were raised to 0, and each added channel 0's state times a weight."""
    old = """channel = tl.load(table + horizon * M + slot, mask=slot < M, other=-1)
        live = channel >= 0"""
    new = """channel = tl.load(table + horizon * M + slot, mask=slot < M, other=-1)
        channel = tl.maximum(channel, 0)
        live = slot < M"""
    return edit(old, new, module=FORWARD)


@heads_block_diagonal.fault(expects=("matches_oracle",))
def every_bucket_reads_the_first_ones_weights(edit: Edit) -> Any:
    """The offset was left out: right as long as there is one bucket."""
    return edit("packed = tl.load(offset + horizon)", "packed = 0", module=FORWARD)


@heads_block_diagonal.fault(expects=("other_buckets_channels_never_reach_the_skip_term",))
def off_bucket_states_multiplied_by_zero(edit: Edit) -> Any:
    """The full row was read and masked by a product: a NaN of another bucket comes through."""
    old = "    return tl.sum(products, axis=1)\n\n\n@triton.jit(do_not_specialize"
    new = """\
    for start in range(0, H, BLOCK_H):
        channel = start + tl.arange(0, BLOCK_H)
        state = tl.load(
            s + row[:, None] * H + channel[None, :],
            mask=(row < B)[:, None] & (channel < H)[None, :],
            other=0.0,
        )
        products += state * 0.0
"""
    return edit(old, new + old, module=FORWARD)


@heads_dense.fault(expects=("matches_oracle", "logic_matches"), number=8)
def only_the_first_chunk_of_channels_read(edit: Edit) -> Any:
    """The loop over the state was lost when a tile held all of it."""
    old = """\
    for start in range(0, H, BLOCK_H):
        channel = start + tl.arange(0, BLOCK_H)
        state = tl.load(
            s + row[:, None] * H + channel[None, :],
            mask=(row < B)[:, None] & (channel < H)[None, :],
            other=0.0,
        )
        place"""
    return edit(old, old.replace("(0, H, BLOCK_H)", "(0, BLOCK_H, BLOCK_H)"), module=FORWARD)


@heads_dense.fault(expects=("matches_oracle",), number=30)
def products_in_tf32(edit: Edit) -> Any:
    """The default of a matrix product rounds its inputs to ten bits on a GPU."""
    old = 'tl.dot(state, weight, total, input_precision="ieee")'
    return edit(old, "tl.dot(state, weight, total)", module=FORWARD)


@heads_dense.fault(expects=("stays_in_bounds",))
def a_unit_too_many_read(edit: Edit) -> Any:
    """The unit after the last took the next horizon's weight; its value happened to be 0."""
    old = "tl.load(w_main + horizon * E + unit, mask=unit < E, other=0.0)[None, :]\n    gate"
    return edit(
        old, old.replace("mask=unit < E, other=0.0", "mask=unit < E + 1, other=0.0"), FORWARD
    )


@heads_dense_backward.fault(expects=("matches_oracle",))
def slope_of_elu_from_its_value(edit: Edit) -> Any:
    """exp(z) as ELU(z) + 1: for z far below 0 all digits cancel."""
    old = "slope = tl.where(below > 0.0, 1.0, tl.exp(tl.minimum(below, 0.0)))"
    new = "slope = tl.where(below > 0.0, 1.0, (tl.exp(tl.minimum(below, 0.0)) - 1.0) + 1.0)"
    return edit(old, new, module=BACKWARD)


@heads_dense_backward.fault(expects=("sure_heads_pass_on_their_small_slope",))
def probability_slope_by_subtraction(edit: Edit) -> Any:
    """p (1 - p): for a sure head 1 - p has lost its digits."""
    return edit(
        "* sigmoid(logit) * sigmoid(-logit)", "* sigmoid(logit) * (1.0 - sigmoid(logit))", BACKWARD
    )


@heads_dense_backward.fault(expects=("matches_oracle",))
def gate_not_differentiated(edit: Edit) -> Any:
    """The gate was taken for a constant: its weights never learned."""
    return edit("to_gate = to_main * main * sigmoid(-opening)", "to_gate = to_main * 0.0", BACKWARD)


@heads_dense_backward.fault(expects=("matches_oracle",))
def skip_left_out_of_the_states_gradient(edit: Edit) -> Any:
    """The states learned through the layers alone."""
    return edit(
        "for start in range(0, N, BLOCK_E):", "for start in range(0, 0, BLOCK_E):", REDUCTIONS
    )


@heads_block_diagonal_backward.fault(expects=("reads_initialised",), number=24)
def packed_parts_not_cleared(edit: Edit) -> Any:
    """Entries that no bucket owns held what memory did."""
    old = "partials = s.new_zeros((parts, H))"
    return edit(old, "partials = s.new_empty((parts, H))", module=REDUCTIONS)


@heads_block_diagonal_backward.fault(expects=("offsets_fit",))
def rows_of_a_part_counted_in_32_bits(edit: Edit) -> Any:
    """The first row of a late part wrapped once it was multiplied by the width."""
    old = "horizon = tl.program_id(0)\n    part = tl.program_id(1).to(tl.int64)"
    return edit(old, old.replace(".to(tl.int64)", ""), module=REDUCTIONS)


@heads_scatter.fault(expects=("matches_oracle", "other_places_are_plus_zero"), number=24)
def other_places_not_cleared(edit: Edit) -> Any:
    """The matrix was not filled with zeros first: off bucket it held what memory did."""
    return edit(
        "full = packed.new_zeros((N, H))", "full = packed.new_empty((N, H)).add_(1)", PACKED
    )
