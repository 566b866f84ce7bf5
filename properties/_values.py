"""Kinds of values for float arguments: what rounding, masking and reducing code gets wrong.

Every kind is a function of a Request to float64 values; the caller clips them to the domain and
rounds them to the storage type. An element depends on its own index, not on the sizes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from trivet.properties._dtypes import Dtype
from trivet.properties._stream import BELL_REACH, Floats, Shape, Stream


@dataclass(frozen=True, slots=True)
class Request:
    """What a domain needs to draw an array: its shape, kind, source and the known numbers.

    ``scale`` from 0 (unit size) to 1 (the full domain) sets the size of bell-shaped values.
    """

    shape: Shape
    kind: str
    stream: Stream
    dtype: Dtype
    scale: float = 0.0
    names: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """The stored range of a float domain."""

    lo: float
    hi: float

    @property
    def zero(self) -> bool:
        """Whether 0 lies in it."""
        return self.lo <= 0 <= self.hi

    @property
    def both_signs(self) -> bool:
        """Whether it holds negative and positive values."""
        return self.lo < 0 < self.hi

    @property
    def size(self) -> float:
        """The largest magnitude in it."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def simplest(self) -> float:
        """The value people read most easily: 1, 0, or the end nearest to 0."""
        if self.lo <= 1 <= self.hi:
            return 1.0
        return 0.0 if self.zero else min(self.lo, self.hi, key=abs)

    def amplitude(self, scale: float) -> float:
        """From 1 (scale 0) to the largest magnitude (scale 1), evenly in the logarithm."""
        return float(min(self.size, 1.0) * max(self.size, 1.0) ** scale)

    @property
    def quantum(self) -> float:
        """The largest power of two, 1 at most, of which the range holds at least two multiples."""
        room = self.hi - self.lo
        return float(2.0 ** min(0, int(np.floor(np.log2(room / 2))))) if room > 0 else 1.0


Kind = Callable[[Request, Span], Floats]


def _bell(request: Request, span: Span) -> Floats:
    bell = request.stream.bell(request.shape)
    deviation = min(span.amplitude(request.scale), span.size / BELL_REACH)
    if span.both_signs:
        return bell * deviation
    if span.zero:
        folded: Floats = np.abs(bell) * deviation * np.sign(span.lo + span.hi)
        return folded
    return (span.lo + span.hi) / 2 + bell * (span.hi - span.lo) / 6


def _uniform(request: Request, span: Span) -> Floats:
    return span.lo + request.stream.uniform(request.shape) * (span.hi - span.lo)


def _signs(request: Request, span: Span, salt: int) -> Floats:
    if not span.both_signs:
        return np.full(request.shape, -1.0 if span.hi <= 0 else 1.0)
    return 1.0 - 2.0 * request.stream.below(2, request.shape, salt).astype(np.float64)


def _magnitudes(request: Request, least: float, most: float) -> Floats:
    least = max(least, request.dtype.tiny)
    reach = np.log(max(most, least)) - np.log(least)
    magnitudes: Floats = least * np.exp(request.stream.uniform(request.shape, 1) * reach)
    return magnitudes


def _wide(request: Request, span: Span) -> Floats:
    least = span.size * 2.0**-30 if span.zero else min(abs(span.lo), abs(span.hi))
    return _signs(request, span, 2) * _magnitudes(request, least, span.size)


def _one_value(request: Request, span: Span, salt: int) -> float:
    one = Request((1,), request.kind, Stream(request.stream.seed, f"one {salt}"), request.dtype)
    return float(_bell(one, span)[0] if request.scale < 1 else _uniform(one, span)[0])


def _constant(request: Request, span: Span) -> Floats:
    return np.full(request.shape, _one_value(request, span, 1))


def _two_valued(request: Request, span: Span) -> Floats:
    values = np.array([_one_value(request, span, 1), _one_value(request, span, 2)])
    return values[request.stream.below(2, request.shape)]


def _by_row(request: Request, salt: int) -> Floats:
    """A number in [0, 1) for each row, of a 1-D array one for all."""
    if len(request.shape) < 2:
        return np.asarray(request.stream.number(salt))
    return request.stream.uniform((*request.shape[:-1], 1), salt)


def _one_sign(request: Request, span: Span) -> Floats:
    """One sign throughout, in half of the examples one for each row."""
    by_row = np.sign(_by_row(request, 3) - 0.5)
    sign = by_row if request.stream.pick(2) else 1.0 - 2.0 * request.stream.pick(2, 1)
    return sign * np.abs(_bell(request, span))


def _cancelling(request: Request, span: Span) -> Floats:
    """Neighbours along the last axis are opposite, up to a part in a thousand of one in three."""
    if not request.shape:
        return _bell(request, span)
    size = request.shape[-1]
    half = (*request.shape[:-1], (size + 1) // 2)
    pairs = request.stream.bell(half) * span.amplitude(request.scale)
    off = 1 + 1e-3 * (request.stream.below(3, half, 1) == 0)
    return np.stack([pairs, -pairs * off], axis=-1).reshape(*half[:-1], 2 * half[-1])[..., :size]


def _offset(request: Request, span: Span) -> Floats:
    """A large offset and a small spread, each row its own: cancellation in one-pass variances.

    A spread that rounding to the storage type would wipe out leaves a few neighbours of the offset.
    """
    share = 0.1 + 0.8 * _by_row(request, 1)
    end = span.lo if abs(span.lo) > abs(span.hi) else span.hi
    centre = end * share if span.zero else span.lo + share * (span.hi - span.lo)
    least = 2.0 ** (-1 - request.dtype.digits)
    spread = np.abs(centre) * np.maximum(10.0 ** -(1 + 4 * _by_row(request, 2)), least)
    return centre + spread * request.stream.bell(request.shape)


def _ties(request: Request, span: Span) -> Floats:
    levels = np.array([_one_value(request, span, salt) for salt in range(3)])
    return levels[request.stream.below(3, request.shape)]


def _zero_rows(request: Request, span: Span) -> Floats:
    """Some rows are all zero, the first ones among them in half of the examples."""
    rows = request.stream.rows(request.shape, 3) % np.uint64(3) == 0
    if request.shape and request.stream.pick(2, 4):
        front = np.arange(request.shape[0]) < 1 + request.stream.pick(3, 5)
        rows = rows | front.reshape((-1,) + (1,) * (len(request.shape) - 1))
    return np.where(rows, 0.0, _bell(request, span))


def _subnormal(request: Request, span: Span) -> Floats:
    steps = 1.0 + request.stream.below(4 << request.stream.pick(8), request.shape)
    return _signs(request, span, 2) * steps * request.dtype.smallest


def _ends(request: Request, span: Span) -> Floats:
    ends: Floats = np.array([span.lo, span.hi])[request.stream.below(2, request.shape)]
    return ends


def _integers(request: Request, span: Span) -> Floats:
    """Multiples of one power of two, at most 8 of them from the simplest value."""
    step = span.quantum
    least = np.ceil(max(span.lo, span.simplest - 8 * step) / step)
    most = np.floor(min(span.hi, span.simplest + 8 * step) / step)
    multiples: Floats = step * (least + request.stream.below(int(most - least) + 1, request.shape))
    return multiples


def _last(shape: Shape) -> Shape:
    return (*shape[:-1], 1)


def _one_hot(request: Request, span: Span) -> Floats:
    """One element a row, elsewhere 0."""
    if not request.shape or 0 in request.shape:
        return np.full(request.shape, span.simplest)
    words = request.stream.bits(request.shape, 6)
    hot = words == words.max(axis=-1, keepdims=True)
    end = span.hi if span.hi > 0 else span.lo
    value = end if request.scale == 1 else np.sign(end) * span.amplitude(request.scale)
    return np.where(hot, value, 0.0)


def _steps(request: Request) -> Floats:
    if not request.shape:
        return np.ones(())
    return np.broadcast_to(1.0 + np.arange(request.shape[-1]), request.shape)


def _ramp(request: Request, span: Span) -> Floats:
    """Rising (in half of the examples falling) along the last axis, unequal in every block."""
    step = span.size / 512 if request.scale == 1 else min(span.size / 512, 1 / 64)
    rise = step * _steps(request)
    start = span.lo if not span.zero or request.scale == 1 else 0.0
    return start + rise if span.hi > 0 and not request.stream.pick(2) else span.hi - rise


def _spike(request: Request, span: Span) -> Floats:
    """The last element of each row far above the rest: a maximum or sum that stops early."""
    values = _bell(Request(request.shape, "", request.stream, request.dtype), span)
    if request.shape and 0 not in request.shape:
        amplitude = max(span.amplitude(request.scale), min(span.size, 16.0))
        values[..., -1] = amplitude if span.hi >= amplitude else span.hi
    return values


def _nonfinite(request: Request, span: Span) -> Floats:
    """One element in eight is NaN or an infinity."""
    which = request.stream.below(24, request.shape, 7)
    planted = np.array([np.nan, np.inf, -np.inf])[np.minimum(which, 2)]
    return np.where(which < 3, planted, _bell(request, span))


def _mixed(request: Request, span: Span) -> Floats:
    """Rows of many kinds side by side; of a 1-D array elements of many kinds."""
    which = request.stream.rows(request.shape, 10) % np.uint64(len(_MIXTURE))
    values = _bell(request, span)
    for index, (kind, scale) in enumerate(_MIXTURE):
        chosen = which == index
        if chosen.any() and applicable(kind, span):
            stream = Stream(request.stream.seed, f"{request.stream.name}/{kind}")
            part = Request(request.shape, kind, stream, request.dtype, scale)
            values = np.where(chosen, KINDS[kind](part, span), values)
    return values


def _zeros(request: Request, span: Span) -> Floats:
    return np.zeros(request.shape)


def _simplest(request: Request, span: Span) -> Floats:
    return np.full(request.shape, span.simplest)


def _counting(request: Request, span: Span) -> Floats:
    """1, 2, 3 along the last axis and 1, 2, 3 down the others: readable and unequal."""
    total = np.ones(request.shape)
    for axis, size in enumerate(request.shape):
        along = np.arange(size).reshape((-1,) + (1,) * (len(request.shape) - 1 - axis))
        total = total + along
    return total if span.quantum == 1 else span.lo + span.quantum * (total % 3)


# In the order in which a plan deals them out: the ones that found most come first.
KINDS: Mapping[str, Kind] = {
    "normal": _bell,
    "mixed_rows": _mixed,
    "ramp": _ramp,
    "spike": _spike,
    "wide": _wide,
    "offset": _offset,
    "cancelling": _cancelling,
    "zero_rows": _zero_rows,
    "ends": _ends,
    "constant": _constant,
    "uniform": _uniform,
    "ties": _ties,
    "integers": _integers,
    "one_hot": _one_hot,
    "two_valued": _two_valued,
    "one_sign": _one_sign,
    "subnormal": _subnormal,
    "nonfinite": _nonfinite,
}
_MIXTURE = (
    ("normal", 0.0),
    ("offset", 1.0),
    ("spike", 1.0),
    ("one_sign", 1.0),
    ("ramp", 1.0),
    ("wide", 1.0),
    ("normal", 1.0),
    ("cancelling", 0.5),
    ("zero_rows", 0.5),
)
# Readable kinds, simplest first; only a shrinker asks for them.
SIMPLE: Mapping[str, Kind] = {"simplest": _simplest, "zeros": _zeros, "counting": _counting}
_NEEDS_ZERO = frozenset({"zero_rows", "one_hot", "subnormal", "zeros"})
_NEEDS_SIGNS = frozenset({"cancelling", "one_sign"})


def applicable(kind: str, span: Span) -> bool:
    """Whether a kind has a meaning in this range."""
    if kind in _NEEDS_ZERO:
        return span.zero and span.size > 0
    return span.both_signs if kind in _NEEDS_SIGNS else True


def real_values(request: Request, span: Span) -> Floats:
    """Float64 values of the requested kind, shape as requested, not yet rounded or clipped."""
    if request.kind.startswith("probe"):
        return _probe(request, span)
    kind = {**KINDS, **SIMPLE}[request.kind]
    return np.array(kind(request, span), dtype=np.float64)


def _probe(request: Request, span: Span) -> Floats:
    """``probe:BITS``: odd multiples of one power of two, up to 2^BITS of it, 0 here and there.

    Odd ones differ from their neighbours in the last place, so a dropped term or a wrong rounding
    shows; with few bits every partial sum is exact. In a small domain the power is below 1: what
    counts are the bits.
    """
    bits = int(request.kind.partition(":")[2])
    step = min(span.quantum, 2.0 ** np.floor(np.log2(span.size) - bits)) if span.size else 1.0
    odd = 2 * request.stream.below(2 ** max(0, bits - 1), request.shape) + 1
    values = _signs(request, span, 8) * odd * step
    if not span.zero:
        return np.asarray(span.quantum * np.ceil(span.lo / span.quantum) + np.zeros(request.shape))
    return np.where(request.stream.below(7, request.shape, 9) == 0, 0.0, values)
