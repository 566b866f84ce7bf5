"""What is timed: contracts at bench sizes, on the device, beside their rivals and their floor."""

import importlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from trivet.ci.timing.device import Device
from trivet.ci.timing.paired import Launch, Version, tensors
from trivet.properties._cases import Case, Inputs, Recipe, build, dtypes_of, legal
from trivet.properties._dims import closest, extent, production_dims, shape_of
from trivet.properties._floor import floor_bytes
from trivet.properties._sizes import Choice

if TYPE_CHECKING:
    from trivet.properties._collect import Found
    from trivet.properties._contract import Contract

# Elements of all arguments together: a few times the last cache of a large GPU, and drawn by NumPy
# in a second.
ELEMENTS = 1 << 22


@dataclass(frozen=True)
class Subject:
    """One kernel at one dtype and the sizes it is timed at.

    ``rivals`` are what others use, by name, with the kernel's own arguments. ``bytes`` is what one
    call must move, see ``floor_bytes``.
    """

    name: str
    dtype: str
    dims: Mapping[str, int]
    launch: Launch
    inputs: Callable[[int], Mapping[str, Any]]
    bytes: int
    repeatable: bool
    rivals: Mapping[str, Launch] = field(default_factory=dict)

    @property
    def ours(self) -> Version:
        """Our kernel; it may add in any order where its contract says so."""
        return Version("ours", self.launch, self.repeatable)

    @property
    def label(self) -> str:
        """The subject as people read it: cfc.step[float32] B=16384 H=128."""
        sizes = " ".join(f"{name}={size}" for name, size in self.dims.items())
        return f"{self.name}[{self.dtype}] {sizes}".rstrip()


def subject(found: "Found", device: Device, *, elements: int = ELEMENTS) -> Subject:
    """Prepare a contract for timing at its first dtype.

    Sizes are the production ones, the largest halved until all arguments together have no more
    than ``elements`` elements. Raises DomainError where no such sizes are legal.
    """
    contract = found.contract
    dtype = dtypes_of(contract)[0]
    case = bench_case(contract, dtype, elements=elements)
    kernel = contract.kernel

    def inputs(seed: int) -> dict[str, Any]:
        built = build(contract, _seeded(case, seed), dtype)
        return {name: _moved(value, device.place) for name, value in _asked(built).items()}

    first = inputs(0)
    outputs = tensors(device.call(kernel, {name: _clone(value) for name, value in first.items()}))
    moved = floor_bytes(contract, first, outputs)
    rivals = dict(rivals_of(found.name))
    repeatable = contract.precision.order == "fixed"
    return Subject(found.name, dtype, case.dims, kernel, inputs, moved, repeatable, rivals)


def bench_case(contract: "Contract", dtype: str, *, elements: int = ELEMENTS) -> Case:
    """Return the case of everyday values at the largest sizes near production that fit."""
    wishes = production_dims(contract) or {n: extent(contract, n)[1] for n in contract.forms}
    recipes = {name: Recipe(kind=_everyday(contract, name, dtype)) for name in contract.tensors()}
    while True:
        case = legal(contract, Case(closest(contract, wishes), recipes, label="plan"))
        largest = max(case.dims, key=lambda name: case.dims[name], default="")
        if _elements(contract, case) <= elements or not largest or case.dims[largest] <= 1:
            return case
        wishes = {**case.dims, largest: case.dims[largest] // 2}


def _everyday(contract: "Contract", name: str, dtype: str) -> str:
    storage = contract.storage_of(name, dtype)
    return contract.tensors()[name].domain_at(storage).kinds(storage)[0]


def _elements(contract: "Contract", case: Case) -> int:
    shapes = (shape_of(tensor, 0, case.dims) for tensor in contract.tensors().values())
    return sum(math.prod(shape) for shape in shapes)


def _seeded(case: Case, seed: int) -> Case:
    recipes = {n: Recipe(kind=r.kind, seed=seed) for n, r in case.recipes.items()}
    return Case(case.dims, recipes, case.scalars, label=case.label)


def _asked(built: Inputs) -> dict[str, Any]:
    """The kernel's arguments without the choices that it has defaults for, as users call it."""
    parameters = inspect.signature(built.contract.kernel).parameters
    chosen = {
        name
        for name, argument in built.contract.args.items()
        if isinstance(argument, Choice)
        and name in parameters
        and parameters[name].default is not inspect.Parameter.empty
    }
    return {name: value for name, value in built.tensors.items() if name not in chosen}


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _clone(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def rivals_of(name: str) -> Iterator[tuple[str, Launch]]:
    """Yield what others use for a kernel: torch, torch under its compiler, public kernels."""
    family, _, kernel = name.partition(".")
    try:
        module = importlib.import_module(f"trivet.ci.timing.rivals.{family}")
    except ModuleNotFoundError:
        return
    eager = getattr(module, kernel, None)
    if eager is not None:
        yield "torch", eager
        yield "torch.compile", torch.compile(eager)
    yield from getattr(module, "PUBLIC", {}).get(kernel, {}).items()
