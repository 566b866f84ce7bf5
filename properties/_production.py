"""Runs at production sizes: inputs far larger than memory, few programs of each launch.

Legality matters here, values do not: a large argument holds one block of legal values over and
over, in memory that is mapped many times and owned once.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet.properties._arguments import Scalar, Tensor
from trivet.properties._cases import (
    Case,
    Given,
    Inputs,
    Recipe,
    drawn_values,
    layouts_of,
    scalar_value,
)
from trivet.properties._contract import Contract
from trivet.properties._dims import (
    filled_dims,
    numbers,
    obstacles,
    production_dims,
    settle_scalars,
    shape_of,
    stated_dims,
)
from trivet.properties._domain import Mapped
from trivet.properties._dtypes import Dtype
from trivet.properties._layouts import Geometry, geometry
from trivet.properties._observe import Observation
from trivet.properties._sizes import Choice, Number, Sizes
from trivet.properties._stream import Shape
from trivet.properties._tensors import as_torch, empty_storage, torch_view, write
from trivet.properties._validation import takes
from trivet.properties._verdict import NotJudgedError
from trivet.simulator.executors import executor_named
from trivet.simulator.virtual import virtual_tensor, whole_pages

# Arguments of up to so many elements are drawn like any other.
_DRAWN_ELEMENTS = 1 << 20
# Values that depend on one another are drawn together, up to so many.
_TOGETHER_ELEMENTS = 1 << 25
_BLOCK_ELEMENTS = 1 << 18
_LAYOUTS = ("dense", "order", "every", "last", "offset", "first", "repeat")
_FAR = 2**62
_FEWEST_CASES = 2
# About half a second a launch: a loop over a production dim is followed for so long.
_FUEL = 500_000


def production_cases(contract: Contract, *, dtype: str, seed: int, count: int) -> Iterator[Case]:
    """Yield up to ``count`` cases at production sizes, none where no dim states one.

    Every production size, value of a Choice, legal shape, layout and kind of values comes up in
    turn; fewer cases where all of them have. Raises NotJudgedError where the sizes are no legal
    ones.
    """
    for number in range(min(count, max(_FEWEST_CASES, _most_options(contract)))):
        dims = production_dims(contract, number)
        if dims is None:
            return
        scalars = settle_scalars(contract, dims, _wishes(contract, number))
        found = obstacles(contract, dims, scalars)
        if found:
            raise NotJudgedError(f"the production sizes are no legal ones: {found[0].text}")
        recipes = {
            name: _recipe(contract, name, dtype, seed, number) for name in contract.tensors()
        }
        yield Case(dims, recipes, scalars, label="production")


def observe_production(
    contract: Contract, case: Case, dtype: str, *, number: int, programs: int, fuel: int = _FUEL
) -> Observation:
    """Run a few programs of every launch of the kernel on its case ``number``.

    A launch that needs more than ``fuel`` is cut short.

    Raises NotJudgedError where an argument's values cannot be had at these sizes.
    """
    inputs = _build(contract, case, dtype)
    executor = executor_named("simulator", programs=programs, configuration=number, fuel=fuel)
    run = executor.run(
        contract.kernel,
        inputs.tensors,
        read_only=contract.read_only_arguments(),
        unwritten=contract.unwritten_arguments(),
        whole_storage=contract.whole_storage_arguments(),
    )
    given = inputs.tensors
    return Observation(contract, inputs, given, given, run, executor, notes={"example": number})


def scaled_case(contract: Contract, dtype: str, *, elements: int) -> Case:
    """Return the case of everyday values at production sizes, halved until they can be drawn.

    The largest of the dims that state a production size is halved until all arguments together have
    no more than ``elements`` elements; without one the sizes are the largest generated. Raises
    NotJudgedError where no such sizes are legal.
    """
    stated = stated_dims(contract)
    recipes = {name: Recipe(_everyday(contract, name, dtype)) for name in contract.tensors()}
    while True:
        dims = filled_dims(contract, stated)
        scalars = settle_scalars(contract, dims, {})
        names = numbers(contract, dims, scalars)
        shapes = [shape_of(tensor, 0, names) for tensor in contract.tensors().values()]
        largest = max(stated, key=lambda name: stated[name], default="")
        if sum(map(math.prod, shapes)) <= elements or stated.get(largest, 0) <= 1:
            break
        stated = {**stated, largest: stated[largest] // 2}
    found = obstacles(contract, dims, scalars)
    if found:
        raise NotJudgedError(f"the sizes {dims} are no legal ones: {found[0].text}")
    return Case(dims, recipes, scalars, label="production")


def _everyday(contract: Contract, name: str, dtype: str) -> str:
    storage = contract.storage_of(name, dtype)
    return contract.tensors()[name].domain_at(storage).kinds(storage)[0]


def drawn_inputs(contract: Contract, case: Case, dtype: str, *, seed: int) -> dict[str, Given]:
    """Return the kernel's arguments for ``case``, every value drawn by ``seed``.

    Raises DomainError where an argument's domain has no value for these sizes.
    """
    recipes = {name: replace(recipe, seed=seed) for name, recipe in case.recipes.items()}
    seeded = replace(case, recipes=recipes)
    return _build(contract, seeded, dtype, whole=True).tensors


def _most_options(contract: Contract) -> int:
    counts = [len(arg.values) for arg in contract.args.values() if isinstance(arg, Choice)]
    counts += [len(tensor.shapes) for tensor in contract.tensors().values()]
    counts += [len(form.production) for form in contract.forms.values() if isinstance(form, Sizes)]
    return max(counts, default=1)


def _wishes(contract: Contract, number: int) -> dict[str, Number]:
    """Scalars at their low and their high end by turns, choices one after another."""
    wishes: dict[str, Number] = {}
    for name, arg in contract.args.items():
        if isinstance(arg, Choice):
            wishes[name] = number
        elif isinstance(arg, Scalar):
            wishes[name] = -_FAR if number % 2 else _FAR
    return wishes


def _recipe(contract: Contract, name: str, dtype: str, seed: int, number: int) -> Recipe:
    tensor = contract.tensors()[name]
    domain = tensor.domain_at(contract.storage_of(name, dtype))
    kinds = domain.kinds(contract.storage_of(name, dtype))
    rank = len(tensor.shapes[number % len(tensor.shapes)])
    layouts = sorted(
        layouts_of(contract, name, rank), key=lambda kind: _LAYOUTS.index(kind.partition(":")[0])
    )
    layout = "dense" if isinstance(domain, Mapped) else layouts[number % len(layouts)]
    return Recipe(kinds[number % len(kinds)], seed, shape=number, layout=layout)


def _build(contract: Contract, case: Case, dtype: str, *, whole: bool = False) -> Inputs:
    names = numbers(contract, case.dims, case.scalars)
    given: dict[str, Given] = {}
    for name, arg in contract.args.items():
        if isinstance(arg, Tensor):
            argument = _Argument(contract, case, dtype, name, arg, names)
            given[name] = argument.drawn_whole() if whole else argument.tensor()
        else:
            given[name] = scalar_value(arg, case.scalars[name])
    sizes = {name: size for name, size in case.dims.items() if takes(contract.kernel, name)}
    return Inputs(contract, case, dtype, case.dims, {**given, **sizes}, {})


@dataclass(frozen=True)
class _Argument:
    """One tensor argument of a case at production sizes."""

    contract: Contract
    case: Case
    dtype: str
    name: str
    declared: Tensor
    names: Mapping[str, Number]

    @property
    def storage(self) -> Dtype:
        return self.contract.storage_of(self.name, self.dtype)

    @property
    def shape(self) -> Shape:
        return shape_of(self.declared, self.case.recipes[self.name].shape, self.names)

    @property
    def place(self) -> Geometry:
        layouts = self.declared.layouts
        follows = layouts if isinstance(layouts, str) else self.name
        return geometry(self.case.recipes[follows].layout, self.shape)

    def tensor(self) -> torch.Tensor:
        """Return the tensor: drawn as usual where it is small, else a block again and again."""
        elements = math.prod(self.shape)
        if self.place.storage <= _DRAWN_ELEMENTS or (
            self._together and elements <= _TOGETHER_ELEMENTS
        ):
            return self.drawn_whole()
        kind: torch.dtype = getattr(torch, self.storage.name)
        if self.declared.role == "out":
            block = None
        else:
            values = self._values(self._block_shape(kind)).astype(self.storage.numpy)
            block = values.reshape(-1).view(np.uint8)
        flat = virtual_tensor((self.place.storage,), kind, block)
        return torch_view(flat, self.shape, self.place)

    @property
    def _together(self) -> bool:
        domain = self.declared.domain_at(self.storage)
        return domain.structured and self.declared.role != "out"

    def _values(self, shape: Shape) -> NDArray[Any]:
        recipe = self.case.recipes[self.name]
        return drawn_values(self.name, self.declared, recipe, self.storage, shape, self.names)

    def drawn_whole(self) -> torch.Tensor:
        """Return the tensor with every value drawn."""
        flat = empty_storage(self.place.storage, self.storage)
        if self.declared.role != "out":
            write(flat, self._values(self.shape), self.place)
        return torch_view(as_torch(flat, self.storage), self.shape, self.place)

    def _block_shape(self, kind: torch.dtype) -> Shape:
        """The shape of the block: elements one by one, or whole rows where they belong together."""
        if not self._together:
            return (whole_pages(kind, _BLOCK_ELEMENTS),)
        row = math.prod(self.shape[1:])
        rows = whole_pages(kind, row) // row
        mapped = isinstance(self.declared.domain_at(self.storage), Mapped)
        if not mapped or len(self.shape) < 2 or rows * row > _TOGETHER_ELEMENTS:
            raise NotJudgedError(
                f"{self.name} would hold {math.prod(self.shape)} values that depend on one "
                "another at the production sizes: too many to draw"
            )
        return (rows, *self.shape[1:])
