"""gradients_match turns red."""

from trivet.faults._laws._tiny import row_sums_contract
from trivet.faults._load import Edit, Kernel


@row_sums_contract.fault(expects=("gradients_match",))
def gradient_of_the_mean(edit: Edit) -> Kernel:
    """The gradient is divided by the length of the row, as if the result were a mean."""
    return edit("expand(ctx.shape).clone()", "expand(ctx.shape) / ctx.shape[1]")
