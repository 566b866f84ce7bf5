"""ignores_layout turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("ignores_layout",))
def unit_stride_taken_for_granted(edit: Edit) -> Kernel:
    """Columns are read as if they lay side by side."""
    return edit(
        "lane * column_step",
        "lane",
    )
