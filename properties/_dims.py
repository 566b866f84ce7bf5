"""Sizes that satisfy a contract: dims settled in order, and moved where a domain cannot be met."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivet.properties._arguments import Scalar, Tensor
from trivet.properties._dtypes import DTYPES, stored_number
from trivet.properties._sizes import Choice, DomainError, Number, Sizes

if TYPE_CHECKING:
    from trivet.properties._contract import Contract

_MOST_REPAIRS = 8
_MOST_RUNGS = 24
_MOST_JOINT = 4096


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why sizes are no legal ones: a sentence, and the dims and int arguments involved."""

    text: str
    names: frozenset[str]


def nearest(options: Sequence[int], wish: int) -> int:
    """The legal size nearest to ``wish``."""
    if isinstance(options, range):
        return min(max(wish, options[0]), options[-1])
    return min(options, key=lambda each: (abs(each - wish), each))


def options_of(contract: "Contract", name: str, values: Mapping[str, Number]) -> Sequence[int]:
    """The legal sizes of a dim given the earlier ones; a DomainError where there is none."""
    form = contract.forms[name]
    options = form.options(values)
    if not options:
        given = ", ".join(f"{each} = {values[each]}" for each in sorted(form.names))
        raise DomainError(f"dim {name}: {form} holds no size" + (f" at {given}" if given else ""))
    if options[0] < 0:
        raise DomainError(f"dim {name}: {form} starts below 0")
    return options


def _settled(
    contract: "Contract", wishes: Mapping[str, int]
) -> tuple[dict[str, int], Obstacle | None]:
    """Sizes near ``wishes`` in order, and the first dim without a legal size, if any."""
    values: dict[str, int] = {}
    for name, form in contract.forms.items():
        try:
            options = options_of(contract, name, values)
        except DomainError as error:
            return values, Obstacle(str(error), form.names)
        values[name] = nearest(options, wishes[name]) if name in wishes else options[0]
    return values, None


def settle(contract: "Contract", wishes: Mapping[str, int]) -> dict[str, int]:
    """The legal sizes nearest to ``wishes``, each given those before it; smallest where unwished.

    Raises DomainError where a dim has no legal size given the earlier ones.
    """
    values, obstacle = _settled(contract, wishes)
    if obstacle is not None:
        raise DomainError(obstacle.text)
    return values


def clip_scalar(scalar: Scalar, value: Number, names: Mapping[str, Number]) -> Number:
    """``value`` within the scalar's ends; float32 for floats, never past an end."""
    lo, hi = (end(names) for end in scalar.ends)
    if scalar.kind is int:
        return int(min(max(int(value), math.ceil(lo)), math.floor(hi)))
    return stored_number(float(value), DTYPES["float32"], float(lo), float(hi))


def settle_scalars(
    contract: "Contract", dims: Mapping[str, int], wishes: Mapping[str, Number]
) -> dict[str, Number]:
    """Every Scalar's value (``wishes`` clipped to its ends) and every Choice's *index*."""
    known: dict[str, Number] = dict(dims)
    values: dict[str, Number] = {}
    for name, arg in contract.args.items():
        if isinstance(arg, Choice):
            values[name] = int(wishes.get(name, 0)) % len(arg.values)
        elif isinstance(arg, Scalar):
            values[name] = known[name] = clip_scalar(arg, wishes.get(name, 0), known)
    return values


def numbers(
    contract: "Contract", dims: Mapping[str, int], scalars: Mapping[str, Number]
) -> dict[str, Number]:
    """Every name that arithmetic may use: dims and int arguments."""
    known: dict[str, Number] = dict(dims)
    for name, value in scalars.items():
        arg = contract.args[name]
        chosen = arg.values[int(value)] if isinstance(arg, Choice) else value
        if isinstance(chosen, int | float):
            known[name] = chosen
    return known


def shape_of(tensor: Tensor, which: int, names: Mapping[str, Number]) -> tuple[int, ...]:
    """The shape of a tensor, of its ``which``-th legal ones."""
    terms = tensor.shapes[which % len(tensor.shapes)]
    return tuple(term.whole(names) for term in terms)


def obstacles(
    contract: "Contract", dims: Mapping[str, int], wishes: Mapping[str, Number]
) -> list[Obstacle]:
    """What keeps these sizes from being legal: empty ranges, negative sizes, domains unmet."""
    found = list(_scalar_obstacles(contract, dims))
    if found:
        return found
    known = numbers(contract, dims, settle_scalars(contract, dims, wishes))
    for name, tensor in contract.tensors().items():
        found.extend(_shape_obstacles(name, tensor, known))
    if not found:
        for name, dtype in contract.delicate:
            found.extend(_domain_obstacles(contract, name, dtype, known))
    return found


def _scalar_obstacles(contract: "Contract", dims: Mapping[str, int]) -> Iterable[Obstacle]:
    known: dict[str, Number] = dict(dims)
    for name, arg in contract.args.items():
        if not isinstance(arg, Scalar):
            continue
        used = arg.ends[0].names | arg.ends[1].names
        if used - known.keys():
            continue
        lo, hi = (end(known) for end in arg.ends)
        if lo > hi:
            text = f"argument {name}: no {arg.kind.__name__} lies between {lo} and {hi}"
            yield Obstacle(f"{text} ({arg.lo} to {arg.hi})", used)
        known[name] = lo


def _shape_obstacles(name: str, tensor: Tensor, known: Mapping[str, Number]) -> Iterable[Obstacle]:
    for terms in tensor.shapes:
        for term in terms:
            if term.text in known:
                continue
            try:
                size = term.whole(known)
            except DomainError as error:
                yield Obstacle(f"argument {name}: {error}", term.names)
                continue
            if size < 0:
                text = f"argument {name}: its dim {term} would be {size}"
                yield Obstacle(text, term.names)


def _domain_obstacles(
    contract: "Contract", name: str, dtype: str, known: Mapping[str, Number]
) -> Iterable[Obstacle]:
    tensor, storage = contract.tensors()[name], contract.storage_of(name, dtype)
    domain = tensor.domain_at(storage)
    for which, terms in enumerate(tensor.shapes):
        shape = shape_of(tensor, which, known)
        if 0 in shape and not domain.structured:
            continue  # an array without elements meets every elementwise domain
        try:
            text = domain.obstacle(shape, known, storage)
        except DomainError as error:
            text = str(error)
        if text is not None:
            used = frozenset[str]().union(*(term.names for term in terms))
            yield Obstacle(f"argument {name}: {text}", used | domain.names)


def base_dims(contract: "Contract", names: Iterable[str]) -> list[str]:
    """The dims that ``names`` depend on and that can move, later ones first."""
    wanted, todo = set[str](), list(names)
    while todo:
        name = todo.pop()
        if name in wanted:
            continue
        wanted.add(name)
        arg = contract.args.get(name)
        if name in contract.forms:
            todo.extend(contract.forms[name].names)
        elif isinstance(arg, Scalar):
            todo.extend(arg.ends[0].names | arg.ends[1].names)
    return [name for name in reversed(list(contract.forms)) if name in wanted]


def rungs(options: Sequence[int], wish: int) -> list[int]:
    """A few legal sizes spread over all of them, dense near both ends and near ``wish``."""
    if len(options) <= _MOST_RUNGS:
        return list(options)
    last = len(options) - 1
    steps = {0, 1, 2, 3, last - 1, last}
    steps |= {round(last ** (k / 16)) for k in range(17)}
    near = options.index(wish) if wish in options else 0
    steps |= {k for k in range(near - 2, near + 3) if 0 <= k <= last}
    return [options[k] for k in sorted(steps)]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Sizes and what is wrong with them; ``settled`` where every dim has one."""

    dims: dict[str, int]
    found: list[Obstacle]
    settled: bool

    @property
    def rank(self) -> tuple[bool, int]:
        """Lower is nearer to legal."""
        return not self.settled, len(self.found) if self.settled else -len(self.dims)


def _attempt(
    contract: "Contract", wishes: Mapping[str, int], scalars: Mapping[str, Number]
) -> _Attempt:
    dims, obstacle = _settled(contract, wishes)
    if obstacle is not None:
        return _Attempt(dims, [obstacle], settled=False)
    return _Attempt(dims, obstacles(contract, dims, scalars), settled=True)


def _distance(wishes: Mapping[str, int], dims: Mapping[str, int]) -> float:
    known = [(size, wishes[name]) for name, size in dims.items() if name in wishes]
    return sum(abs(math.log((1 + size) / (1 + wish))) for size, wish in known)


def closest(
    contract: "Contract",
    wishes: Mapping[str, int],
    scalars: Mapping[str, Number] | None = None,
) -> dict[str, int]:
    """Legal sizes near ``wishes``, moved as little as their domains demand.

    Raises DomainError (a ValueError) where no legal sizes were found: the text says which argument
    stands in the way.
    """
    points = scalars or {}
    now = _attempt(contract, wishes, points)
    if not now.found:
        return now.dims
    for _ in range(_MOST_REPAIRS):
        moved = _best_move(contract, wishes, now, points)
        if moved is None:
            break
        now = moved
        if not now.found:
            break
    if now.found:
        raise DomainError(f"{now.found[0].text}: no sizes of the contract's dims can meet this")
    return _tightened(contract, wishes, now.dims, points)


def _tightened(
    contract: "Contract",
    wishes: Mapping[str, int],
    dims: dict[str, int],
    scalars: Mapping[str, Number],
) -> dict[str, int]:
    """Legal sizes moved back towards ``wishes``, one dim after another, as far as is legal."""
    for name in dims:
        wish = wishes.get(name, dims[name])
        while abs(wish - dims[name]) > 1:
            middle = (wish + dims[name]) // 2
            attempt = _attempt(contract, {**dims, name: middle}, scalars)
            if attempt.found or attempt.dims[name] == dims[name]:
                wish = middle
            else:
                dims = attempt.dims
    return dims


def _best_move(
    contract: "Contract",
    wishes: Mapping[str, int],
    now: _Attempt,
    scalars: Mapping[str, Number],
) -> _Attempt | None:
    """The change of one dim, or else of several, after which fewest obstacles are left."""
    current = {**wishes, **now.dims}
    ladders = {
        name: rungs(_loose_options(contract, name, now.dims), current.get(name, 0))
        for name in base_dims(contract, now.found[0].names)
    }
    singles = [{name: size} for name, ladder in ladders.items() for size in ladder]
    for changes in (singles, _joint(ladders)):
        reached = [_attempt(contract, {**current, **change}, scalars) for change in changes]
        better = [each for each in reached if each.rank < now.rank]
        if better:
            return min(better, key=lambda each: (each.rank, _distance(wishes, each.dims)))
    return None


def _loose_options(contract: "Contract", name: str, dims: Mapping[str, int]) -> Sequence[int]:
    try:
        options = contract.forms[name].options(dims)
    except (DomainError, KeyError):
        return ()
    return [size for size in options if size >= 0] if not isinstance(options, range) else options


def _joint(ladders: Mapping[str, list[int]]) -> Iterable[dict[str, int]]:
    """Several dims at once: the ends and middles of their ladders."""
    few = {
        name: sorted({ladder[0], ladder[len(ladder) // 2], ladder[-1]})
        for name, ladder in ladders.items()
        if ladder
    }
    combinations = itertools.product(*few.values())
    for sizes in itertools.islice(combinations, _MOST_JOINT):
        yield dict(zip(few, sizes, strict=True))


def extent(contract: "Contract", name: str) -> tuple[int, int]:
    """The smallest and largest size that a dim takes over the whole domain, where known.

    Ends that use other dims are taken at those dims' smallest and largest sizes.
    """
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for each in contract.forms:
        corners = [_ends(contract, each, values) for values in (low, high)]
        sizes = [size for corner in corners for size in corner]
        low[each], high[each] = (min(sizes), max(sizes)) if sizes else (0, 0)
        if each == name:
            break
    return low[name], high[name]


def _ends(contract: "Contract", name: str, values: Mapping[str, int]) -> tuple[int, ...]:
    try:
        options = contract.forms[name].options(values)
    except DomainError:
        return ()
    return (max(0, options[0]), max(0, options[-1])) if options else ()


def production_dims(contract: "Contract", number: int = 0) -> dict[str, int] | None:
    """The sizes at which offsets must still fit: ``production`` where given, else the largest.

    Of several, those of the case ``number``. None where no dim states a production size.
    """
    stated = stated_dims(contract, number)
    return filled_dims(contract, stated) if stated else None


def stated_dims(contract: "Contract", number: int = 0) -> dict[str, int]:
    """The production sizes, in the case ``number``, of the dims that state any."""
    return {
        name: form.production[number % len(form.production)]
        for name, form in contract.forms.items()
        if isinstance(form, Sizes) and form.production
    }


def filled_dims(contract: "Contract", stated: Mapping[str, int]) -> dict[str, int]:
    """``stated`` sizes as they are, and of every other dim the largest that is generated."""
    values: dict[str, int] = {}
    for name in contract.forms:
        options = options_of(contract, name, values)
        values[name] = stated.get(name, options[-1])
    return values
