"""Functions that kernels compose of exp, log and division where they call no library.

The stable forms of tanh and expm1 are x less or plus a small rational correction near 0, and
1 - 2 f / (1 + f) with f = exp(-2|x|), or exp(x) - 1, elsewhere; that of log1p is Kahan's
log(s) x / (s - 1), s = 1 + x. `python -m trivet.ci.sweep --functions composed_tanh,...` prints
what they err by where exp, log and division round once.
"""

from dataclasses import dataclass

import numpy as np

from trivet.oracles._context import Context
from trivet.oracles._formats import Array


@dataclass(frozen=True, slots=True)
class Composed:
    """One function: `measured`, its largest relative error in units of u, over all float32, where
    what it is composed of rounds once; `exponential`, `logarithm` and `quotient` say how much of a
    relative error of each of these reaches the result. exp is used from an argument of size
    `start` on, which counts up to `reach`: beyond, its share falls faster than it grows."""

    measured: float
    exponential: float = 0.0
    logarithm: float = 0.0
    quotient: float = 1.0
    start: float = np.inf
    reach: float = np.inf


# Measured on all float32 numbers from 2^-13 to where tanh and expm1 end, log1p (3.05) up to 2^13:
# further on its logarithm, quotient and product round once each, and the rounding of s counts by
# less than one. Shares: of exp(x) - 1, e^x / (e^x - 1) from |x| = 1/2 on; of tanh,
# 2 f / ((1 + f)^2 tanh(x)) from 0.9 on. Of quotients, the correction over the result:
# 1 - x / expm1(x), 2 f / ((1 + f) tanh(x)).
COMPOSED = {
    "tanh": Composed(1.68, exponential=0.34, quotient=0.40, start=1.8, reach=1.8),
    "expm1": Composed(2.0, exponential=2.55, quotient=0.28, start=0.5),
    "log1p": Composed(4.0, logarithm=1.0),
}


def relative(context: Context, name: str, x: Array) -> Array | float:
    """Relative error of a function at x: as the backend's own has it, or composed.

    A backend that has no exp of its own computes 2^(x log2(e)), the product rounded twice.
    """
    form, profile, unit = COMPOSED[name], context.profile, context.unit
    beyond = {op: max(profile.relative(op) - unit, 0.0) for op in ("exp", "log", "divide")}
    own = form.measured * unit + form.exponential * beyond["exp"]
    own += form.logarithm * beyond["log"] + form.quotient * beyond["divide"]
    whole = max(profile.relative(name), own)
    if not profile.flush or not form.exponential:
        return whole
    size = np.where(np.isfinite(x), np.abs(x), 0.0)
    size = 2 * size if name == "tanh" else size
    rounded = 2 * unit * np.minimum(size, form.reach) * (size >= form.start)
    return np.maximum(profile.relative(name), own + form.exponential * rounded)
