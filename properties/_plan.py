"""The covering design: the first cases of a gate, chosen so that every class of input appears.

Sizes are chosen greedily: of a few random proposals the one that shows most that no earlier case
showed (after AETG, Cohen, Dalal, Fredman and Patton 1997). Value kinds, layouts and scalars are
dealt evenly, each argument its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from random import Random

from trivet.properties._case import Case, Recipe
from trivet.properties._cases import legal
from trivet.properties._contract import Contract
from trivet.properties._decks import Decks
from trivet.properties._dims import closest, extent, options_of
from trivet.properties._edges import (
    USUAL_BLOCKS,
    affordable,
    class_of,
    classes_within,
    edge_sizes,
    size_class,
    size_classes,
)
from trivet.properties._sizes import Choice, Derived, DomainError

__all__ = ["class_of", "classes_within", "pilot_cases", "plan", "size_class", "size_classes"]

_PROPOSALS = 24
_REPAIRED = 4
_SMALL = 3
_ROOMY_EVERY = 3
_EMPTY_EVERY = 25
_EMPTY_AT = 13
_PILOT_SHARES = (0.15, 0.5, 1.0)
_CLASS_GAIN, _LITTLE_GAIN, _SMALL_GAIN, _ORDER_GAIN, _ZERO_LOSS = 5, 3, 8, 1, 50

Fact = tuple[str, ...]


def pilot_cases(contract: Contract, dtype: str) -> list[Case]:
    """Three plain cases at 15 %, 50 % and 100 % of the dims: launches that show block sizes."""
    cases = []
    for share in _PILOT_SHARES:
        values: dict[str, int] = {}
        for name in contract.forms:
            options = options_of(contract, name, values)
            values[name] = options[round(share * (len(options) - 1))]
        dims = affordable(contract, closest(contract, values))
        recipes = {
            name: Recipe(kind=_first_kind(contract, name, dtype)) for name in contract.tensors()
        }
        cases.append(legal(contract, Case(dims, recipes, label="pilot")))
    return cases


def _first_kind(contract: Contract, name: str, dtype: str) -> str:
    storage = contract.storage_of(name, dtype)
    return contract.tensors()[name].domain_at(storage).kinds(storage)[0]


def plan(
    contract: Contract, dtype: str, *, seed: int, blocks: Sequence[int], count: int = 20
) -> list[Case]:
    """``count`` cases of one dtype that cover size classes, values, layouts and structures.

    The same arguments give the same cases. No dim is 0 but in one case of 25, where one is.
    """
    random = Random(f"{seed}/{dtype}/plan")
    decks = Decks(contract, dtype, random)
    empties = _empties(contract, random)
    design = _Design(contract, blocks, random)
    cases = []
    for index in range(count):
        dims = None
        if index % _EMPTY_EVERY == _EMPTY_AT:
            dims = next(empties, None)
        roomy = dims is None and index % _ROOMY_EVERY == 1
        dims = design.next(roomy=roomy) if dims is None else dims
        recipes, tie = decks.deal_recipes(roomy=roomy), decks.deal_tie()
        case = Case(dims, recipes, decks.deal_scalars(dims, roomy=roomy), tie)
        cases.append(legal(contract, case))
    return cases


def _empties(contract: Contract, random: Random) -> Iterator[dict[str, int]]:
    """Sizes with one dim 0, another dim each time, without end where there are any."""
    found = list(empty_dims(contract))
    while found:
        yield from random.sample(found, len(found))


def empty_dims(contract: Contract) -> Iterator[dict[str, int]]:
    """For each dim that admits 0: sizes with that dim 0 and all others small."""
    for name, form in contract.forms.items():
        if isinstance(form, Derived):
            continue
        for others in (3, 1):
            dims = _emptied(contract, name, others)
            if dims is not None:
                yield dims
                break


def _emptied(contract: Contract, name: str, others: int) -> dict[str, int] | None:
    """Sizes with one dim 0 and, of those that may be, all others from ``others`` up."""
    wishes: dict[str, int] = {}
    for each in contract.forms:
        try:
            options = options_of(contract, each, wishes)
        except DomainError:
            return None
        wanted = 0 if each == name else max(others, options[0])
        wishes[each] = min(options, key=lambda size: abs(size - wanted))
    try:
        dims = closest(contract, wishes)
    except DomainError:
        return None
    return dims if dims[name] == 0 else None


class _Design:
    """Sizes chosen so that their classes, orders and contrasts are all seen soon."""

    def __init__(self, contract: Contract, blocks: Sequence[int], random: Random) -> None:
        self.contract = contract
        self.blocks = sorted(set(blocks))
        self.random = random
        self.seen: dict[Fact, int] = {}
        block = self.blocks[0] if self.blocks else USUAL_BLOCKS[0]
        self.large = {
            name: min(block + 1, (extent(contract, name)[1] + 1) // 2) for name in contract.forms
        }

    def next(self, *, roomy: bool = False) -> dict[str, int]:
        """The sizes of the next case; a ``roomy`` one has all in the upper half of their range."""
        promising = sorted(self._proposals(roomy=roomy), key=self._gain, reverse=True)[:_REPAIRED]
        reached = [dims for dims in map(self._legal, promising) if dims is not None]
        best = max(reached, key=self._gain, default=None) or closest(self.contract, {})
        for fact, _ in self._facts(best):
            self.seen[fact] = self.seen.get(fact, 0) + 1
        return best

    def _legal(self, proposal: Mapping[str, int]) -> dict[str, int] | None:
        try:
            near = closest(self.contract, proposal)
        except DomainError:
            return None
        return affordable(self.contract, near, self._rare(near))

    def _rare(self, dims: Mapping[str, int]) -> list[str]:
        """The dims whose class was not seen yet: they keep their size when a case is too large."""
        return [
            name
            for name in dims
            if ("class", name, class_of(self.contract, name, dims, self.blocks)) not in self.seen
        ]

    def _proposals(self, *, roomy: bool) -> Iterator[dict[str, int]]:
        free = [name for name, form in self.contract.forms.items() if not isinstance(form, Derived)]
        for number in range(_PROPOSALS):
            small = free[number % len(free)] if free and number % 3 == 0 else None
            proposal = self._proposal(None if roomy else small, roomy=roomy)
            if proposal is not None and number % 4 == 1 and len(free) > 1 and not roomy:
                one, other = self.random.sample(free, 2)
                proposal[one] = proposal[other]
            if proposal is not None:
                yield proposal

    def _proposal(self, small: str | None, *, roomy: bool) -> dict[str, int] | None:
        """Sizes drawn in order; with ``small`` that dim is small and the others are large."""
        values: dict[str, int] = {}
        for name in self.contract.forms:
            try:
                options = options_of(self.contract, name, values)
            except DomainError:
                return None
            pool = self._upper(options) if roomy else None
            values[name] = pool or self._size(name, options, values, small)
        return values

    def _upper(self, options: Sequence[int]) -> int | None:
        """A size in the upper half of a range, an edge in half of the proposals; None of a few."""
        if not isinstance(options, range):
            return None
        middle = options[len(options) // 2]
        edges = [size for size in edge_sizes(options, self.blocks) if size >= middle]
        if edges and self.random.random() < 0.5:
            return self.random.choice(edges)
        return self.random.randint(middle, options[-1])

    def _size(
        self, name: str, options: Sequence[int], values: Mapping[str, int], small: str | None
    ) -> int:
        edges = edge_sizes(options, self.blocks)
        if small is not None:
            third = max(1, len(edges) // 3)
            return self.random.choice(edges[:third] if name == small else edges[-third:])
        new = [size for size in edges if self._unseen(name, size, values)]
        if new and self.random.random() < 0.7:
            return self.random.choice(new)
        if self.random.random() < 0.3:
            return self._anywhere(options)
        return self.random.choice(edges)

    def _unseen(self, name: str, size: int, values: Mapping[str, int]) -> bool:
        label = class_of(self.contract, name, {**values, name: size}, self.blocks)
        return ("class", name, label) not in self.seen

    def _anywhere(self, options: Sequence[int]) -> int:
        """Log-uniform over the legal sizes, without 0."""
        least, most = max(1, options[0]), max(1, options[-1])
        wish = least * (most / least) ** self.random.random()
        return min(options, key=lambda size: abs(size - wish)) if len(options) < 64 else int(wish)

    def _gain(self, dims: Mapping[str, int]) -> float:
        gain = sum(weight / (1 + 9 * self.seen.get(fact, 0)) for fact, weight in self._facts(dims))
        return gain - _ZERO_LOSS * sum(size == 0 for size in dims.values())

    def _facts(self, dims: Mapping[str, int]) -> Iterator[tuple[Fact, float]]:
        """What a case of these sizes shows, each with what it is worth to see it."""
        for name in dims:
            label = class_of(self.contract, name, dims, self.blocks)
            little = label.startswith("under")
            yield ("class", name, label), _LITTLE_GAIN if little else _CLASS_GAIN
        large = {name for name, size in dims.items() if size >= self.large[name]}
        for name in dims:
            if isinstance(self.contract.forms[name], Choice) and large >= dims.keys() - {name}:
                yield ("roomy", name, str(dims[name])), _SMALL_GAIN
        for name in dims:
            alone = len(dims) > 1 and large >= dims.keys() - {name}
            if alone and dims[name] < self.large[name] and dims[name] <= _SMALL:
                yield ("small", name), _SMALL_GAIN
        for one, other in combinations(dims, 2):
            order = "<" if dims[one] < dims[other] else "=" if dims[one] == dims[other] else ">"
            yield ("order", one, order, other), _ORDER_GAIN
