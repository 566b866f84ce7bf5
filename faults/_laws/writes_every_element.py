"""writes_every_element turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("writes_every_element",))
def first_row_left_out(edit: Edit) -> Kernel:
    """The first row is never stored."""
    return edit(
        "tl.sum(total))",
        "tl.sum(total), mask=row > 0)",
    )
