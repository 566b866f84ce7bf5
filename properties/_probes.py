"""Cases of a special kind: exact integers, empty dims, and planted NaN and infinities."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from trivet.properties._arguments import Scalar
from trivet.properties._case import Case, Plant, Recipe
from trivet.properties._cases import legal
from trivet.properties._contract import Contract
from trivet.properties._decks import Decks
from trivet.properties._dims import closest, numbers, settle_scalars, shape_of
from trivet.properties._edges import USUAL_BLOCKS, affordable
from trivet.properties._plan import empty_dims, plan
from trivet.properties._sizes import Number

EXACT_BITS = 24  # a float32 accumulator holds every whole number up to 2^24
_EASY_NUMBERS = (1.0, 2.0, 0.5, 0.0, -1.0, 0.25, 4.0)
_MOST_EDGES = 2
_UNREAD_CASES = 12
_TEXTS = {math.inf: "inf", -math.inf: "-inf"}


def integer_cases(
    contract: Contract, dtype: str, *, seed: int, blocks: Sequence[int], count: int = 8
) -> Iterator[Case]:
    """Cases of whole numbers so small that sums and dot products of them are exact.

    In turn one float argument takes wide odd numbers and the others -1, 0 and 1; how wide, depends
    on how many terms a sum may have: by turns the largest dim, or every element of a tensor.
    """
    floats = [name for name in contract.tensors() if is_floating(contract, name, dtype)]
    random = Random(f"{seed}/{dtype}/integers")
    for index, case in enumerate(plan(contract, dtype, seed=seed, blocks=blocks, count=count)):
        wide = floats[index % len(floats)] if floats else ""
        terms = _most_terms(contract, case, every=index % 2 == 1)
        bits = max(1, EXACT_BITS - 1 - math.ceil(math.log2(max(1, terms))))
        yield exact_case(contract, dtype, case, wide, bits, random, "integers")


def exact_case(
    contract: Contract, dtype: str, case: Case, wide: str, bits: int, random: Random, label: str
) -> Case:
    """The case with ``wide`` of odd numbers up to so many bits, the other floats -1, 0 and 1."""
    recipes = dict(case.recipes)
    for name in recipes:
        if not is_floating(contract, name, dtype):
            continue
        digits = contract.storage_of(name, dtype).digits
        kind = f"probe:{min(bits, digits - 1) if name == wide else 1}"
        recipes[name] = replace(recipes[name], kind=kind, scale=0.0)
    scalars = {n: _easy(contract, n, v, case, random) for n, v in case.scalars.items()}
    easy = replace(case, recipes=recipes, scalars=scalars, relation=None, label=label)
    return legal(contract, easy)


def is_floating(contract: Contract, name: str, dtype: str) -> bool:
    """Whether an argument holds floats that the kernel is given."""
    return contract.storage_of(name, dtype).floating and contract.tensors()[name].role != "out"


def _most_terms(contract: Contract, case: Case, *, every: bool) -> int:
    known = numbers(contract, case.dims, case.scalars)
    shapes = [shape_of(tensor, 0, known) for tensor in contract.tensors().values()]
    if every:
        return max((math.prod(shape) for shape in shapes), default=1)
    return max((size for shape in shapes for size in shape), default=1)


def _easy(contract: Contract, name: str, value: Number, case: Case, random: Random) -> Number:
    """A number of few bits in a float scalar's range, else the value as it was."""
    arg = contract.args[name]
    if not isinstance(arg, Scalar) or arg.kind is int:
        return value
    lo, hi = (end(numbers(contract, case.dims, case.scalars)) for end in arg.ends)
    inside = [number for number in _EASY_NUMBERS if lo <= number <= hi]
    if inside:
        return random.choice(inside)
    power = 2.0 ** math.floor(math.log2(hi)) if hi > 0 else hi
    return power if power >= lo else value


def empty_cases(contract: Contract, dtype: str, *, seed: int = 0) -> Iterator[Case]:
    """For each dim that admits 0, one case with that dim 0 and the others small."""
    decks = Decks(contract, dtype, Random(f"{seed}/{dtype}/empty"))
    for dims in empty_dims(contract):
        recipes = {
            name: replace(recipe, layout="dense", share="apart", absent=False)
            for name, recipe in decks.deal_recipes().items()
        }
        case = Case(dims, recipes, decks.deal_scalars(dims), label="empty")
        yield legal(contract, case)


def nonfinite_cases(
    contract: Contract, dtype: str, *, seed: int = 0, blocks: Sequence[int] = ()
) -> Iterator[Case]:
    """One planted NaN or infinity a case, at the first, the last and block-edge positions.

    Only in arguments whose domain admits them; the sizes span several blocks and a ragged tail.
    """
    edges = sorted(set(blocks)) or list(USUAL_BLOCKS)
    chosen = edges[:1] + edges[-1:] if len(edges) > _MOST_EDGES else edges
    places = ["first", "last", *(f"edge:{edge}" for edge in dict.fromkeys(chosen))]
    number = 0
    for name, value in _plantable(contract, dtype):
        for where in places:
            number += 1
            dims = _several_blocks(contract, edges[number % len(edges)])
            recipes = {
                each: Recipe("normal" if each == name else kind, seed=seed + number)
                for each, kind in _ordinary(contract, dtype).items()
            }
            scalars = settle_scalars(contract, dims, _middling(contract, dims))
            plant = Plant(name, where, _TEXTS.get(value, "nan"))
            case = Case(dims, recipes, scalars, plants=(plant,), label="nonfinite")
            yield legal(contract, case)


def unread_cases(
    contract: Contract, dtype: str, *, seed: int = 0, blocks: Sequence[int] = ()
) -> Iterator[Case]:
    """NaN and infinities at random places of the arguments declared ``unread=ANY``, one a case.

    Whether the place is unread depends on the other arguments: the oracle, evaluated with the
    plant, tells.
    """
    names = [
        name
        for name, tensor in contract.tensors().items()
        if tensor.unread is not None and is_floating(contract, name, dtype)
    ]
    random = Random(f"{seed}/{dtype}/unread")
    cases = plan(contract, dtype, seed=seed, blocks=blocks, count=_UNREAD_CASES) if names else []
    for case in cases:
        for name, value in itertools.product(names, ("nan", "inf", "-inf")):
            plant = Plant(name, f"at:{random.randrange(2**30)}", value)
            yield replace(case, plants=(plant,), label="unread")


def _plantable(contract: Contract, dtype: str) -> Iterator[tuple[str, float]]:
    for name, tensor in contract.tensors().items():
        storage = contract.storage_of(name, dtype)
        if tensor.role == "out" or not storage.floating:
            continue
        for value in tensor.domain_at(storage).nonfinite_values:
            if not math.isinf(value) or storage.name != "float8_e4m3fn":  # that one has no infinity
                yield name, value


def _several_blocks(contract: Contract, block: int) -> dict[str, int]:
    wishes = dict.fromkeys(contract.forms, 2 * block + 3)
    return affordable(contract, closest(contract, wishes))


def _ordinary(contract: Contract, dtype: str) -> dict[str, str]:
    kinds = {}
    for name, tensor in contract.tensors().items():
        storage = contract.storage_of(name, dtype)
        kinds[name] = tensor.domain_at(storage).kinds(storage)[0]
    return kinds


def _middling(contract: Contract, dims: Mapping[str, int]) -> dict[str, Number]:
    """Every Scalar in the middle of its range."""
    known: dict[str, Number] = dict(dims)
    values: dict[str, Number] = {}
    for name, arg in contract.args.items():
        if isinstance(arg, Scalar):
            lo, hi = (end(known) for end in arg.ends)
            values[name] = known[name] = (lo + hi) / 2 if arg.kind is float else int(lo + hi) // 2
    return values
