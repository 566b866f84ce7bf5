"""exact_on_integers turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("exact_on_integers",))
def terms_rounded_to_bfloat16(edit: Edit) -> Kernel:
    """Terms lose their low bits, as in a matrix product in a narrow format."""
    return edit(
        "total += tl.load(at, mask=lane < columns, other=0.0)",
        "total += tl.load(at, mask=lane < columns, other=0.0).to(tl.bfloat16).to(tl.float32)",
    )
