"""Building the inputs of a case: arrays for the oracle, tensors for the kernel."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet.properties._arguments import Scalar, Tensor
from trivet.properties._case import Case, Plant, Recipe
from trivet.properties._contract import Contract
from trivet.properties._dims import closest, numbers, settle_scalars, shape_of
from trivet.properties._dtypes import Dtype
from trivet.properties._layouts import DENSE, Geometry, Layout, geometry, layout_kinds
from trivet.properties._relations import Relation, related
from trivet.properties._sizes import Choice, DomainError, Number
from trivet.properties._stream import Shape, Stream
from trivet.properties._tensors import as_torch, empty_storage, torch_view, write
from trivet.properties._validation import takes
from trivet.properties._values import Request

__all__ = ["Case", "Inputs", "Plant", "Recipe", "Relation", "assumption_failed", "build"]

Array = NDArray[Any]
# What a kernel is given: a tensor, or a value of a Scalar or Choice (which may hold anything).
Given = Any


@dataclass(frozen=True)
class Inputs:
    """The arguments of one run.

    ``tensors`` are handed to the kernel: every argument, and the dims it has parameters for.
    ``arrays`` hold what the oracle sees: float64 arrays of the exact stored values, int64 or bool
    arrays, scalars, and every dim; an out buffer is None there.
    """

    contract: Contract
    case: Case
    dtype: str
    dims: Mapping[str, int]
    tensors: dict[str, Given]
    arrays: dict[str, Given]


def dtypes_of(contract: Contract) -> tuple[str, ...]:
    """The dtypes at which a contract is judged."""
    return contract.dtypes()


def legal(contract: Contract, case: Case) -> Case:
    """The case with its dims and scalars moved into the domain, as little as that demands.

    Raises DomainError where no sizes are legal.
    """
    dims = closest(contract, case.dims, case.scalars)
    return replace(case, dims=dims, scalars=settle_scalars(contract, dims, case.scalars))


def build(contract: Contract, case: Case, dtype: str) -> Inputs:
    """The inputs of a case at one of the contract's dtypes; the same case gives the same bits.

    Raises DomainError where an argument's domain has no value for these sizes.
    """
    case = legal(contract, case)
    names = numbers(contract, case.dims, case.scalars)
    values = _values(contract, case, dtype, names)
    given: dict[str, Given] = {}
    arrays: dict[str, Given] = dict(case.dims)
    placed = _Placing(contract, case, dtype, values).all()
    for name, arg in contract.args.items():
        if isinstance(arg, Tensor):
            given[name], arrays[name] = placed.get(name, (None, None))
        else:
            given[name] = arrays[name] = scalar_value(arg, case.scalars[name])
    sizes = {name: size for name, size in case.dims.items() if takes(contract.kernel, name)}
    return Inputs(contract, case, dtype, case.dims, {**given, **sizes}, arrays)


def assumption_failed(contract: Contract, inputs: Inputs) -> str | None:
    """The name of the first ``@c.assume`` predicate that these inputs fail, or None."""
    for name, predicate in contract.assumptions.items():
        wanted = signature(predicate).parameters
        if not predicate(**{each: inputs.arrays[each] for each in wanted}):
            return name
    return None


def scalar_value(arg: Scalar | Choice, value: Number) -> Given:
    """What a Scalar or Choice hands to the kernel for a case's number."""
    chosen = arg.values[int(value)] if isinstance(arg, Choice) else value
    # Triton passes floats as float32, so kernel and oracle are given what arrives.
    return float(np.float32(chosen)) if isinstance(chosen, float) else chosen


def recipe_of(case: Case, name: str) -> Recipe:
    """The recipe of an argument, the simplest where the case has none."""
    return case.recipes.get(name, Recipe())


def _values(
    contract: Contract, case: Case, dtype: str, names: Mapping[str, Number]
) -> dict[str, Array | None]:
    """Every tensor's values before layout: float64 or int64, None where it is absent."""
    values: dict[str, Array | None] = {}
    for name, tensor in contract.tensors().items():
        recipe = recipe_of(case, name)
        if recipe.absent and tensor.optional:
            values[name] = None
            continue
        shape = shape_of(tensor, recipe.shape, names)
        storage = contract.storage_of(name, dtype)
        values[name] = drawn_values(name, tensor, recipe, storage, shape, names)
    if case.relation is not None:
        values = related(contract, case.relation, values, dtype, names)
    for plant in case.plants:
        array = values.get(plant.argument)
        if array is not None and array.size:
            array[place_of(plant.where, array.shape)] = float(plant.value)
    return values


def drawn_values(
    name: str,
    tensor: Tensor,
    recipe: Recipe,
    storage: Dtype,
    shape: Shape,
    names: Mapping[str, Number],
) -> Array:
    """The values of one argument: float64 or int64; a DomainError where there are none."""
    domain = tensor.domain_at(storage)
    if tensor.role == "out" or (0 in shape and not domain.structured):
        return np.zeros(shape)
    request = Request(shape, recipe.kind, Stream(recipe.seed, name), storage, recipe.scale, names)
    if recipe.kind not in (*domain.kinds(storage), *domain.simple(storage)):
        request = replace(request, kind=_nearest_kind(recipe.kind, domain.simple(storage)[0]))
    try:
        return np.array(domain.draw(request))
    except DomainError as error:
        raise DomainError(f"argument {name}: {error}") from None


def _nearest_kind(kind: str, simplest: str) -> str:
    """A kind that the domain does not have: probes are known to all, else the simplest."""
    return kind if kind.startswith("probe:") else simplest


def place_of(where: str, shape: Shape) -> tuple[int, ...]:
    """The index of a plant: the first element, the last, the last before a block's edge, or the
    element of a number, modulo the size."""
    if where == "first":
        return (0,) * len(shape)
    if where == "last":
        return tuple(size - 1 for size in shape)
    kind, _, number = where.partition(":")
    if kind == "at":
        flat = int(number) % int(np.prod(shape))
        return tuple(int(i) for i in np.unravel_index(flat, shape))
    return tuple(min(int(number), size) - 1 for size in shape)


def layouts_of(contract: Contract, name: str, rank: int) -> tuple[str, ...]:
    """The layouts that an argument of so many dims may have; one only where another's decides."""
    tensor = contract.tensors()[name]
    storage = contract.storage_of(name, contract.dtypes()[0])
    repeats = tensor.role == "in" and not tensor.domain_at(storage).structured
    if not isinstance(tensor.layouts, Layout):
        return ("dense",)
    return layout_kinds(tensor.layouts, rank, repeats=repeats)


def shares_of(contract: Contract, name: str) -> tuple[str, ...]:
    """How an argument may share the storage of another: apart, packed beside it, or the same."""
    tensors = contract.tensors()
    tensor = tensors[name]
    found = ["apart"]
    for other in contract.aliases(name):
        peer = tensors[other]
        alike = tensor.shapes == peer.shapes and tensor.layouts == peer.layouts
        if not alike or tensor.dtypes not in (peer.dtypes, other) or peer.role == "out":
            continue
        found.append(f"packed:{other}")
        if tensor.role == "out" or tensor.domain == peer.domain:
            found.append(f"same:{other}")
    return tuple(found)


class _Placing:
    """Laying out the tensors of one case."""

    def __init__(
        self, contract: Contract, case: Case, dtype: str, values: Mapping[str, Array | None]
    ) -> None:
        self.contract = contract
        self.case = case
        self.dtype = dtype
        self.values = {name: array for name, array in values.items() if array is not None}

    def all(self) -> dict[str, tuple[torch.Tensor, Array | None]]:
        """Every tensor that is there, and the values that its view holds (None: unwritten)."""
        places, owners = self._places()
        totals = dict.fromkeys(owners.values(), 0)
        for name, owner in owners.items():
            totals[owner] = max(totals[owner], places[name].storage)
        flats = {name: empty_storage(total, self._storage(name)) for name, total in totals.items()}
        shared = {name: as_torch(flat, self._storage(name)) for name, flat in flats.items()}
        for name in self.values:
            mode, other = self._share(name)
            if mode == "same":
                self.values[name] = self.values[other]
        held = {n: self._write(flats[owners[n]], n, places[n]) for n in self.values}
        return {
            name: (torch_view(shared[owners[name]], array.shape, places[name]), held[name])
            for name, array in self.values.items()
        }

    def _storage(self, name: str) -> Dtype:
        return self.contract.storage_of(name, self.dtype)

    def _share(self, name: str) -> tuple[str, str]:
        share = recipe_of(self.case, name).share
        mode, _, other = share.partition(":")
        legal_here = share in shares_of(self.contract, name) and other in self.values
        if not legal_here or self.values[name].shape != self.values[other].shape:
            return "apart", ""
        return mode, other

    def _places(self) -> tuple[dict[str, Geometry], dict[str, str]]:
        """Each tensor's geometry, and whose storage it lies in."""
        places: dict[str, Geometry] = {}
        owners: dict[str, str] = {}
        room: dict[str, int] = {}
        for name in sorted(self.values, key=lambda each: self._share(each)[0] != "apart"):
            mode, other = self._share(name)
            owner = owners.get(other)
            if mode == "apart" or owner is None:
                places[name], owners[name] = self._geometry(name), name
                room[name] = places[name].storage
            elif mode == "same":
                places[name], owners[name] = places[other], owner
            else:
                own = self._geometry(name)
                storage = room[owner] + own.storage
                places[name] = replace(own, storage=storage, offset=room[owner] + own.offset)
                owners[name], room[owner] = owner, storage
        return places, owners

    def _geometry(self, name: str) -> Geometry:
        tensor = self.contract.tensors()[name]
        shape = self.values[name].shape
        follows = tensor.layouts if isinstance(tensor.layouts, str) else name
        kind = recipe_of(self.case, follows).layout
        if kind not in layouts_of(self.contract, follows, len(shape)):
            kind = DENSE.value.lower()
        return geometry(kind, shape)

    def _write(self, flat: Array, name: str, place: Geometry) -> Array | None:
        """Write an argument's values and return what its view holds, exactly."""
        if self.contract.tensors()[name].role == "out":
            return None
        storage = self._storage(name)
        held = write(flat, self.values[name], place)
        if storage.floating:
            return held.astype(np.float64)
        return held if storage.family == "bool" else held.astype(np.int64)
