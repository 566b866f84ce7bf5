"""reads_initialised turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("reads_initialised",))
def adds_to_an_empty_buffer(edit: Edit) -> Kernel:
    """The sum is added to a result that nobody cleared."""
    return edit(
        "tl.store(y_ptr + row, tl.sum(total))",
        "tl.store(y_ptr + row, tl.load(y_ptr + row) + tl.sum(total))",
    )
