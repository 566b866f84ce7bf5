"""From failing inputs to the smallest: sizes at the least edge that still fails, plain values."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from trivet.properties._arguments import Scalar
from trivet.properties._case import Case, Recipe
from trivet.properties._cases import layouts_of, legal, recipe_of
from trivet.properties._contract import Contract
from trivet.properties._dims import numbers, options_of
from trivet.properties._sizes import Choice, Derived, DomainError, Number

_MOST_VARIANTS = 6
_MOST_PAIRED = 24
_MOST_LAYOUTS = 12
_SEEDS = (0, 1, 2)
_EASY_NUMBERS = (0, 1, 2, -1, 0.5)


def shrink(
    case: Case,
    still_fails: Callable[[Case], bool],
    contract: Contract,
    dtype: str,
    budget: int = 400,
) -> Case:
    """The simplest case found on which ``still_fails`` holds, trying at most ``budget`` cases.

    ``case`` itself is taken to fail. Sizes end where no smaller edge fails, values are plain where
    plain ones fail too. Sizes tied to one another move together.
    """
    return _Shrinker(case, still_fails, contract, dtype, budget).run()


def simplify(contract: Contract, case: Case, dtype: str) -> Iterator[Case]:
    """Legal cases simpler than ``case``, those that simplify most first."""
    seen = {case}
    candidates = [
        *_all_plain(contract, case, dtype),
        *_all_sizes(contract, case),
        *(
            one
            for name in case.dims
            for size in rungs_below(contract, case, name)
            for one in variants(contract, case, name, size)
        ),
        *_recipes(contract, case, dtype),
        *_scalars(contract, case),
    ]
    for candidate in candidates:
        legal_one = _legal(contract, candidate)
        if legal_one is not None and legal_one not in seen and simpler(legal_one, case):
            seen.add(legal_one)
            yield legal_one


def _legal(contract: Contract, case: Case) -> Case | None:
    try:
        return legal(contract, case)
    except DomainError:
        return None


def size_of(case: Case) -> float:
    """How large the dims of a case are together, by their logarithms."""
    return sum(math.log2(1 + size) for size in case.dims.values())


def simpler(one: Case, other: Case) -> bool:
    """Whether no dims grew in total, or with equal dims anything else changed."""
    if dict(one.dims) == dict(other.dims):
        return one != other
    return size_of(one) < size_of(other)


def rungs_below(contract: Contract, case: Case, name: str) -> list[int]:
    """Legal sizes of a dim under its present one: its low end, then just past powers of two."""
    if isinstance(contract.forms[name], Derived):
        return []
    try:
        options = options_of(contract, name, case.dims)
    except DomainError:
        return []
    now = case.dims[name]
    wanted = [options[0], options[0] + 1, options[0] + 2]
    wanted += [(1 << power) + 1 for power in range(1, now.bit_length() + 1)]
    legal_ones = wanted if isinstance(options, range) else options
    return sorted({size for size in legal_ones if size < now and size in options})


def variants(contract: Contract, case: Case, name: str, size: int) -> list[Case]:
    """The case with one dim at ``size``; dims that depend on it nearest, or each of their sizes."""
    dims = {**case.dims, name: size}
    found = [replace(case, dims=dims)]
    for other, form in contract.forms.items():
        if name not in form.names or isinstance(form, Derived):
            continue
        try:
            options = options_of(contract, other, dims)
        except DomainError:
            continue
        few = [each for each in options[:_MOST_VARIANTS] if each != dims[other]]
        found += [replace(case, dims={**dims, other: each}) for each in few]
    return found


def _all_sizes(contract: Contract, case: Case) -> Iterator[Case]:
    """Every dim at once under a common cap, and at its low end."""
    tops = max(case.dims.values(), default=0)
    caps = [0, 1, 2, 3, *((1 << power) + 1 for power in range(2, tops.bit_length() + 1))]
    for cap in caps:
        yield replace(case, dims={name: min(size, cap) for name, size in case.dims.items()})


def _all_plain(contract: Contract, case: Case, dtype: str) -> Iterator[Case]:
    """Everything but the sizes plain at once, then layouts alone, then values alone."""
    plain = {
        name: Recipe(_simple(contract, name, dtype)[0], absent=recipe_of(case, name).absent)
        for name in contract.tensors()
    }
    yield replace(case, recipes=plain, scalars={}, relation=None, plants=())
    yield replace(case, recipes=plain, relation=None)
    dense = {n: replace(r, layout="dense", share="apart") for n, r in case.recipes.items()}
    yield replace(case, recipes=dense, relation=None)
    yield replace(case, recipes=dense)
    yield replace(case, relation=None)
    values = {
        n: replace(r, kind=_simple(contract, n, dtype)[0], seed=0, scale=0.0)
        for n, r in case.recipes.items()
    }
    yield replace(case, recipes=values)
    for plant in case.plants if len(case.plants) > 1 else ():
        yield replace(case, plants=(plant,))


def _simple(contract: Contract, name: str, dtype: str) -> Sequence[str]:
    storage = contract.storage_of(name, dtype)
    return contract.tensors()[name].domain_at(storage).simple(storage)


def _recipes(contract: Contract, case: Case, dtype: str) -> Iterator[Case]:
    for name in contract.tensors():
        now = recipe_of(case, name)
        for recipe in _plainer(contract, name, now, dtype):
            yield replace(case, recipes={**case.recipes, name: recipe})


def _plainer(contract: Contract, name: str, now: Recipe, dtype: str) -> Iterator[Recipe]:
    """Recipes of one argument that are easier to read than the present one, best first."""
    if contract.tensors()[name].optional and not now.absent:
        yield Recipe(absent=True)
    rank = len(contract.tensors()[name].shapes[now.shape])
    for layout in layouts_of(contract, name, rank)[:_MOST_LAYOUTS]:
        if layout == now.layout:
            break
        yield replace(now, layout=layout)
    if now.share != "apart":
        yield replace(now, share="apart")
    if now.shape:
        yield replace(now, shape=0)
    for kind in _simple(contract, name, dtype):
        if kind == now.kind:
            break
        yield replace(now, kind=kind, seed=0, scale=0.0)
    if now.scale:
        yield replace(now, scale=0.0)
    for seed in _SEEDS:
        if seed == now.seed:
            break
        yield replace(now, seed=seed)


def _scalars(contract: Contract, case: Case) -> Iterator[Case]:
    known = numbers(contract, case.dims, case.scalars)
    for name, value in case.scalars.items():
        for plain in _easier(contract, name, value, known):
            yield replace(case, scalars={**case.scalars, name: plain})


def _easier(
    contract: Contract, name: str, value: Number, known: Mapping[str, Number]
) -> Iterator[Number]:
    """Values of a scalar that are easier to read than the present one, best first."""
    arg = contract.args[name]
    if isinstance(arg, Choice):
        yield from range(int(value))
        return
    assert isinstance(arg, Scalar)
    lo, hi = (end(known) for end in arg.ends)
    rounded = [float(f"{value:.{digits}g}") for digits in (0, 1)] if arg.kind is float else []
    halves = [lo + (value - lo) // 2**k for k in range(1, 8)] if arg.kind is int else []
    for plain in (*_EASY_NUMBERS, lo, *sorted(halves), *rounded):
        if plain == value:
            return
        if lo <= plain <= hi and (arg.kind is float or plain == int(plain)):
            yield plain


class _Shrinker:
    """Passes over one failing case, each keeping what still fails, until none helps."""

    def __init__(
        self,
        case: Case,
        still_fails: Callable[[Case], bool],
        contract: Contract,
        dtype: str,
        budget: int,
    ) -> None:
        self.contract = contract
        self.dtype = dtype
        self.still_fails = still_fails
        self.left = budget
        self.best = _legal(contract, case) or case
        self.tried = {self.best}

    def run(self) -> Case:
        """Run every pass until a whole round changes nothing or the budget is used up."""
        before = None
        while before != self.best and self.left > 0:
            before = self.best
            self._first_of(_all_plain(self.contract, self.best, self.dtype))
            self._first_of(_all_sizes(self.contract, self.best))
            for name in self.best.dims:
                self._lower(name)
            self._trade()
            self._each(lambda: _recipes(self.contract, self.best, self.dtype))
            self._each(lambda: _scalars(self.contract, self.best))
        return replace(self.best, label="shrunk")

    def _fails(self, candidate: Case) -> bool:
        """Try one case; keep it where it is simpler and still fails."""
        case = _legal(self.contract, candidate)
        if case is None or case in self.tried or self.left <= 0 or not simpler(case, self.best):
            return False
        self.tried.add(case)
        self.left -= 1
        if not self.still_fails(case):
            return False
        self.best = case
        return True

    def _first_of(self, candidates: Iterator[Case]) -> bool:
        return any(self._fails(candidate) for candidate in candidates)

    def _each(self, candidates: Callable[[], Iterator[Case]]) -> None:
        """Take one simplification after another, until none is left that still fails."""
        while self._first_of(candidates()):
            pass

    def _at(self, name: str, size: int) -> bool:
        return self._first_of(iter(variants(self.contract, self.best, name, size)))

    def _lower(self, name: str) -> None:
        """One dim to its smallest failing edge, then by halves between it and the edge below."""
        passing = -1
        for rung in rungs_below(self.contract, self.best, name):
            if self._at(name, rung):
                break
            passing = rung
        while self.best.dims[name] - passing > 1:
            middle = (self.best.dims[name] + passing) // 2
            if not self._at(name, middle):
                passing = middle

    def _trade(self) -> None:
        """Two dims at once: one up by little where another can then come down by more."""
        for one, other in combinations(self.best.dims, 2):
            for low in rungs_below(self.contract, self.best, one)[:3]:
                sizes = rungs_below(self.contract, self.best, other)[:_MOST_PAIRED]
                dims = ({**self.best.dims, one: low, other: size} for size in sizes)
                if self._first_of(replace(self.best, dims=each) for each in dims):
                    break
