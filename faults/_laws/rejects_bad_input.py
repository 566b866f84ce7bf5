"""rejects_bad_input turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("rejects_bad_input",))
def dtype_not_checked(edit: Edit) -> Kernel:
    """The check of the dtype is gone."""
    return edit(
        "if x.dtype != torch.float32",
        "if x.dtype == torch.bool",
    )
