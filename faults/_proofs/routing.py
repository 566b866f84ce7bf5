"""Why some edits of the routing kernels change no output."""

import numpy as np
from numpy.typing import NDArray

_SIZES = range(1, 400)
_Floats = NDArray[np.float32]


def _positive() -> _Floats:
    """Return positive floats of every scale, halves of powers of two and their neighbours."""
    powers = np.exp2(np.arange(-60, 61, dtype=np.float32))
    return np.concatenate([powers, np.nextafter(powers, np.float32(0)), 1.5 * powers])


def _same_bits(first: object, second: object) -> None:
    one, other = np.float32(first), np.float32(second)  # type: ignore[arg-type]
    np.testing.assert_array_equal(one.view(np.int32), other.view(np.int32))


def early_meets_late() -> None:
    """The first channel past the larger buckets has one bucket by both formulas."""
    for channels in _SIZES:
        for buckets in range(1, channels + 1):
            smaller, larger = divmod(channels, buckets)
            border = larger * (smaller + 1)
            assert border // (smaller + 1) == larger, (channels, buckets)


def no_channel_divides_by_zero() -> None:
    """Where the smaller buckets are empty, every channel stands in a larger one."""
    for channels in _SIZES:
        for buckets in range(channels + 1, channels + 60):
            smaller, larger = divmod(channels, buckets)
            assert smaller == 0
            assert larger * (smaller + 1) == channels


def the_last_rank_has_no_weight() -> None:
    """The rank after a quartile is past the last only where its weight is zero."""
    for size in range(1, 5000):
        last = size - 1
        for doubled in (1, 3):
            under, past = doubled * last // 4, 0.25 * (doubled * last % 4)
            assert under + 1 <= last or past == 0.0, size
    for low in _positive():
        _same_bits(low + np.float32(0) * (np.float32(0) - low), low)


def non_members_hold_zero() -> None:
    """The masked load gives 0 for channels of other buckets, which adds nothing to a sum."""
    for value in _positive():
        _same_bits(np.sum(np.array([value, 0, 0], np.float32)), value)


def an_empty_bucket_sums_to_zero() -> None:
    """Without members all picks are 0, and the remainder of -1 has the sign of the dividend."""
    zero, past = np.float32(0), np.float32(0.25) * np.float32(np.fmod(-1, 4))
    _same_bits(zero + past * (zero - zero), 0.0)


def one_positive_among_zeros_is_the_largest() -> None:
    """Of one positive value and zeros, sum and maximum are the same."""
    for value in _positive():
        held = np.array([0, value, 0], np.float32)
        _same_bits(held.sum(), held.max())
    _same_bits(np.zeros(3, np.float32).sum(), np.zeros(3, np.float32).max())


def an_empty_range_widens_to_itself() -> None:
    """0 and infinity, the range of an empty bucket, are what the formula gives for them."""
    with np.errstate(divide="ignore"):
        slack = np.sqrt(np.float32(np.inf) / np.float32(0))
    _same_bits(np.float32(0) / slack, 0.0)
    _same_bits(np.float32(np.inf) * slack, np.inf)


def a_bound_replaced_by_itself() -> None:
    """A time constant equal to a bound is that bound: positive numbers have one form each."""
    values = _positive()
    for value in values:
        low = values[values == value]
        _same_bits(np.where(value <= low, low, value)[0], value)


def zero_and_one_are_exact_in_bfloat16() -> None:
    """Bits 16 to 31 of a float32, which are a bfloat16, hold 0 and 1 whole."""
    for value in (np.float32(0), np.float32(1)):
        assert int(value.view(np.int32)) & 0xFFFF == 0
