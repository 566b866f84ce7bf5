"""Domains of floats: reals and log_uniform."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from trivet.properties._domain import Array, Domain, Names
from trivet.properties._dtypes import Dtype, range_in, stored
from trivet.properties._sizes import DomainError, Formula
from trivet.properties._stream import Shape
from trivet.properties._values import KINDS, Request, Span, applicable, real_values


def _why(attempt: Callable[[], object]) -> str | None:
    """The text of the DomainError that ``attempt`` raises, or None."""
    try:
        attempt()
    except DomainError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Reals(Domain):
    """Floats from lo to hi, every magnitude of them; with ``nonfinite`` also NaN and infinities."""

    lo: Formula
    hi: Formula
    nonfinite: bool = False
    needs_float = True

    @property
    def names(self) -> frozenset[str]:
        """The dims and int arguments that its bounds use."""
        return self.lo.names | self.hi.names

    def span(self, names: Names, dtype: Dtype) -> Span:
        """Its stored range given the known numbers; a DomainError where it is empty."""
        lo, hi = float(self.lo(names)), float(self.hi(names))
        span = Span(*range_in(dtype, lo, hi))
        if span.lo > span.hi:
            raise DomainError(f"no {dtype.name} lies between {lo:g} and {hi:g}")
        return span

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """Every kind of values that the range admits."""
        if self.names:
            return tuple(k for k in KINDS if k != "nonfinite" or self.nonfinite)
        span = self.span({}, dtype)
        known = (kind for kind in KINDS if kind != "nonfinite" or self.nonfinite)
        return tuple(kind for kind in known if applicable(kind, span))

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """One value throughout, then 1, 2, 3, then small whole numbers."""
        return ("simplest", "zeros", "counting", "integers")

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why the range is empty, or None."""
        return _why(lambda: self.span(names, dtype))

    def draw(self, request: Request) -> Array:
        """Float64 values, each exactly a stored one; shape as requested."""
        span = self.span(request.names, request.dtype)
        if not applicable(request.kind, span):
            request = replace(request, kind="simplest" if request.kind == "zeros" else "normal")
        values = stored(real_values(request, span), request.dtype, span.lo, span.hi)
        special = real_values(request, span) if request.kind == "nonfinite" else values
        return np.where(np.isinf(special), _infinities(special, request.dtype), values)

    @property
    def nonfinite_values(self) -> tuple[float, ...]:
        """NaN and both infinities where it was declared with ``nonfinite``."""
        return (np.nan, np.inf, -np.inf) if self.nonfinite else ()


def _infinities(values: Array, dtype: Dtype) -> Array:
    """The infinities of ``values`` as the storage type holds them (NaN where it has none)."""
    with np.errstate(all="ignore"):
        return values.astype(dtype.numpy).astype(np.float64)


@dataclass(frozen=True)
class LogUniform(Domain):
    """Positive floats from lo to hi, evenly in the logarithm; with ``zero`` also 0."""

    lo: Formula
    hi: Formula
    zero: bool = False
    needs_float = True

    _KINDS = ("spread", "ends", "narrow", "constant", "ties", "rising", "falling", "all_low")

    @property
    def names(self) -> frozenset[str]:
        """The dims and int arguments that its bounds use."""
        return self.lo.names | self.hi.names

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """Spreads, ends, ties, ramps; with ``zero`` also zeros here and there or everywhere."""
        return self._KINDS + (("some_zero", "all_zero") if self.zero else ()) + ("all_high",)

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """1 throughout where it lies inside, else the low end; then powers of two."""
        return ("simplest", "powers")

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why the range is empty, or None."""
        return _why(lambda: self._span(names, dtype))

    def _span(self, names: Names, dtype: Dtype) -> Span:
        lo = float(self.lo(names))
        if lo <= 0:
            raise DomainError(f"log_uniform from {lo:g}: its low end must be positive")
        return Reals(self.lo, self.hi).span(names, dtype)

    def draw(self, request: Request) -> Array:
        """Float64 values, each exactly a stored one; shape as requested."""
        span = self._span(request.names, request.dtype)
        if request.kind == "simplest":
            return np.full(request.shape, span.simplest)
        low, reach = np.log2(span.lo), np.log2(span.hi) - np.log2(span.lo)
        shares = self._shares(request)
        exponents = low + reach * shares
        if request.kind == "powers" or request.kind.startswith("probe"):
            exponents = np.clip(np.rint(exponents), np.ceil(low), low + reach)
        values = np.select([shares == 0, shares == 1], [span.lo, span.hi], np.exp2(exponents))
        values = stored(values, request.dtype, span.lo, span.hi)
        some_zero = request.kind == "some_zero" and request.stream.below(3, request.shape, 2) == 0
        return np.where(some_zero | (request.kind == "all_zero"), 0.0, values)

    def _shares(self, request: Request) -> Array:
        """Where in the range each element lies, from 0 (the low end) to 1."""
        shape, stream = request.shape, request.stream
        steps = (np.arange(shape[-1]) % 97) / 96 if shape else np.zeros(())
        match request.kind:
            case "constant":
                return np.full(shape, stream.number(1))
            case "ends":
                return stream.below(2, shape).astype(np.float64)
            case "ties":
                return stream.below(3, shape) / 2
            case "narrow":
                return stream.number(1) * 0.99 + 0.01 * stream.uniform(shape)
            case "rising":
                return np.broadcast_to(steps, shape)
            case "falling":
                return np.broadcast_to(1 - steps, shape)
            case "all_low":
                return np.zeros(shape)
            case "all_high":
                return np.ones(shape)
        return stream.uniform(shape)
