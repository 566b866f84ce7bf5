"""does_work turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("does_work",))
def never_launched(edit: Edit) -> Kernel:
    """The result is computed by the host; the kernel never runs."""
    return edit(
        "if y.numel()",
        "y = x.sum(-1)\n        if y.numel() < 0",
    )
