"""The domains that a contract names: reals, log_uniform, integers, offsets, counts and the rest."""

from trivet.properties._domain import Domain
from trivet.properties._integer_domains import Counts, Integers, Offsets, Partition, Permutation
from trivet.properties._real_domains import LogUniform, Reals
from trivet.properties._sizes import Formula, formula

Bound = float | int | str


def _bound(owner: str, value: Bound) -> Formula:
    try:
        return formula(value, fractions=True)
    except ValueError as error:
        raise ValueError(f"{owner}: {error}") from None


def _in_order(text: str, lo: Formula, hi: Formula) -> None:
    low, high = lo.constant, hi.constant
    for end in (low, high):
        if end is not None and end != end:
            raise ValueError(f"{text}: a bound is NaN; use numbers or arithmetic over dims")
    if low is not None and high is not None and low > high:
        raise ValueError(f"{text} holds no value: the first bound is above the second")


def reals(lo: Bound = -8.0, hi: Bound = 8.0, nonfinite: bool = False) -> Reals:
    """Floats from ``lo`` to ``hi``, with hard values and magnitudes of every size.

    Reach where the kernel needs its care: exp(80) does not overflow float32, so a softmax over
    reals(-80, 80) never shows that its maximum was forgotten. ``nonfinite`` admits NaN and Inf.
    """
    text = f"reals({lo}, {hi})"
    low, high = _bound(text, lo), _bound(text, hi)
    _in_order(text, low, high)
    return Reals(low, high, nonfinite)


def log_uniform(lo: Bound, hi: Bound, zero: bool = False) -> LogUniform:
    """Positive floats from ``lo`` to ``hi``, evenly in the logarithm; ``zero`` admits 0 too."""
    text = f"log_uniform({lo}, {hi})"
    low, high = _bound(text, lo), _bound(text, hi)
    _in_order(text, low, high)
    if low.constant is not None and low.constant <= 0:
        raise ValueError(f"{text}: the low end must be positive; zero=True admits 0 itself")
    return LogUniform(low, high, zero)


def integers(
    lo: Bound | None = None,
    hi: Bound | None = None,
    sentinel: Bound | None = None,
    unique: bool = False,
) -> Integers:
    """Whole numbers from ``lo`` to ``hi``, both included.

    Without ends -128 to 127, 0 to 127 where the storage type is unsigned. A ``sentinel`` may stand
    in place of any of them; ``unique`` ones are distinct, the sentinel excepted.
    """
    text = f"integers({lo}, {hi})"
    low = None if lo is None else _bound(text, lo)
    high = None if hi is None else _bound(text, hi)
    if low is not None and high is not None:
        _in_order(text, low, high)
    mark = None if sentinel is None else _bound(text, sentinel)
    return Integers(low, high, mark, unique)


def offsets(total: int | str, full: bool = True, empty: bool = True) -> Offsets:
    """Ascending offsets of len-1 segments from 0 to ``total``, for instance cu_seqlens.

    ``full=False`` may end before the total; ``empty=False`` leaves no segment empty.
    """
    return Offsets(_bound(f"offsets({total!r})", total), full, empty)


def counts(total: int | str) -> Counts:
    """Non-negative whole numbers that sum to ``total``."""
    return Counts(_bound(f"counts({total!r})", total))


def permutation() -> Permutation:
    """Every whole number from 0 to n-1 once, n the length of the last axis."""
    return Permutation()


def partition(members: int | str, total: bool = True) -> Partition:
    """A table (N, M) whose row k lists the members of bucket k, ascending, padded by -1.

    Every one of the ``members`` items is in exactly one bucket; ``total=False`` leaves some out.
    """
    return Partition(_bound(f"partition({members!r})", members), total)


__all__ = [
    "Domain",
    "counts",
    "integers",
    "log_uniform",
    "offsets",
    "partition",
    "permutation",
    "reals",
]
