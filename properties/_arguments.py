"""The arguments of a contract: tensors and scalars, each checked as it is written down."""

from dataclasses import dataclass, field
from typing import Literal

from trivet.properties._domain import Domain
from trivet.properties._domains import integers, reals
from trivet.properties._dtypes import DTYPES, Dtype
from trivet.properties._layouts import ANY, DENSE, Layout
from trivet.properties._sizes import Choice, Formula, formula

Role = Literal["in", "inout", "out"]


@dataclass(frozen=True)
class Tensor:
    """A tensor argument or output.

    ``shape`` holds dims or arithmetic over them, separated by blanks (``"M N"``, ``"K//group N"``,
    ``""`` is 0-d), or is a tuple of legal shapes. ``dtypes`` are the legal storage types, for an
    output or further argument also the name of the argument whose type it has. ``role`` is ``in``,
    ``inout`` or ``out``; ``optional`` admits None; ``alias`` names the arguments whose storage it
    may share, or is ``"storage"``: the argument stands for its whole storage. ``unread=ANY``:
    elements that no output of the oracle depends on may hold anything.
    """

    shape: str | tuple[str, ...]
    dtypes: tuple[str, ...] | str = ("float32",)
    domain: Domain | None = None
    layouts: Layout | str = DENSE
    role: Role = "in"
    optional: bool = False
    alias: tuple[str, ...] | str = ()
    unread: Layout | None = None
    shapes: tuple[tuple[Formula, ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", _shapes(self.shape))
        if isinstance(self.dtypes, str) and self.dtypes in DTYPES:
            object.__setattr__(self, "dtypes", (self.dtypes,))
        if not isinstance(self.dtypes, str):
            _check_dtypes(self.dtypes, self.domain)
        _check_rest(self)

    def domain_at(self, dtype: Dtype) -> Domain:
        """Its domain: the one declared, else reals(-8, 8), integers, or 0 and 1 for bool."""
        if self.domain is not None:
            return self.domain
        if dtype.family == "bool":
            return integers(0, 1)
        return reals() if dtype.floating else integers()


@dataclass(frozen=True)
class Scalar:
    """A float or int argument from ``lo`` to ``hi``; the ends may be arithmetic over dims."""

    kind: type
    lo: float | int | str
    hi: float | int | str
    ends: tuple[Formula, Formula] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in (int, float):
            raise ValueError(
                f"Scalar({self.kind!r}, ...): expected float or int; use Choice for other values"
            )
        ends = (formula(self.lo, fractions=True), formula(self.hi, fractions=True))
        lo, hi = (end.constant for end in ends)
        if lo is not None and hi is not None and not lo <= hi:
            raise ValueError(
                f"Scalar({self.kind.__name__}, {self.lo}, {self.hi}) holds no value: "
                "the first end is above the second"
            )
        object.__setattr__(self, "ends", ends)


Argument = Tensor | Scalar | Choice


def _shapes(shape: object) -> tuple[tuple[Formula, ...], ...]:
    texts = (shape,) if isinstance(shape, str) else shape
    if not isinstance(texts, tuple) or not texts or not all(isinstance(t, str) for t in texts):
        raise ValueError(
            f"Tensor({shape!r}): expected a shape such as 'M N', or a tuple of legal shapes"
        )
    try:
        return tuple(tuple(formula(term) for term in text.split()) for text in texts)
    except ValueError as error:
        raise ValueError(
            f"Tensor({shape!r}): {error}; dims are separated by blanks, a term has none inside"
        ) from None


def _check_dtypes(dtypes: object, domain: Domain | None) -> None:
    known = ", ".join(DTYPES)
    if not isinstance(dtypes, tuple) or not dtypes:
        raise ValueError(f"Tensor(dtypes={dtypes!r}): expected a tuple of names from {known}")
    for name in dtypes:
        if name not in DTYPES:
            raise ValueError(f"Tensor(dtypes={dtypes!r}): {name!r} is none of {known}")
        if domain is not None and domain.needs_float and not DTYPES[name].floating:
            raise ValueError(
                f"Tensor(dtypes={dtypes!r}): {name} holds no floats; use integers(lo, hi)"
            )


def _check_rest(tensor: Tensor) -> None:
    """The fields of a Tensor that need no other argument to be judged."""
    if tensor.domain is not None and not isinstance(tensor.domain, Domain):
        raise ValueError(f"Tensor(domain={tensor.domain!r}): expected reals(..), integers(..), ..")
    if not isinstance(tensor.layouts, Layout | str):
        raise ValueError(
            f"Tensor(layouts={tensor.layouts!r}): expected DENSE, UNIT_LAST, ANY or the name of "
            "another argument"
        )
    if tensor.role not in ("in", "inout", "out"):
        raise ValueError(f"Tensor(role={tensor.role!r}): expected 'in', 'inout' or 'out'")
    if isinstance(tensor.alias, str) and tensor.alias != "storage":
        raise ValueError(
            f"Tensor(alias={tensor.alias!r}): expected 'storage' or a tuple of argument names"
        )
    if tensor.unread not in (None, ANY):
        raise ValueError(f"Tensor(unread={tensor.unread!r}): expected ANY, or leave it out")
