"""perf_lock turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("perf_lock",))
def sum_in_double(edit: Edit) -> Kernel:
    """The sum is kept in float64, at a fraction of the speed."""
    return edit(
        "total = tl.zeros((BLOCK,), tl.float32)",
        "total = tl.zeros((BLOCK,), tl.float64)",
    )
