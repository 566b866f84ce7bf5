"""What all numbers of one evaluation share: profile, precision and the record of steps."""

import linecache
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trivet.oracles._formats import FORMATS, Format
from trivet.oracles._precision import Precision
from trivet.oracles._profile import Profile

# Kernel families' oracles live beside this file, without the leading underscore.
_MACHINERY = [os.path.join(os.path.dirname(__file__), "_"), os.path.dirname(np.__file__)]


def add_machinery(*prefixes: str) -> None:
    """Count files whose path starts with one of `prefixes` as no part of an oracle's source."""
    _MACHINERY.extend(prefixes)


@dataclass(frozen=True, slots=True)
class Site:
    """A step of an oracle: the operation and the line of source that asked for it."""

    operation: str
    file: str
    line: int

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        place = f"{os.path.basename(self.file)}:{self.line}"
        return f"{self.operation} at {place}" + (f" `{source}`" if source else "")


@dataclass
class Recorder:
    """Notes the steps that round; those at the `muted` one add nothing."""

    muted: Site | None = None
    sites: dict[Site, None] = field(default_factory=dict)

    def own(self, operation: str, amount: Any) -> Any:
        """`amount`, or nothing when the step asking is muted."""
        site = site_of(operation)
        self.sites[site] = None
        return amount * 0.0 if site == self.muted else amount


def site_of(operation: str) -> Site:
    """The step of an oracle that is being computed: the innermost frame that is not machinery."""
    frame = sys._getframe(1)
    machinery = tuple(_MACHINERY)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(machinery):
        frame = frame.f_back
    return Site(operation, frame.f_code.co_filename, frame.f_lineno)


# Sees every operation of an evaluation: its name, its rule, operands and options; returns the
# result, the rule's or another.
Interceptor = Callable[[str, Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Any]

_INTERCEPTOR: ContextVar[Interceptor | None] = ContextVar("interceptor", default=None)


@contextmanager
def intercepted(interceptor: Interceptor) -> Iterator[None]:
    """Let `interceptor` compute every operation of the evaluations that begin inside."""
    token = _INTERCEPTOR.set(interceptor)
    try:
        yield
    finally:
        _INTERCEPTOR.reset(token)


def is_intercepted() -> bool:
    """Whether an evaluation that began now would be mutated or watched."""
    return _INTERCEPTOR.get() is not None


class Context:
    """One evaluation of an oracle under a profile and a precision."""

    def __init__(
        self, profile: Profile, precision: Precision, recorder: Recorder | None = None
    ) -> None:
        self.profile = profile
        self.precision = precision
        self.recorder = recorder
        self.interceptor = _INTERCEPTOR.get()
        self.compute: Format = profile.compute
        self.unit = profile.compute.unit
        self.accumulate: Format = FORMATS[precision.accumulate]

    def own(self, operation: str, amount: Any) -> Any:
        """The rounding an operation adds by itself, unless blame is being searched without it."""
        return amount if self.recorder is None else self.recorder.own(operation, amount)

    def depth(self, count: int) -> int:
        """Most additions a term passes through in a sum of `count` terms."""
        most = max(count - 1, 0)
        return most if self.precision.depth is None else min(self.precision.depth, most)

    def gamma(self, roundings: Any, unit: float | None = None) -> Any:
        """(1 + u)^k - 1: the relative error of k roundings in a row, in the accumulator's unit.

        A float64 accumulator is as wide as the reference value, whose own rounding counts too.
        """
        if unit is None:
            wide = self.accumulate.name == "float64"
            unit = 2 * self.accumulate.unit if wide else self.accumulate.unit
        return np.expm1(roundings * math.log1p(unit))

    def allows(self, approximation: str) -> bool:
        """Whether the contract gave up avoiding `approximation`."""
        return approximation in self.precision.approx
