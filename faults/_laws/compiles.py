"""compiles turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("compiles",))
def type_of_one_generation(edit: Edit) -> Kernel:
    """Values pass through a float8 that only some of the GPUs convert to."""
    return edit(
        "tl.load(at, mask=lane < columns, other=0.0)",
        "tl.load(at, mask=lane < columns, other=0.0).to(tl.float8e4nv).to(tl.float32)",
    )
