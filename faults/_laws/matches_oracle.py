"""matches_oracle turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("matches_oracle",))
def summed_in_half_precision(edit: Edit) -> Kernel:
    """The running sum is kept in half precision; small sizes pass."""
    return edit("other=0.0)\n", "other=0.0)\n        total = total.to(tl.float16).to(tl.float32)\n")
