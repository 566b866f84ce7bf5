"""logic_matches turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("logic_matches",))
def factor_within_the_bound(edit: Edit) -> Kernel:
    """A factor so near to one that the bound of long rows hides it."""
    return edit(
        "tl.sum(total))",
        "tl.sum(total) * 1.0000005)",
    )
