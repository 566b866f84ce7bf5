"""Past bugs of the attention pool."""

from collections.abc import Callable
from typing import Any

from trivet.properties.pool import pool_attention_pool, pool_attention_pool_backward

Edit = Callable[..., Any]
MODULE = "trivet.impl.pool.attention"


@pool_attention_pool.fault(expects=("matches_oracle", "logic_matches"), number=8)
def only_the_first_events_pooled(edit: Edit) -> Any:
    """The loop over the window was lost: right up to one tile of events."""
    old = "for start in range(0, K, BLOCK_K):\n        event = start + tl.arange(0, BLOCK_K)\n"
    old += "        states = _states(x, row, event, channel, K, H)\n"
    old += "        score = tl.sum(states * query[None, :], axis=1) * scale\n"
    old += "        score = tl.where("
    return edit(old, old.replace("(0, K, BLOCK_K)", "(0, BLOCK_K, BLOCK_K)"), module=MODULE)


@pool_attention_pool.fault(expects=("matches_oracle",))
def largest_score_not_subtracted(edit: Edit) -> Any:
    """exp of the bare score: infinite over infinite from scores of 89 on."""
    old = "higher = tl.maximum(largest, tl.max(score, axis=0))"
    return edit(old, "higher = tl.maximum(largest, 0.0) * 0.0", module=MODULE)


@pool_attention_pool.fault(expects=("matches_oracle", "each_component_stays_in_its_range"))
def earlier_sums_not_rescaled(edit: Edit) -> Any:
    """When a larger score comes, what was summed before must shrink with the maximum."""
    return edit("pooled = pooled * kept + ", "pooled = pooled + ", module=MODULE)


@pool_attention_pool.fault(expects=("matches_oracle", "each_component_stays_in_its_range"))
def padding_events_share_the_weight(edit: Edit) -> Any:
    """Events beyond the window had score 0 in place of -inf, hence a part of the weight."""
    old = 'score = tl.where(event < K, score, float("-inf"))'
    return edit(old, "score = tl.where(event < K, score, 0.0)", module=MODULE)


@pool_attention_pool.fault(expects=("matches_oracle",))
def score_not_scaled(edit: Edit) -> Any:
    """q . X_t without 1 / sqrt(H): a sharper softmax, and still a weighted mean."""
    old = "score = tl.sum(states * query[None, :], axis=1) * scale\n        score = tl.where("
    return edit(old, old.replace(" * scale", ""), module=MODULE)


@pool_attention_pool_backward.fault(expects=("matches_oracle",))
def mean_not_taken_off(edit: Edit) -> Any:
    """The softmax's own derivative forgot that the weights sum to 1."""
    old = "pull = tl.sum((states - pooled[None, :]) * slope[None, :], axis=1)"
    return edit(old, "pull = tl.sum(states * slope[None, :], axis=1)", module=MODULE)


@pool_attention_pool_backward.fault(expects=("matches_oracle",))
def share_of_the_last_row_alone(edit: Edit) -> Any:
    """The share of dq was overwritten row by row: right for a batch of one row a part."""
    old = "share += tl.sum(to_score[:, None] * states, axis=0)"
    return edit(old, "share = tl.sum(to_score[:, None] * states, axis=0)", module=MODULE)


@pool_attention_pool_backward.fault(expects=("offsets_fit",))
def rows_of_the_batch_counted_in_32_bits(edit: Edit) -> Any:
    """Rows times events times channels wrapped beyond 2^31 elements."""
    return edit("part = tl.program_id(0).to(tl.int64)", "part = tl.program_id(0)", module=MODULE)
