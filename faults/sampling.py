"""Past bugs of sampling."""

from collections.abc import Callable
from typing import Any

from trivet.properties.sampling import sampling_accumulate

Edit = Callable[..., Any]


@sampling_accumulate.fault(expects=("ticks_are_the_multiples_of_the_stride",))
def ticks_counted_from_the_range(edit: Edit) -> Any:
    """Each launch sampled its own first event: other ticks for every cut of the stream."""
    return edit(
        "first = triton.cdiv(start, stride) * stride\n    lanes", "first = start\n    lanes"
    )


@sampling_accumulate.fault(expects=("constant_samples_have_no_spread",))
def least_starts_at_zero(edit: Edit) -> Any:
    """The minimum was compared with the 0 of the cleared state: it stayed 0 for ever."""
    old = "least = tl.where(begins, x, tl.minimum(least, x))"
    return edit(old, "least = tl.minimum(least, x)")


@sampling_accumulate.fault(expects=("moments_are_those_of_the_samples",), number=37)
def missing_sample_poisons_the_moments(edit: Edit) -> Any:
    """A NaN went into the mean, which stayed NaN."""
    return edit("x = tl.where(raw == raw, raw, 0.5)", "x = raw")
