"""ignores_masked_lanes turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("ignores_masked_lanes",))
def padding_left_undefined(edit: Edit) -> Kernel:
    """Lanes beyond the row hold whatever the hardware leaves there."""
    return edit(
        ", other=0.0",
        "",
    )
