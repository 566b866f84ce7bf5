"""Size classes: which sizes differ for a kernel that works in blocks, and sizes of each class."""

from collections.abc import Iterator, Mapping, Sequence

from trivet.properties._contract import Contract
from trivet.properties._dims import closest, numbers, options_of, settle_scalars, shape_of
from trivet.properties._sizes import Choice, Derived, Divisors, DomainError

# Where a kernel shows no block sizes: the usual ones.
USUAL_BLOCKS = (16, 64)
_LITTLE = (4, 16, 64, 256)
_THREES = 12
# A case with more elements than this would cost seconds: its other dims are made smaller.
MOST_ELEMENTS = 1 << 21


def size_class(value: int, blocks: Sequence[int], lo: int, hi: int) -> str:
    """The class of a size: 0, lo, lo+1, hi, a block's edge, or between which edges it lies.

    >>> [size_class(size, (64,), 1, 300) for size in (65, 130, 12)]
    ['64+1', 'over 2 x 64', 'under 16']
    """
    if value in (0, hi, lo, lo + 1):
        return {hi: "hi", lo: "lo", 0: "0"}.get(value, "lo+1")
    edges = sorted(set(blocks)) or list(USUAL_BLOCKS)
    for block in edges:
        if abs(value - block) <= 1:
            return f"{block}{value - block:+d}" if value != block else f"{block}"
    if value > 2 * edges[-1]:
        return f"over 2 x {edges[-1]}"
    below = [block for block in edges if block < value]
    if below:
        return f"over {below[-1]}"
    return f"under {next((top for top in _LITTLE if value < top < edges[0]), edges[0])}"


def classes_within(blocks: Sequence[int], lo: int, hi: int) -> tuple[str, ...]:
    """Every class that sizes from lo to hi fall into, 0 apart."""
    found = dict.fromkeys(
        size_class(v, blocks, lo, hi) for v in edge_sizes(range(lo, hi + 1), blocks)
    )
    return tuple(found)


def edge_sizes(options: Sequence[int], blocks: Sequence[int]) -> list[int]:
    """The sizes worth trying first, ascending, without 0: ends, block edges, several chunks."""
    least = options[1] if options[0] == 0 and len(options) > 1 else options[0]
    wanted = {least, least + 1, options[-1]}
    for block in blocks or USUAL_BLOCKS:
        wanted |= {block // 2, block - 1, block, block + 1, 2 * block - 3, 2 * block + 3}
        wanted |= {3 * block - 1}
    wanted |= {3 << power for power in range(_THREES)}  # no powers of two, at every scale
    legal = {size for size in wanted if size in options and size >= least}
    if not isinstance(options, range):
        legal |= set(options) - {0}
    return sorted(legal) or [options[-1]]


def class_of(contract: Contract, name: str, dims: Mapping[str, int], blocks: Sequence[int]) -> str:
    """The class of one dim of a case; of a Choice its value, of a divisor how it divides."""
    form, value = contract.forms[name], dims[name]
    if isinstance(form, Choice):
        return f"= {value}"
    if isinstance(form, Divisors):
        return _division(max(1, form.of.whole(dims)), value)
    try:
        options = options_of(contract, name, dims)
    except DomainError:
        options = (value,)
    if isinstance(form, Derived):
        return size_class(value, blocks, -1, -1)
    return size_class(value, blocks, options[0] or 1, options[-1])


def _division(whole: int, part: int) -> str:
    quotient = whole // part
    if part in (1, whole):
        return "1" if part == 1 else "whole"
    return "proper" if quotient & (quotient - 1) == 0 else "proper, quotient no power of two"


def size_classes(
    contract: Contract, dims: Mapping[str, int], blocks: Sequence[int]
) -> dict[str, str]:
    """The class of every dim."""
    return {name: class_of(contract, name, dims, blocks) for name in dims}


def elements(contract: Contract, dims: Mapping[str, int]) -> int:
    """How many elements the tensors of these sizes hold together."""
    known = numbers(contract, dims, settle_scalars(contract, dims, {}))
    total = 0
    for tensor in contract.tensors().values():
        total += _product(shape_of(tensor, 0, known))
    return total


def _product(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= max(0, size)
    return total


def affordable(
    contract: Contract,
    dims: Mapping[str, int],
    kept: Sequence[str] = (),
    *,
    most: int = MOST_ELEMENTS,
) -> dict[str, int]:
    """Sizes of at most ``most`` elements: the largest dims not in ``kept`` are halved."""
    now = dict(dims)
    while elements(contract, now) > most:
        lighter = next(_lighter(contract, now, kept), None)
        if lighter is None:
            return now
        now = lighter
    return now


def _lighter(
    contract: Contract, dims: Mapping[str, int], kept: Sequence[str]
) -> Iterator[dict[str, int]]:
    """The sizes with one dim halved that then hold fewer elements, largest dims first."""
    before = elements(contract, dims)
    order = sorted((name for name in dims if name not in kept), key=lambda name: -dims[name])
    for name in [*order, *kept]:
        smaller = closest(contract, {**dims, name: dims[name] // 2})
        if elements(contract, smaller) < before:
            yield smaller
