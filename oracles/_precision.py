"""The precision a kernel promises: the part of a contract from which its bound is derived."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trivet.oracles._formats import FORMATS

APPROXIMATIONS = ("log1p", "expm1", "softplus", "variance", "tanh", "tf32", "cumsum")
ORDERS = ("fixed", "any")


@dataclass(frozen=True)
class Precision:
    """What a kernel promises about its own rounding.

    accumulate: format of sums and dot products.
    storage: format by name of an intermediate the oracle passes to `m.store(x, name)`.
    depth: most additions one term passes through; None allows any order of summation.
    order: "fixed" promises the same bits in every run, "any" allows atomics.
    approx: formulas the kernel does not promise to avoid (`APPROXIMATIONS`): log1p, expm1 and
    softplus as written, E[x^2] - E[x]^2 for a variance, tanh by a sigmoid, tf32 products, and
    cumsum(x)[t] - cumsum(x)[c - 1] for the running sum of the part x[c:].
    Raises ValueError for a value outside these.
    """

    accumulate: str = "float32"
    storage: Mapping[str, str] = field(default_factory=dict)
    depth: int | None = None
    order: str = "fixed"
    approx: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        approx = tuple(self.approx)
        object.__setattr__(self, "approx", approx)
        object.__setattr__(self, "storage", MappingProxyType(dict(self.storage)))
        for name in (self.accumulate, *self.storage.values()):
            _demand("format", name, tuple(FORMATS))
        _demand("order", self.order, ORDERS)
        for name in approx:
            _demand("approx", name, APPROXIMATIONS)
        if self.depth is not None and (not isinstance(self.depth, int) or self.depth < 0):
            raise ValueError(f"Precision.depth is a count of additions or None, not {self.depth!r}")

    def __hash__(self) -> int:
        storage = tuple(sorted(self.storage.items()))
        return hash((self.accumulate, storage, self.depth, self.order, self.approx))


def _demand(what: str, name: object, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(f"Precision: {what} {name!r} is not one of {', '.join(known)}")
