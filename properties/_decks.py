"""Dealing out value kinds, layouts, scalars and ties evenly: each comes before any comes twice."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from random import Random
from typing import TypeVar

from trivet.properties._arguments import Scalar, Tensor
from trivet.properties._case import Recipe
from trivet.properties._cases import layouts_of, shares_of
from trivet.properties._contract import Contract
from trivet.properties._dims import clip_scalar
from trivet.properties._relations import Relation, relations_of
from trivet.properties._sizes import Choice, Number

Item = TypeVar("Item")
_SCALES = (0.0, 1.0, 0.5)
# A maximum that was not carried on shows only by values of the domain's whole size.
_FULL = (1.0, 1.0, 1.0, 0.0, 0.5, 1.0)
ROOMY_KINDS = ("mixed_rows", "spike", "ramp", "wide", "ends", "zero_rows", "ties")
_RELATED_EVERY = 4
_ABSENT_EVERY = 4
# Where a scalar stands in its range; named points are skipped where they lie outside or are an end.
_POINTS = ("lo", "hi", "log", "0", "uniform", "1", "log", "-1", "uniform")
# The same for cases with several blocks in every dim: there the inside of the range comes first.
_ROOMY_POINTS = ("uniform", "1", "log", "uniform", "hi", "log", "lo", "0", "uniform", "-1")


def deck(items: Sequence[Item], random: Random, *, first: Sequence[Item] = ()) -> Iterator[Item]:
    """Every item in a random order, then again in another, without end.

    ``first`` is the order of the first round.
    """
    round_ = list(first)
    while True:
        if not round_:
            round_ = random.sample(list(items), len(items))
        yield round_.pop(0)


class KindDeck:
    """Value kinds dealt evenly, those that show a forgotten block to the roomy cases first."""

    def __init__(self, kinds: Sequence[str], random: Random, first: Sequence[str]) -> None:
        self.kinds = kinds
        self.random = random
        self.left = list(first)

    def deal(self, *, roomy: bool) -> str:
        """The next kind; a roomy case takes one of ROOMY_KINDS while there is one, others not."""
        if not self.left:
            self.left = self.random.sample(list(self.kinds), len(self.kinds))
        wanted = [kind for kind in self.left if (kind in ROOMY_KINDS) is roomy]
        kind = (wanted or self.left)[0]
        self.left.remove(kind)
        return kind


def spread(layouts: Sequence[str], random: Random) -> list[str]:
    """Layouts in an order that shows every family early: dense, then one of each, and so on."""
    families: dict[str, list[str]] = {}
    for layout in layouts:
        families.setdefault(layout.partition(":")[0], []).append(layout)
    members = [random.sample(each, len(each)) for each in families.values()]
    head, rest = members[0], random.sample(members[1:], len(members) - 1)
    rounds = zip_longest(head, *rest)
    return [layout for round_ in rounds for layout in round_ if layout is not None]


class RecipeDeck:
    """Recipes of one tensor argument."""

    def __init__(self, contract: Contract, name: str, dtype: str, random: Random) -> None:
        tensor = contract.tensors()[name]
        storage = contract.storage_of(name, dtype)
        kinds = tensor.domain_at(storage).kinds(storage)
        first = kinds if name == next(iter(contract.tensors())) else ()
        self.random = random
        self.kinds = KindDeck(kinds, random, first)
        self.scales = {False: deck(_SCALES, random), True: deck(_SCALES, random, first=_FULL)}
        self.shapes = deck(range(len(tensor.shapes)), random)
        self.shares = deck(shares_of(contract, name), random)
        absent = [True] + [False] * (_ABSENT_EVERY - 1)
        present_first = absent[1:] + absent[:1]
        self.absent = deck(absent if tensor.optional else [False], random, first=present_first)
        self.optional = tensor.optional
        self.layouts = {
            len(shape): self._layouts(contract, name, len(shape)) for shape in tensor.shapes
        }
        self.ranks = [len(shape) for shape in tensor.shapes]

    def _layouts(self, contract: Contract, name: str, rank: int) -> Iterator[str]:
        layouts = layouts_of(contract, name, rank)
        return deck(layouts, self.random, first=spread(layouts, self.random))

    def deal(self, *, roomy: bool) -> Recipe:
        """The next recipe."""
        shape = next(self.shapes)
        return Recipe(
            kind=self.kinds.deal(roomy=roomy),
            seed=self.random.randrange(1 << 31),
            scale=next(self.scales[roomy]),
            shape=shape,
            layout=next(self.layouts[self.ranks[shape]]),
            absent=self.optional and next(self.absent),
            share=next(self.shares),
        )


class ScalarDeck:
    """Values of one Scalar, or indices of one Choice."""

    def __init__(
        self, arg: Scalar | Choice, random: Random, *, first: Sequence[str] = _POINTS
    ) -> None:
        self.arg = arg
        self.random = random
        self.indices = deck(range(len(arg.values)) if isinstance(arg, Choice) else [0], random)
        self.points = deck(_POINTS, random, first=first)

    def deal(self, names: Mapping[str, Number]) -> Number:
        """The next value, given the dims and earlier scalars."""
        if isinstance(self.arg, Choice):
            return next(self.indices)
        lo, hi = (end(names) for end in self.arg.ends)
        for point in self.points:
            value = self._at(point, lo, hi)
            named_twice = point in ("0", "1", "-1") and value in (lo, hi)
            if lo <= value <= hi and not (named_twice and lo < hi):
                return clip_scalar(self.arg, value, names)
        raise AssertionError("a deck has no end")

    def _at(self, point: str, lo: Number, hi: Number) -> Number:
        if point in ("lo", "hi"):
            return lo if point == "lo" else hi
        if point in ("0", "1", "-1"):
            return int(point)
        share = self.random.random()
        if point == "log" and lo > 0:
            return float(min(max(lo * (hi / lo) ** share, lo), hi))
        return lo + share * (hi - lo)


class Decks:
    """Everything of a case but its sizes."""

    def __init__(self, contract: Contract, dtype: str, random: Random) -> None:
        self.contract = contract
        self.random = random
        self.recipes = {
            name: RecipeDeck(contract, name, dtype, random) for name in contract.tensors()
        }
        others = {n: arg for n, arg in contract.args.items() if not isinstance(arg, Tensor)}
        # Decks of their own for roomy cases: each choice meets sizes of several blocks too.
        self.scalars = {
            roomy: {name: ScalarDeck(arg, random, first=points) for name, arg in others.items()}
            for roomy, points in ((False, _POINTS), (True, _ROOMY_POINTS))
        }
        ties: dict[str, list[Relation]] = {}
        for tie in relations_of(contract):
            ties.setdefault(tie.kind, []).append(tie)
        self.ties = {kind: deck(members, random) for kind, members in ties.items()}
        self.tie_kinds = deck(tuple(ties), random)
        self.dealt = 0

    def deal_recipes(self, *, roomy: bool = False) -> dict[str, Recipe]:
        """The next recipe of every tensor."""
        return {name: dealer.deal(roomy=roomy) for name, dealer in self.recipes.items()}

    def deal_scalars(self, dims: Mapping[str, int], *, roomy: bool = False) -> dict[str, Number]:
        """The next value of every Scalar and index of every Choice.

        ``roomy`` cases, those whose dims are all large, are dealt to apart from the others.
        """
        known: dict[str, Number] = dict(dims)
        dealt: dict[str, Number] = {}
        for name, dealer in self.scalars[roomy].items():
            dealt[name] = value = dealer.deal(known)
            if isinstance(dealer.arg, Scalar):
                known[name] = value
        return dealt

    def deal_tie(self) -> Relation | None:
        """A tie between two arguments in one of four cases, None in the others."""
        self.dealt += 1
        if not self.ties or self.dealt % _RELATED_EVERY:
            return None
        return next(self.ties[next(self.tie_kinds)])
