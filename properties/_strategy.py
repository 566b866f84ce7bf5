"""A Hypothesis strategy of cases: it draws sizes, kinds and a seed, never elements."""

from collections.abc import Mapping, Sequence
from random import Random

from hypothesis import strategies as st

from trivet.properties._arguments import Scalar, Tensor
from trivet.properties._case import Case, Recipe
from trivet.properties._cases import layouts_of, legal, shares_of
from trivet.properties._contract import Contract
from trivet.properties._decks import ScalarDeck
from trivet.properties._dims import closest, options_of
from trivet.properties._edges import affordable, edge_sizes
from trivet.properties._plan import empty_dims
from trivet.properties._relations import relations_of
from trivet.properties._sizes import DomainError, Number

_EMPTY_EVERY = 25
_ONE_IN = 4
_SEEDS = 1 << 31


def strategy(contract: Contract, dtype: str, blocks: Sequence[int]) -> st.SearchStrategy[Case]:
    """Legal cases of one dtype; at most one dim is 0, in about one of 25.

    ``blocks`` are the block sizes learned before: they must not change while it is in use.
    """
    ties = tuple(relations_of(contract))
    empties = tuple(empty_dims(contract))

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        empty = bool(empties) and draw(st.integers(0, _EMPTY_EVERY - 1)) == _EMPTY_EVERY - 1
        dims = draw(st.sampled_from(empties)) if empty else _sizes(draw, contract, blocks)
        kinds = {name: _kind(draw, contract, name, dtype) for name in contract.tensors()}
        random = Random(draw(st.integers(0, _SEEDS - 1)))
        recipes = {name: _recipe(contract, name, kind, random) for name, kind in kinds.items()}
        tied = bool(ties) and random.randrange(_ONE_IN) == 0
        relation = random.choice(ties) if tied else None
        scalars = _scalars(contract, dims, random)
        return legal(contract, Case(dims, recipes, scalars, relation, label="hypothesis"))

    return cases()


def _sizes(draw: st.DrawFn, contract: Contract, blocks: Sequence[int]) -> dict[str, int]:
    values: dict[str, int] = {}
    for name in contract.forms:
        try:
            options = options_of(contract, name, values)
        except DomainError:
            break  # the sizes before leave none for this dim: closest moves them
        edges = edge_sizes(options, blocks)
        if len(options) == 1:
            values[name] = options[0]
        elif isinstance(options, range):
            inside = st.integers(max(1, options[0]), max(1, options[-1]))
            values[name] = draw(st.sampled_from(edges) | inside)
        else:
            values[name] = draw(st.sampled_from(edges))
    return affordable(contract, closest(contract, values))


def _kind(draw: st.DrawFn, contract: Contract, name: str, dtype: str) -> str:
    storage = contract.storage_of(name, dtype)
    return draw(st.sampled_from(contract.tensors()[name].domain_at(storage).kinds(storage)))


def _recipe(contract: Contract, name: str, kind: str, random: Random) -> Recipe:
    tensor = contract.tensors()[name]
    shape = random.randrange(len(tensor.shapes))
    return Recipe(
        kind=kind,
        seed=random.randrange(_SEEDS),
        scale=random.choice((0.0, 0.5, 1.0)),
        shape=shape,
        layout=random.choice(layouts_of(contract, name, len(tensor.shapes[shape]))),
        absent=tensor.optional and random.randrange(_ONE_IN) == 0,
        share=random.choice(shares_of(contract, name)),
    )


def _scalars(contract: Contract, dims: Mapping[str, int], random: Random) -> dict[str, Number]:
    known: dict[str, Number] = dict(dims)
    values: dict[str, Number] = {}
    for name, arg in contract.args.items():
        if isinstance(arg, Tensor):
            continue
        values[name] = ScalarDeck(arg, random, first=()).deal(known)
        if isinstance(arg, Scalar):
            known[name] = values[name]
    return values
