"""leaves_inputs_unchanged turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("leaves_inputs_unchanged",))
def row_overwritten(edit: Edit) -> Kernel:
    """The result also goes into the row's first element."""
    return edit(
        "tl.store(y_ptr + row, tl.sum(total))",
        "tl.store(y_ptr + row, tl.sum(total))\n"
        "    tl.store(x_ptr + row * row_step, tl.sum(total), mask=columns > 0)",
    )
