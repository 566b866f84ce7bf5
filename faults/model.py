"""Past bugs of the perception model: what it feeds to which part, and from which moment."""

from collections.abc import Callable
from typing import Any

from trivet.properties.model import (
    model_after_window,
    model_features,
    model_step,
    model_window,
    model_window_dense,
)

Edit = Callable[..., Any]
FEATURES = "trivet.impl.model.features"
WINDOW = "trivet.impl.model.window"
STEPPING = "trivet.impl.model.stepping"


@model_features.fault(expects=("matches_oracle",))
def residual_lost(edit: Edit) -> Any:
    """A block gave its scan alone: what it did not learn to keep was gone."""
    return edit("        u = u + y\n    return u\n", "        u = y\n    return u\n", FEATURES)


@model_features.fault(expects=("matches_oracle",))
def every_block_with_the_first_ones_weights(edit: Edit) -> Any:
    """The second block read the first one's decay rates: right for one block."""
    return edit(
        "ScanGates.apply(delta, A_log[block])", "ScanGates.apply(delta, A_log[0])", FEATURES
    )


@model_window_dense.fault(expects=("matches_oracle",))
def pool_of_the_last_event_alone(edit: Edit) -> Any:
    """The first state was the pool of one event: right for windows of one."""
    return edit("AttentionPool.apply(q, u)", "AttentionPool.apply(q, u[:, -1:].clone())", WINDOW)


@model_window_dense.fault(expects=("matches_oracle",))
def every_event_after_the_first_ones_time(edit: Edit) -> Any:
    """All events took the seconds before the first."""
    return edit("dt[:, event].contiguous()", "dt[:, 0].contiguous()", WINDOW)


@model_window.fault(expects=("matches_oracle", "off_bucket_skip_weights_are_never_read"))
def dense_heads_after_the_transition(edit: Edit) -> Any:
    """The cell went per branch, the heads went on reading all skip weights."""
    old = """    if table is None:
        logits, p = Heads"""
    return edit(old, old.replace("if table is None", "if True"), WINDOW)


@model_window.fault(expects=("channels_of_no_bucket_stay_zero",), number=6)
def dense_cell_after_the_transition(edit: Edit) -> Any:
    """The record reached the heads and not the cell: two owners of one truth."""
    old = "        if table is None:\n            state"
    return edit(old, old.replace("if table is None", "if True"), WINDOW)


@model_step.fault(expects=("channels_of_no_bucket_keep_their_state",), number=24)
def state_of_no_bucket_lost(edit: Edit) -> Any:
    """Branches wrote into a fresh buffer: channels in none of them fell to 0."""
    return edit("new = state.clone()", "new = torch.zeros_like(state)", STEPPING)


@model_step.fault(expects=("matches_oracle",))
def heads_read_the_state_before(edit: Edit) -> Any:
    """The heads ran on the state before the event: one event late."""
    return edit("heads_block_diagonal(new, *head)", "heads_block_diagonal(state, *head)", STEPPING)


@model_step.fault(expects=("matches_oracle",))
def events_bypass_the_scan_blocks(edit: Edit) -> Any:
    """Single events moved the scan states and skipped what the blocks add."""
    old = "        u = u + y\n    return u, after"
    return edit(old, "    return u, after", FEATURES)


@model_after_window.fault(expects=("matches_oracle", "seeded_state_is_the_windows_last"), number=23)
def seeded_from_the_event_before_the_last(edit: Edit) -> Any:
    """The state was that of event K - 2, which for one event is the only one."""
    return edit(".states[-1].clone()", ".states[max(-2, -len(x[0]))].clone()", STEPPING)


@model_after_window.fault(
    expects=("matches_oracle", "seeded_scan_states_are_those_of_single_steps"), number=52
)
def seeded_like_a_window_shifted_by_one(edit: Edit) -> Any:
    """The scan began at the second event, as the window one later would have it."""
    return edit("scan_states = seed(x, *", "scan_states = seed(x[:, 1:], *", STEPPING)


@model_window.fault(expects=("matches_oracle",), number=38)
def every_horizon_with_the_first_ones_head(edit: Edit) -> Any:
    """All horizons' layers were those of the first: training goes on, and all behave alike."""
    old = "    layers = [weights[name] for name in HEAD]\n"
    new = """\
    layers = [weights[name][:1].expand_as(weights[name]).contiguous() for name in HEAD]
"""
    return edit(old, new, WINDOW)
