"""What a domain is: kinds of values, an obstacle where there is none, and arrays to draw."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.properties._dtypes import Dtype
from trivet.properties._sizes import DomainError, Number
from trivet.properties._stream import Shape
from trivet.properties._values import Request

Array = NDArray[Any]
Names = Mapping[str, Number]


class Domain:
    """What values an argument may hold. Not to be constructed by itself: use reals and the rest."""

    needs_float = False
    structured = False

    @property
    def names(self) -> frozenset[str]:
        """The dims and int arguments that its bounds use."""
        return frozenset()

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """The kinds of values that have a meaning here, those that find most first."""
        raise AssertionError

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """The kinds that people read easily, simplest first."""
        return self.kinds(dtype)[-1:]

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """Why no array of this shape is in the domain, or None where one is."""
        return None

    def draw(self, request: Request) -> Array:
        """An array in the domain, float64 for floats (exact stored values), else int64."""
        raise AssertionError

    def map(self, function: Callable[[Array], Array]) -> "Domain":
        """The domain of ``function(array)``, same shape: ``reals(0, 1).map(np.sort)``."""
        if not callable(function):
            raise ValueError(f"map({function!r}): expected a function of the drawn array")
        return Mapped(self, function)

    @property
    def nonfinite_values(self) -> tuple[float, ...]:
        """The non-finite values that it admits."""
        return ()


@dataclass(frozen=True)
class Mapped(Domain):
    """Another domain's arrays, each passed through a function."""

    inner: Domain
    function: Callable[[Array], Array]
    structured = True

    @property
    def needs_float(self) -> bool:  # type: ignore[override]
        """Whether only floats can hold the drawn array."""
        return self.inner.needs_float

    @property
    def names(self) -> frozenset[str]:
        """The dims and int arguments that the inner bounds use."""
        return self.inner.names

    def kinds(self, dtype: Dtype) -> tuple[str, ...]:
        """Those of the inner domain."""
        return self.inner.kinds(dtype)

    def simple(self, dtype: Dtype) -> tuple[str, ...]:
        """Those of the inner domain."""
        return self.inner.simple(dtype)

    def obstacle(self, shape: Shape, names: Names, dtype: Dtype) -> str | None:
        """That of the inner domain."""
        return self.inner.obstacle(shape, names, dtype)

    def draw(self, request: Request) -> Array:
        """The function of the inner array, rounded to the storage type."""
        drawn = self.inner.draw(request)
        try:
            result = np.asarray(self.function(drawn.copy()))
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise DomainError(
                f"map's function raised {what} on an array of shape {drawn.shape}"
            ) from error
        if result.shape != drawn.shape:
            raise DomainError(
                f"map's function turned shape {drawn.shape} into {result.shape}: keep the shape"
            )
        if not request.dtype.floating:
            return result.astype(np.int64)
        with np.errstate(all="ignore"):
            return result.astype(request.dtype.numpy).astype(np.float64)

    @property
    def nonfinite_values(self) -> tuple[float, ...]:
        """Those of the inner domain."""
        return self.inner.nonfinite_values
