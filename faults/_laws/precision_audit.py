"""precision_audit turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("precision_audit",))
def rounded_on_the_way(edit: Edit) -> Kernel:
    """Values are rounded to bfloat16, in which the kernel stores nothing."""
    return edit(
        "tl.load(at, mask=lane < columns, other=0.0)",
        "tl.load(at, mask=lane < columns, other=0.0).to(tl.bfloat16).to(tl.float32)",
    )
