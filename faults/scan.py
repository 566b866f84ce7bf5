"""Past bugs of the selective scan and its gates."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from trivet.impl.scan import scan_chunked_backward as gradients_of
from trivet.properties.scan import (
    scan_chunked,
    scan_chunked_backward,
    scan_gates,
    scan_gates_backward,
    scan_step,
    scan_step_backward,
)

Edit = Callable[..., Any]
RECURRENCE = "trivet.impl.scan.recurrence"
FORWARD = "trivet.impl.scan.forward"
BACKWARD = "trivet.impl.scan.backward"
GATES = "trivet.impl.scan.gates"

# ------------------------------------------------------------------------------ chunks

CARRY = "carried = row_of(states, CHUNK - 1)"
ENTERED = "entered = decay * before[None, :, :] + gained"
PLAIN_SCAN = (
    "_, states = tl.associative_scan((decay, gained), 0, _one_after_the_other, reverse=REVERSE)"
)


@scan_chunked.fault(expects=("matches_oracle", "halves_equal_the_whole"), number=8)
def only_the_first_chunk_scanned(edit: Edit) -> Any:
    """The loop over chunks was lost: right for every window of one chunk."""
    old = "for start in range(0, T, CHUNK):"
    return edit(old, "for start in range(0, tl.minimum(T, CHUNK), CHUNK):", module=FORWARD)


@scan_chunked.fault(expects=("chunks_of_any_size_agree", "halves_equal_the_whole"), number=9)
def carry_dropped(edit: Edit) -> Any:
    """Every chunk started from 0; a window of one chunk hides it."""
    old = "        states = run(decay, gained, cut, carried, False, HAS_RESET)\n        read"
    return edit(old, old.replace("cut, carried,", "cut, 0.0 * carried,"), module=FORWARD)


@scan_chunked.fault(expects=("matches_oracle", "chunks_of_any_size_agree"), number=9)
def carry_applied_twice(edit: Edit) -> Any:
    """It entered at the first step, and the terminal state took it once more."""
    return edit(CARRY, CARRY + " + carried", module=FORWARD)


@scan_chunked.fault(expects=("matches_oracle", "chunks_of_any_size_agree"), number=9)
def last_partial_chunk_decays_the_carry(edit: Edit) -> Any:
    """Steps past the end wiped the terminal state out; whole chunks pass."""
    old = "decay = load_steps(a, row, time, channel, T, H, 1.0)"
    return edit(old, old.replace("1.0", "0.0"), module=RECURRENCE)


@scan_chunked.fault(expects=("halves_equal_the_whole", "matches_oracle"))
def carry_not_decayed(edit: Edit) -> Any:
    """The state before a chunk was added to its first step as it was; right for a near 1."""
    return edit(ENTERED, "entered = before[None, :, :] + gained", module=RECURRENCE)


@scan_chunked.fault(
    expects=("a_shut_gate_forgets", "long_windows_of_small_decays_stay_finite"), number=48
)
def ratio_of_cumulative_products(edit: Edit) -> Any:
    """x_t = P_t sum b_s / P_s, without a tree: fine for a near 1, 0 / 0 behind a shut gate."""
    new = """\
product = tl.cumprod(tl.where(first, 1.0, decay), axis=0, reverse=REVERSE)
        states = product * tl.cumsum(gained / product, axis=0, reverse=REVERSE)"""
    return edit(PLAIN_SCAN, new, module=RECURRENCE)


@scan_chunked.fault(
    expects=("gates_open_or_shut_are_exact", "replayed_events_equal_the_window"), number=48
)
def difference_of_cumulative_logarithms(edit: Edit) -> Any:
    """exp(L_t - L_s) with L the running sum of log a: -inf - -inf is NaN."""
    new = """\
logarithm = tl.cumsum(tl.log(tl.where(first, 1.0, decay)), axis=0, reverse=REVERSE)
        share = tl.cumsum(gained * tl.exp(-logarithm), axis=0, reverse=REVERSE)
        states = tl.exp(logarithm) * share"""
    return edit(PLAIN_SCAN, new, module=RECURRENCE)


@scan_chunked.fault(expects=("matches_oracle", "open_gates_integrate"), number=30)
def carry_kept_in_half_precision(edit: Edit) -> Any:
    """The state between chunks was rounded to bfloat16: whole numbers above 256 show it."""
    return edit(CARRY, CARRY + ".to(tl.bfloat16).to(tl.float32)", module=FORWARD)


@scan_chunked.fault(expects=("no_event_returns_the_state",))
def nothing_launched_for_no_event(edit: Edit) -> Any:
    """Without outputs there seemed to be no work: the terminal state was never written."""
    return edit("if x_0.numel():", "if u.numel():", module=FORWARD)


@scan_chunked.fault(expects=("matches_oracle", "stays_in_bounds"), number=24)
def padding_states_read(edit: Edit) -> Any:
    """Lanes beyond the last state held the next step's weights, and the output summed them."""
    old = "live = ((time >= 0) & (time < T))[:, None] & (column < width)[None, :]"
    new = "live = ((time >= 0) & (time < T))[:, None] & (column < width + 1)[None, :]"
    return edit(old, new, module=RECURRENCE)


@scan_chunked.fault(expects=("offsets_fit",))
def rows_counted_in_32_bits(edit: Edit) -> Any:
    """Rows times steps times channels wrapped beyond 2^31 elements."""
    old = "row = tl.program_id(0).to(tl.int64)"
    return edit(old, "row = tl.program_id(0)", module=FORWARD)


# ------------------------------------------------------------------------------ resets


@scan_chunked.fault(expects=("a_reset_parts_the_window",), number=49)
def reset_by_a_product(edit: Edit) -> Any:
    """The state before a reset was multiplied by 0 in place of a select: NaN went on."""
    old = "x = tl.where(cut_second != 0, x_second, a_second * x_first + x_second)"
    new = "x = a_second * (1 - cut_second) * x_first + x_second"
    return edit(old, new, module=RECURRENCE)


@scan_chunked.fault(expects=("matches_oracle", "a_reset_parts_the_window"))
def reset_missed_at_the_edge_of_a_chunk(edit: Edit) -> Any:
    """Resets worked within a chunk; at its first step the carry came in all the same."""
    old = "        entered = tl.where(cuts != 0, gained, entered)\n"
    return edit(old, "", module=RECURRENCE)


@scan_chunked.fault(expects=("matches_oracle", "a_reset_parts_the_window"))
def reset_after_the_step(edit: Edit) -> Any:
    """The state was dropped after the step of the reset, not before it."""
    old = "return decay, gained, load_cuts(reset, row, time, T, HAS_RESET)"
    return edit(old, old.replace("row, time,", "row, time - 1,"), module=RECURRENCE)


@scan_step.fault(expects=("matches_oracle", "a_reset_starts_afresh"))
def reset_never_handed_over(edit: Edit) -> Any:
    """The window knew of resets, the single step did not: the two drifted apart at the first."""
    old = "None if reset is None else reset[:, None], 1, block_channels"
    return edit(old, "None, 1, block_channels", module=FORWARD)


@scan_step.fault(expects=("matches_oracle", "an_open_gate_without_input_keeps_the_state"))
def state_not_written_back(edit: Edit) -> Any:
    """The step returned the state it was given; only the next event would have shown it."""
    old = "    tl.store(x_end + place, carried, mask=live)"
    return edit(old, "    tl.store(x_end + place, 0.5 * carried, mask=live)", module=FORWARD)


# ------------------------------------------------------------------------------ gradients


@scan_chunked_backward.fault(expects=("no_gradient_crosses_a_reset",), number=49)
def gradient_of_a_reset_by_a_product(edit: Edit) -> Any:
    """da took the replaced state, 0, times the gradient: NaN where that was infinite."""
    old = "to_decay = tl.where((cut != 0)[:, None], 0.0, to_decay)"
    new = "to_decay *= (cut == 0)[:, None].to(tl.float32)"
    return edit(old, new, module=BACKWARD)


@scan_chunked_backward.fault(expects=("matches_oracle", "no_gradient_crosses_a_reset"))
def gradient_cut_a_step_late(edit: Edit) -> Any:
    """The reset of the step itself stopped the gradient, not that of the step after it."""
    old = "cut = load_cuts(reset, row, time + 1, T, HAS_RESET)"
    return edit(old, old.replace("time + 1", "time"), module=BACKWARD)


@scan_chunked_backward.fault(expects=("matches_oracle", "halves_pass_the_gradients_of_the_whole"))
def gradient_decayed_by_the_step_itself(edit: Edit) -> Any:
    """G_t took a_t in place of a_(t+1): right as long as a hardly changes."""
    old = "decay = load_steps(a, row, time + 1, channel, T, H, 1.0)"
    return edit(old, old.replace("time + 1", "time"), module=BACKWARD)


@scan_chunked_backward.fault(expects=("matches_oracle", "no_state_crosses_a_reset"))
def states_run_on_across_a_reset(edit: Edit) -> Any:
    """The states computed anew for dC forgot that a reset replaces the one before."""
    old = "                states = tl.where((cut != 0)[:, None, None], gained, states)\n"
    return edit(old, "", module=BACKWARD)


@scan_chunked_backward.fault(
    expects=("matches_oracle", "chunks_of_any_size_pass_the_same_gradients"), number=9
)
def gradient_not_carried_between_chunks(edit: Edit) -> Any:
    """Every chunk but the last took g_x_T in place of the next chunk's gradient."""
    return edit("            later = row_of(to_states, 0)\n", "", module=BACKWARD)


@scan_chunked_backward.fault(expects=("matches_oracle", "no_event_passes_the_gradient_on"))
def gradient_of_the_terminal_state_lost(edit: Edit) -> Any:
    """Only the outputs' gradients went back; training by them alone never showed it."""
    old = "later = tl.load(g_end + row * H * S + offset, mask=live, other=0.0)"
    return edit(old, "later = tl.zeros([BLOCK_CHANNELS, BLOCK_STATES], tl.float32)", BACKWARD)


@scan_chunked_backward.fault(expects=("matches_oracle",))
def share_of_the_last_row_alone(edit: Edit) -> Any:
    """The share of dD was overwritten chunk by chunk and row by row."""
    return edit("d_share += slope * entry", "d_share = slope * entry", module=BACKWARD)


@scan_chunked_backward.fault(expects=("offsets_fit",))
def parts_of_the_batch_counted_in_32_bits(edit: Edit) -> Any:
    """The first row of a late part wrapped once it was multiplied by the width."""
    old = "part = tl.program_id(0).to(tl.int64)"
    return edit(old, "part = tl.program_id(0)", module=BACKWARD)


_kept: dict[tuple[torch.Size, ...], dict[str, torch.Tensor]] = {}


@scan_chunked_backward.fault(expects=("repeats",), number=31)
def gradients_added_to_a_buffer_that_was_not_cleared(*window: Any, **options: Any) -> Any:
    """The buffers of a shape were kept between calls and added to; the first call is right."""
    found = gradients_of(*window, **options)
    shapes = tuple(gradient.shape for gradient in found.values())
    sums = _kept.setdefault(shapes, {name: torch.zeros_like(each) for name, each in found.items()})
    for name, gradient in found.items():
        sums[name] += gradient
    return sums


@triton.jit
def add_shares_in_any_order(
    shares: tl.tensor, sums: tl.tensor, H: int, BLOCK: tl.constexpr
) -> None:
    """Add one of the shares (parts, H) to sums (H,), whichever comes first."""
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    terms = tl.load(shares + tl.program_id(0) * H + channel, mask=channel < H)
    tl.atomic_add(sums + channel, terms, mask=channel < H)


@scan_gates_backward.fault(expects=("is_deterministic",), number=32)
def parts_summed_by_atomics(edit: Edit) -> Any:
    """dA_log was added up atomically: right within any tolerance, different every run."""
    old = 'return {"delta": ddelta, "A_log": sum_parts(shares)}'
    new = """\
from trivet.faults.scan import add_shares_in_any_order

    rates = torch.zeros_like(A_log)
    add_shares_in_any_order[(parts, triton.cdiv(H, 128))](shares, rates, H, 128)
    return {"delta": ddelta, "A_log": rates}"""
    return edit(old, new, module=GATES)


@scan_step_backward.fault(expects=("matches_oracle", "a_reset_passes_no_gradient_to_the_state"))
def gradient_passed_on_through_a_reset(edit: Edit) -> Any:
    """The first step's reset was forgotten: the state before it got a gradient."""
    old = "            earliest = tl.where(cut != 0, 0.0, earliest)\n"
    return edit(old, "", module=BACKWARD)


# ------------------------------------------------------------------------------ gates


@scan_gates.fault(expects=("matches_oracle", "gates_stay_in_their_ranges"), number=50)
def raw_input_as_the_step(edit: Edit) -> Any:
    """The gain took delta, the decay softplus(delta): nearly equal where delta is large."""
    old = "_, size, kept, _ = _gates_of(delta, a_log, row, channel, rows, H)"
    return edit(old, old.replace("_, size,", "size, _,"), module=GATES)


@scan_gates_backward.fault(
    expects=("matches_oracle", "shut_inputs_pass_on_their_small_slope"), number=50
)
def slope_of_the_raw_input(edit: Edit) -> Any:
    """The gradient through the step left softplus' slope out: 1 in place of sigmoid(delta)."""
    old = "(to_step - to_exponent) * sigmoid(raw)"
    return edit(old, "to_step - to_exponent * sigmoid(raw)", module=GATES)


@scan_gates.fault(expects=("matches_oracle", "far_inputs_overflow_nothing"))
def softplus_as_written(edit: Edit) -> Any:
    """log(1 + exp(x)): infinite from 89 on, and 0 below -17."""
    old = "return tl.maximum(x, 0.0) + log1p(tl.exp(-tl.abs(x)))"
    return edit(old, "return tl.log(1.0 + tl.exp(x))", module=GATES)


@scan_gates_backward.fault(expects=("matches_oracle",), number=8)
def rate_of_the_last_rows_alone(edit: Edit) -> Any:
    """The share of dA_log was overwritten block by block: right for one block of rows a part."""
    return edit("share -= to_exponent * size", "share = -to_exponent * size", module=GATES)


@scan_gates.fault(expects=("offsets_fit",))
def rows_of_gates_counted_in_32_bits(edit: Edit) -> Any:
    """Batch times time times channels wrapped beyond 2^31 elements."""
    row = "row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS"
    return edit(row, "row = tl.program_id(0) * BLOCK_ROWS", module=GATES)
