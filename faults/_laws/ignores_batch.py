"""ignores_batch turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("ignores_batch",))
def depends_on_the_number_of_rows(edit: Edit) -> Kernel:
    """A row's result changes when there are more than two rows."""
    return edit(
        "tl.sum(total))",
        "tl.sum(total) + tl.where(rows > 2, 1.0, 0.0))",
    )
