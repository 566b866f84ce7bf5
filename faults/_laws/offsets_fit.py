"""offsets_fit turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("offsets_fit",))
def row_offset_in_32_bits(edit: Edit) -> Kernel:
    """The row times the row stride wraps beyond 2^31 elements."""
    return edit(
        "row = tl.program_id(0).to(tl.int64)",
        "row = tl.program_id(0)",
    )
