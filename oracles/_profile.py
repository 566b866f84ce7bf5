"""Profiles: how accurate the elementary operations of one backend are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trivet.oracles._formats import FORMATS, Format


@dataclass(frozen=True)
class Profile:
    """Accuracy of a backend's float32 arithmetic.

    ulp: largest error of a named function in units in the last place of the result; a function
    that is not named has `default`. flush: subnormal results may become zero.
    """

    name: str
    default: float
    ulp: Mapping[str, float] = field(default_factory=dict)
    flush: bool = False
    compute: Format = FORMATS["float32"]

    def relative(self, function: str) -> float:
        """Relative error of `function`: k ulp are at most 2 k unit roundoffs."""
        return 2 * self.ulp.get(function, self.default) * self.compute.unit

    @property
    def underflow(self) -> float:
        """Absolute error of a rounded result in the subnormal range."""
        return self.compute.normal if self.flush else self.compute.subnormal / 2


# The simulator computes every float32 function in float64 and rounds once: half an ulp, and the
# error of the float64 function, below 2^-28 ulp of float32.
_ROUNDED_ONCE = 0.5 + 2.0**-20

_EXACT = {"divide": 0.5, "sqrt": 0.5}
# Triton's interpreter computes with NumPy: its float32 exp and log are within 4 ulp on every CPU
# it dispatches to (the loops' own comments say 2.52 and 3.83), the others within that as well.
_NUMPY = {**_EXACT, "rsqrt": 1.0}
# CUDA C++ Programming Guide, table of single-precision functions: maximal ulp error against the
# rounded value, so half an ulp more against the true one. Division is div.full (2 ulp), sqrt and
# rsqrt are approximations with subnormals flushed.
_CUDA = {"divide": 2.5, "sqrt": 1.5, "rsqrt": 2.5, "expm1": 1.5, "log": 1.5, "log1p": 1.5}

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("simulator", _ROUNDED_ONCE),
            Profile("interpreter", 4.0, _NUMPY),
            Profile("gpu", 2.5, _CUDA, flush=True),
        )
    }
)


def profile_named(name: str) -> Profile:
    """The profile called `name`. Raises ValueError for an unknown one."""
    if name not in PROFILES:
        raise ValueError(f"no profile {name!r}; known: {', '.join(PROFILES)}")
    return PROFILES[name]
