"""is_race_free turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("is_race_free",))
def two_rows_in_one_place(edit: Edit) -> Kernel:
    """Neighbouring rows store to one element."""
    return edit(
        "tl.store(y_ptr + row,",
        "tl.store(y_ptr + row // 2,",
    )
