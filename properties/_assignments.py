"""The domain of bucket assignments by channel: the inverse of a partition's table."""

from dataclasses import dataclass

import numpy as np

from trivet.properties._domain import Array, Domain, Names
from trivet.properties._dtypes import Dtype
from trivet.properties._sizes import Formula, formula
from trivet.properties._stream import Shape
from trivet.properties._structures import PARTITION_KINDS, partition_values
from trivet.properties._values import Request


def assignment(buckets: str, capacity: str) -> "Assignment":
    """The bucket, from 0 to ``buckets`` - 1, of every channel, at most ``capacity`` in each."""
    return Assignment(formula(buckets), formula(capacity))


@dataclass(frozen=True)
class Assignment(Domain):
    """A bucket for each element; buckets may be empty, full, one giant, non-contiguous."""

    buckets: Formula
    capacity: Formula
    structured = True

    @property
    def names(self) -> frozenset[str]:
        """The dims that the number of buckets and their capacity use."""
        return self.buckets.names | self.capacity.names

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """How the channels are shared out."""
        return PARTITION_KINDS

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """The first channels in the first bucket, then even shares."""
        return ("contiguous", "even")

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why the buckets cannot hold the channels."""
        buckets, capacity = self.buckets.whole(names), self.capacity.whole(names)
        channels = int(np.prod(shape))
        if buckets * capacity < channels:
            return f"{buckets} buckets of {capacity} cannot hold {channels} channels"
        return None

    def draw(self, request: Request) -> Array:
        """Int64 buckets, shape as requested."""
        table_shape = (self.buckets.whole(request.names), self.capacity.whole(request.names))
        channels = int(np.prod(request.shape))
        table = partition_values(table_shape, channels, request, total=True)
        owners = np.zeros(channels, np.int64)
        for bucket, row in enumerate(table):
            owners[row[row >= 0]] = bucket
        return owners.reshape(request.shape)
