"""The standard laws: what every kernel keeps, one plain function each.

A module of this package defines laws with the decorator ``standard``; ``standard_laws`` finds
them all by import, so that adding a law edits no list.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Literal

from trivet.properties._law import STANDARD_LAWS
from trivet.properties._observe import Observation

Kind = Literal[
    "observes", "reruns", "observes_cases", "at_production", "refuses", "counts", "builds"
]
Ability = Literal["values", "memory", "poison", "order", "shadow", "artifact"]


@dataclass(frozen=True, slots=True)
class Tally:
    """What one check counted: elements judged, undecidable ones, and the largest error ratio.

    ``note`` is what the report of a green gate says of how it was judged.
    """

    elements: int = 0
    undecided: int = 0
    margin: float | None = None
    bitwise: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class StandardLaw:
    """A law every contract has.

    ``kind``: ``observes`` judges the shared run, ``reruns`` calls the kernel again on the shared
    inputs (on ``share`` of the examples), ``observes_cases`` judges runs of its own ``cases``,
    ``at_production`` a few programs of each launch at the production sizes, ``refuses`` tries the
    contract's bad inputs, ``counts`` looks at the whole gate, ``builds`` at what the compiler makes
    of a few launches.
    ``needs`` are the abilities an executor must have to judge it.
    """

    name: str
    claim: str
    kind: Kind
    check: Callable[[Observation, str], Tally]
    share: float = 1.0
    needs: tuple[Ability, ...] = ("values",)


def standard(
    kind: Kind, *, share: float = 1.0, needs: tuple[Ability, ...] = ("values",)
) -> Callable[[Callable[[Observation, str], Tally]], StandardLaw]:
    """Make a standard law of a function: its name is the predicate, its docstring the claim."""

    def register(check: Callable[[Observation, str], Tally]) -> StandardLaw:
        claim = (check.__doc__ or "").split("\n\n")[0].replace("\n    ", " ").strip()
        return StandardLaw(check.__name__, claim, kind, check, share, needs)

    return register


@cache
def standard_laws() -> dict[str, StandardLaw]:
    """Return every standard law by name, in the order in which reports show them."""
    found: dict[str, StandardLaw] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        contents = vars(import_module(f"{__name__}.{module.name}"))
        laws = [value for value in contents.values() if isinstance(value, StandardLaw)]
        found.update({law.name: law for law in laws})
    return dict(sorted(found.items(), key=lambda item: STANDARD_LAWS.index(item[0])))
