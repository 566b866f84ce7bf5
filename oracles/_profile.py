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

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {"simulator": Profile("simulator", _ROUNDED_ONCE)}
)


def profile_named(name: str) -> Profile:
    """The profile called `name`. Raises ValueError for an unknown one."""
    if name not in PROFILES:
        raise ValueError(f"no profile {name!r}; known: {', '.join(PROFILES)}")
    return PROFILES[name]
