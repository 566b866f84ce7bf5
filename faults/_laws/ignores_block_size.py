"""ignores_block_size turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("ignores_block_size",))
def two_blocks_at_most(edit: Edit) -> Kernel:
    """Only the first two blocks of a row are summed."""
    return edit(
        "range(0, columns, BLOCK)",
        "range(0, tl.minimum(columns, 2 * BLOCK), BLOCK)",
    )
