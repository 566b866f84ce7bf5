"""stays_in_bounds turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("stays_in_bounds",))
def one_lane_too_many(edit: Edit) -> Kernel:
    """The mask lets in the lane after the last."""
    return edit(
        "mask=lane < columns",
        "mask=lane <= columns",
    )
