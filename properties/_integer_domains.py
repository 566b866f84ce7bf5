"""Domains of whole numbers: ranges, counts, offsets, permutations and bucket tables."""

from dataclasses import dataclass, replace

import numpy as np

from trivet.properties._domain import Array, Domain, Names
from trivet.properties._dtypes import Dtype
from trivet.properties._sizes import Formula
from trivet.properties._stream import Shape
from trivet.properties._structures import (
    COUNT_KINDS,
    INTEGER_KINDS,
    PARTITION_KINDS,
    PERMUTATION_KINDS,
    SENTINELS,
    SIMPLE_INTEGERS,
    count_values,
    distinct_values,
    offset_values,
    partition_values,
    permutation_values,
    place_sentinels,
    whole_values,
)
from trivet.properties._values import Request


def _too_large(largest: int, dtype: Dtype) -> str | None:
    if largest <= dtype.highest:
        return None
    return f"{largest} does not fit in {dtype.name}"


@dataclass(frozen=True)
class Integers(Domain):
    """Whole numbers from lo to hi; a sentinel may stand in for any; unique spares the sentinel."""

    lo: Formula | None
    hi: Formula | None
    sentinel: Formula | None = None
    unique: bool = False

    @property
    def structured(self) -> bool:  # type: ignore[override]
        """Whether its elements depend on one another."""
        return self.unique

    @property
    def names(self) -> frozenset[str]:
        """The dims and int arguments that its bounds and sentinel use."""
        parts = (self.lo, self.hi, self.sentinel)
        return frozenset().union(*(part.names for part in parts if part is not None))

    def ends(self, names: Names, dtype: Dtype) -> tuple[int, int]:
        """Its range given the known numbers, within that of the storage type."""
        lo = self.lo(names) if self.lo else (0 if dtype.lowest >= 0 else -128)
        hi = self.hi(names) if self.hi else min(127, dtype.highest)
        exact = 2**dtype.digits if dtype.floating else None
        lowest = -exact if exact is not None else dtype.lowest
        highest = exact if exact is not None else dtype.highest
        return int(np.ceil(max(lo, lowest))), int(np.floor(min(hi, highest)))

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """Kinds of values, with a sentinel also ``kind/where``."""
        plain = tuple(INTEGER_KINDS) if not self.unique else ("even", "falling", "ends", "rising")
        if self.sentinel is None:
            return plain
        placed = tuple(f"even/{where}" for where in SENTINELS)
        return placed + tuple(f"{kind}/nowhere" for kind in plain[1:])

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """0 (or the end nearest to it) throughout, then 1, then 1, 2, 3; unique ones count up."""
        return ("rising",) if self.unique else (*SIMPLE_INTEGERS, "rising")

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why the range is empty, or too small for so many distinct values."""
        count = int(np.prod(shape))
        lo, hi = self.ends(names, dtype)
        if count and lo > hi:
            return f"no whole number lies between {self._text(lo, hi)}"
        if self.unique and count > hi - lo + 1:
            return f"{count} distinct numbers do not fit between {self._text(lo, hi)}"
        return None

    def _text(self, lo: int, hi: int) -> str:
        written = f" (integers({self.lo}, {self.hi}))" if self.names else ""
        return f"{lo} and {hi}{written}"

    def draw(self, request: Request) -> Array:
        """Int64 values, shape as requested."""
        if request.kind.startswith("probe"):
            request = replace(request, kind="even")
        kind, _, where = request.kind.partition("/")
        lo, hi = self.ends(request.names, request.dtype)
        if not int(np.prod(request.shape)):
            return np.zeros(request.shape, np.int64)
        values = (distinct_values if self.unique else whole_values)(request, kind, lo, hi)
        if self.sentinel is None or not where:
            return values
        sentinel = self.sentinel.whole(request.names)
        return place_sentinels(values, where, sentinel, request.stream)


@dataclass(frozen=True)
class Counts(Domain):
    """Non-negative whole numbers that sum to ``total`` along the last axis."""

    total: Formula
    structured = True

    @property
    def names(self) -> frozenset[str]:
        """The dims and int arguments that the total uses."""
        return self.total.names

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """How the total is shared out."""
        return COUNT_KINDS

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """Even shares."""
        return ("even",)

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why nothing sums to the total."""
        total = self.total.whole(names)
        if not shape or (shape[-1] == 0 and total > 0) or total < 0:
            return f"{shape[-1] if shape else 'no'} counts cannot sum to {self.total} = {total}"
        return _too_large(total, dtype)

    def draw(self, request: Request) -> Array:
        """Int64 values, shape as requested."""
        shape = request.shape
        total = self.total.whole(request.names)
        return count_values(int(np.prod(shape[:-1])), shape[-1], total, request).reshape(shape)


@dataclass(frozen=True)
class Offsets(Domain):
    """Ascending offsets of len-1 segments from 0 to ``total``, along the last axis."""

    total: Formula
    full: bool = True
    empty: bool = True
    structured = True

    @property
    def names(self) -> frozenset[str]:
        """The dims and int arguments that the total uses."""
        return self.total.names

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """How long the segments are."""
        return tuple(k for k in COUNT_KINDS if self.empty or k != "some_empty")

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """Segments of even length."""
        return ("even",)

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why no segments fit."""
        total = self.total.whole(names)
        segments = shape[-1] - 1 if shape else -1
        if segments < 0 or total < 0:
            return f"offsets to {self.total} = {total} need at least one element"
        if (self.full and segments == 0 and total > 0) or (not self.empty and segments > total):
            return f"{segments} segments cannot run from 0 to {self.total} = {total}"
        return _too_large(total, dtype)

    def draw(self, request: Request) -> Array:
        """Int64 values, shape as requested."""
        total = self.total.whole(request.names)
        return offset_values(request.shape, total, request, full=self.full, empty=self.empty)


@dataclass(frozen=True)
class Permutation(Domain):
    """Every whole number from 0 to n-1 once, along the last axis."""

    structured = True

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """Random, reversed, rotated, neighbours swapped, identity."""
        return PERMUTATION_KINDS

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why the storage type cannot hold it."""
        return _too_large(shape[-1] - 1, dtype) if shape else "a permutation needs an axis"

    def draw(self, request: Request) -> Array:
        """Int64 values, shape as requested."""
        return permutation_values(request)


@dataclass(frozen=True)
class Partition(Domain):
    """A table (N, M) of the members of N buckets of at most M, padded by -1."""

    members: Formula
    total: bool = True
    structured = True

    @property
    def names(self) -> frozenset[str]:
        """The dims and int arguments that the number of members uses."""
        return self.members.names

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """How the members are shared out."""
        return PARTITION_KINDS

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """The first members in the first bucket, then even shares."""
        return ("contiguous", "even")

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why the table cannot hold the members."""
        if len(shape) != 2:
            return f"a partition is a table of two dims, N buckets of M, not {len(shape)}"
        members = self.members.whole(names)
        if self.total and shape[0] * shape[1] < members:
            room = f"{shape[0]} x {shape[1]}"
            return f"{room} slots cannot hold the {self.members} = {members} members"
        return _too_large(members - 1, dtype)

    def draw(self, request: Request) -> Array:
        """Int64 table, shape as requested."""
        members = self.members.whole(request.names)
        return partition_values(request.shape, members, request, total=self.total)
