"""handles_empty turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("handles_empty",))
def empty_rows_not_stored(edit: Edit) -> Kernel:
    """Nothing is launched when rows are empty, and the result is left as it was allocated."""
    return edit(
        "if y.numel()",
        "if x.numel()",
    )
