"""Profiles: how accurate the elementary operations of one backend are."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
# Largest errors against the rounded value, CUDA C++ Programming Guide, table of single-precision
# functions (as quoted by intel/llvm, cuda-vs-opencl-math-builtin-precisions): half an ulp more
# against the true one. They are from extensive, not exhaustive, tests: seeds, until a sweep of the
# device (trivet.ci.sweep) replaces them. Division is div.full, sqrt and rsqrt are approximations;
# subnormal results may be flushed. pow has 9 in older editions of the table, which we keep.
_CUDA_TABLE = {
    "divide": 2, "sqrt": 1, "rsqrt": 2, "cbrt": 1, "exp": 2, "exp2": 2, "expm1": 1, "log": 1,
    "log2": 1, "log10": 2, "log1p": 1, "power": 9, "erf": 2, "sin": 2, "cos": 2, "arcsin": 4,
    "arccos": 3, "arctan": 2, "sinh": 3, "tanh": 2, "arcsinh": 3, "arctanh": 3,
}  # fmt: skip
# Differences from the host's C++ library on ordinary ranges, ROCm HIP documentation, math API.
# Against the true value: half an ulp for the library's rounding, and one that it may be off by
# itself (glibc manual, errors in math functions). The table of pow covers few inputs and that of
# division only its intrinsic: for them the limits of the OpenCL specification, which AMD's library
# keeps (16 and 2.5 against the true value).
_HIP_TABLE = {
    "sqrt": 1, "rsqrt": 1, "cbrt": 2, "exp": 1, "exp2": 1, "expm1": 1, "log": 2, "log2": 1,
    "log10": 2, "log1p": 1, "erf": 4, "sin": 1, "cos": 1, "arcsin": 2, "arccos": 1, "arctan": 2,
    "sinh": 1, "tanh": 2, "arcsinh": 1, "arctanh": 1,
}  # fmt: skip
_CUDA = {name: error + 0.5 for name, error in _CUDA_TABLE.items()}
_HIP = {name: error + 1.5 for name, error in _HIP_TABLE.items()} | {"divide": 2.5, "power": 16.0}

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("simulator", _ROUNDED_ONCE),
            Profile("interpreter", 4.0, _NUMPY),
            Profile("gpu", 2.5, _CUDA, flush=True),
            Profile("sm_80", 2.5, _CUDA, flush=True),
            Profile("sm_90", 2.5, _CUDA, flush=True),
            Profile("gfx942", 3.5, _HIP, flush=True),
        )
    }
)


# Sweeps of devices, one file a profile: `python -m trivet.ci.sweep --keep` puts them there.
SWEEPS = Path(__file__).parent.parent / "fixtures" / "profiles"


@cache
def profile_named(name: str) -> Profile:
    """The profile called `name`, by the sweep of its device where there is one.

    Raises ValueError for an unknown one, and for a sweep that is none of a whole device.
    """
    if name not in PROFILES:
        raise ValueError(f"no profile {name!r}; known: {', '.join(PROFILES)}")
    path = SWEEPS / f"{name}.json"
    if not path.exists():
        return PROFILES[name]
    return swept(PROFILES[name], json.loads(path.read_text()))


def swept(seed: Profile, document: Mapping[str, Any], inputs: int = 2**32) -> Profile:
    """`seed` with the errors of a sweep (the document of trivet.ci.sweep) in place of its own.

    An error is the largest of all `inputs`, so nothing is added but the float64 reference's 2^-20
    of an ulp; what was not swept, as division, keeps the seed's. Raises ValueError where a function
    was not swept whole, gave wrong results, or was flushed though the seed keeps subnormal ones.
    """
    ulp = dict(seed.ulp)
    for function, record in document["functions"].items():
        whole = document["inputs"] == inputs <= record["blocks"] * document["block"]
        flaw = ""
        if not whole:
            flaw = "was not swept on every input"
        elif record["wrong"]:
            flaw = f"gave {record['wrong']} wrong results, the first at {record['wrong_at']}"
        elif record["flushed"] and not seed.flush:
            flaw = "flushes subnormal results, which this profile keeps"
        if flaw:
            raise ValueError(f"no profile {seed.name} from this sweep: {function} {flaw}")
        ulp[function] = record["ulp"] + 2.0**-20
    return replace(seed, ulp=MappingProxyType(ulp))
