"""Sampling the raw probabilities: what the kernel promises."""

from typing import Any

import numpy as np

from trivet import Contract, Scalar, Tensor, integers, reals, sizes
from trivet.impl import sampling as kernels
from trivet.oracles import sampling as oracles
from trivet.properties._expect import at_most, interval, near, same_bits, same_values
from trivet.properties.decision.inputs import (
    BLOCK,
    PINNED,
    Array,
    Rerun,
    filled,
    widened,
    with_gaps,
)
from trivet.properties.diagnosis.streams import on_edges

# Means and variances lie in [0, 1], where storing rounds by at most half of an ulp of 1/2.
HALF_ULP = 2.0**-24
sampling_accumulate = Contract(
    kernel=kernels.accumulate,
    oracles=[oracles.accumulate],
    dims={"T": sizes(1, 3), "E": sizes(0, 40), "N": sizes(1, 6, production=5)},
    args={
        "p": Tensor("T E N", domain=reals(0, 1).map(on_edges).map(with_gaps)),
        "counts": Tensor("T N", dtypes=("int64",), domain=integers(0, 0), role="inout"),
        "moments": Tensor("4 T N", domain=reals(0, 0), role="inout"),
        "bins": Tensor("10 T N", dtypes=("int64",), domain=integers(0, 0), role="inout"),
        "stride": Scalar(int, 1, 7),
        "start": Scalar(int, 0, "E"),
        "stop": Scalar(int, "E", "E"),
        "block": BLOCK,
    },
    raises=(
        (ValueError, "stride", {"stride": 0}),
        (ValueError, "start", {"start": -1}),
        (ValueError, "p", filled("p", 1.5)),
        (TypeError, "counts", {"counts": None}),
        (TypeError, "p", widened("p")),
    ),
)
sampling_accumulate.without("logic_matches", PINNED)


def ticks(p: Array, stride: int, start: int) -> Array:
    """What is sampled of p (T, E, N) from an event on, (K, T, N), NaN as 0.5."""
    events = np.arange(p.shape[1])
    chosen = (events >= start) & (events % stride == 0)
    return np.moveaxis(np.nan_to_num(p[:, chosen], nan=0.5), 1, 0)


@sampling_accumulate.law
def ticks_are_the_multiples_of_the_stride(out: Any, p: Array, stride: int, start: int) -> None:
    """Events 0, N, 2N ... of the whole stream, wherever the range begins."""
    sampled = ticks(p, stride, start)
    same_values(out.counts, np.full_like(out.counts, len(sampled)), "counts")
    same_values(out.bins.sum(axis=0), out.counts, "histogram")
    if len(sampled):
        same_bits(out.moments[2], sampled.min(axis=0), "min")
        same_bits(out.moments[3], sampled.max(axis=0), "max")


@sampling_accumulate.law
def moments_are_those_of_the_samples(out: Any, p: Array, stride: int, start: int) -> None:
    """Mean and variance lie in the bound of any stable way to compute them."""
    sampled = ticks(p, stride, start)
    if not len(sampled):
        return
    mean, error = interval(oracles.mean, x=sampled)
    near(out.moments[0], mean, error + HALF_ULP, "mean")
    var, error = interval(oracles.variance, x=sampled)
    near(out.moments[1] / len(sampled), var, error + HALF_ULP, "variance")


@sampling_accumulate.law
def constant_samples_have_no_spread(p: Array, start: int, rerun: Rerun) -> None:
    """One value throughout is its own mean, min and max; its variance is 0, bitwise."""
    out = rerun(p=np.full_like(p, 0.3))
    value = np.float64(np.float32(0.3))
    seen = out.counts > 0
    for row in (0, 2, 3):
        same_bits(out.moments[row], np.where(seen, value, 0.0), "moment of a constant")
    same_values(out.moments[1], np.zeros_like(out.moments[1]), "square of a constant")


@sampling_accumulate.law
def ranges_go_on_where_the_last_ended(
    out: Any, p: Array, start: int, stop: int, E: int, rerun: Rerun
) -> None:
    """Two ranges with the moments carried over give what one gives, bitwise."""
    middle = (start + E) // 2
    first = rerun(stop=middle)
    carried = {"counts": first.counts, "moments": first.moments, "bins": first.bins}
    second = rerun(start=middle, **carried)
    for name in ("counts", "moments", "bins"):
        same_bits(getattr(second, name), getattr(out, name), f"{name} of two ranges")
    at_most(first.counts, out.counts, "counts of the first range")
