"""Weighted means of two numbers, as optimizers update their moments."""

from typing import Any

import numpy as np

from trivet.oracles._arithmetic import pair
from trivet.oracles._bounded import Bounded, doubtful, finish, lift, rule, spread
from trivet.oracles._dispatch import composite


@composite("lerp")
def blend(start: Any, end: Any, weight: Any) -> Any:
    """(1 - weight) start + weight end."""
    return (1.0 - weight) * start + weight * end


@rule("lerp")
def bounded_blend(start: Any, end: Any, weight: Any) -> Bounded:
    """(1 - w) a + w b, w from 0 to 1 exactly, in each of its forms, fused or not.

    By terms: a weight rounded (1 - w from a rounded w: by u more), a product, a sum. Of each, with
    S = (1 - w) |a| + w |b|: 3 u S + u w |a|. From either end, a + w (b - a) or b - (1 - w) (b - a)
    with the smaller weight k: 3 u k (|a| + |b|) + u S. The larger of both, to first order; the
    second order and three underflows come on top.
    """
    context, a, b = pair(start, end)
    w = lift(context, weight)
    keep = 1.0 - w.value
    value = keep * a.value + w.value * b.value
    ea, eb = spread(a), spread(b)
    big_a, big_b = np.abs(a.value) + ea, np.abs(b.value) + eb
    terms = keep * big_a + w.value * big_b
    from_ends = 3 * np.minimum(keep, w.value) * (big_a + big_b) + terms
    first_order = np.maximum(3 * terms + w.value * big_a, from_ends)
    own = first_order * context.unit * (1 + 8 * context.unit)
    own = own + 3 * context.profile.underflow * (terms > 0)
    inherited = keep * ea + w.value * eb
    if isinstance(weight, Bounded):
        inherited = inherited + spread(w) * (big_a + big_b)
    result = finish(
        context, "lerp", value, inherited + context.own("lerp", own), 0.0, doubt=doubtful(ea, eb)
    )
    over = (big_a + big_b > context.compute.largest) & np.isfinite(value)
    result.error = np.where(over, np.inf, result.error)
    return result
