"""Past bugs of policy programs."""

from collections.abc import Callable
from typing import Any

from trivet.properties.policy import policy_evaluate

Edit = Callable[..., Any]
MACHINE = "trivet.impl.policy.machine"
PROGRAMS = "trivet.impl.policy.programs"


@policy_evaluate.fault(expects=("matches_oracle",))
def operands_taken_in_the_order_popped(edit: Edit) -> Any:
    """First-popped minus second-popped: sums and products do not tell."""
    return edit("tl.where(op == _SUB, two - one, value)", "tl.where(op == _SUB, one - two, value)")


@policy_evaluate.fault(expects=("matches_oracle",))
def division_by_zero_left_to_the_hardware(edit: Edit) -> Any:
    """x/0 was infinite, 0/0 NaN, where a program counts on 0."""
    old = "tl.where(op == _DIV, tl.where(one == 0.0, 0.0, quotient), value)"
    return edit(old, "tl.where(op == _DIV, tl.div_rn(two, one), value)")


@policy_evaluate.fault(expects=("orders_are_numbers_within_one", "matches_oracle"))
def undefined_orders_passed_on(edit: Edit) -> Any:
    """A program that wrote NaN got the clamp's NaN as its signal."""
    old = "value = tl.where(undefined, 0.0, tl.minimum(tl.maximum(written, -1.0), 1.0))"
    return edit(old, "value = written")


@policy_evaluate.fault(expects=("matches_oracle",))
def select_takes_the_other_branch(edit: Edit) -> Any:
    """a and b changed places."""
    old = "tl.where(one > 0.0, three, two)"
    return edit(old, "tl.where(one > 0.0, two, three)")


@policy_evaluate.fault(expects=("default_policy_is_the_built_in_decision",))
def program_credits_the_horizon_of_the_largest_size(edit: Edit) -> Any:
    """The weight was left out of what decides who is credited."""
    return edit("strength = tl.abs(sizes * weight)", "strength = tl.abs(sizes)")


@policy_evaluate.fault(expects=("rejects_bad_input",))
def verifier_counts_no_depth(edit: Edit) -> Any:
    """An instruction without operands passed: the machine read what lay under its stack."""
    return edit("if depth < each.needs:", "if depth < 0:", module=PROGRAMS)


@policy_evaluate.fault(expects=("longer_padding_changes_nothing",))
def padding_writes_once_more(edit: Edit) -> Any:
    """A step past HALT wrote the bottom of an empty stack; full-length programs have none."""
    old = "written = tl.where(op == _WRITE, one, written)"
    return edit(old, "written = tl.where((op == _WRITE) | (step == 24), one, written)")
