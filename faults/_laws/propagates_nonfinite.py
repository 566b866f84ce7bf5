"""propagates_nonfinite turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("propagates_nonfinite",))
def nan_taken_for_zero(edit: Edit) -> Kernel:
    """NaN is left out of the sum."""
    return edit(
        "total += tl.load(at, mask=lane < columns, other=0.0)",
        "x = tl.load(at, mask=lane < columns, other=0.0)\n"
        "        total += tl.where(x == x, x, 0.0)",
    )
