"""What is timed: contracts at bench sizes, on the device, beside their rivals and their floor."""

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from trivet.ci.timing.device import Device
from trivet.ci.timing.paired import Launch, Version, tensors
from trivet.properties._cases import dtypes_of
from trivet.properties._floor import floor_bytes
from trivet.properties._production import drawn_inputs, scaled_case
from trivet.properties._sizes import Choice

if TYPE_CHECKING:
    from trivet.properties._collect import Found
    from trivet.properties._contract import Contract

# Elements of all arguments together: a few times the last cache of a large GPU, and drawn by NumPy
# in a second.
ELEMENTS = 1 << 23
SMALL = 1 << 10


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

    Sizes are those of ``scaled_case`` for so many ``elements``. Raises NotJudgedError and
    DomainError where the contract has none, and what the kernel raises.
    """
    contract = found.contract
    dtype = dtypes_of(contract)[0]
    case = scaled_case(contract, dtype, elements=elements)
    kernel = contract.kernel

    def inputs(seed: int) -> dict[str, Any]:
        given = _asked(contract, drawn_inputs(contract, case, dtype, seed=seed))
        return {name: _moved(value, device.place) for name, value in given.items()}

    first = inputs(0)
    outputs = tensors(device.call(kernel, {name: _clone(value) for name, value in first.items()}))
    moved = floor_bytes(contract, first, outputs)
    rivals = dict(rivals_of(found.name, device))
    repeatable = contract.precision.order == "fixed"
    return Subject(found.name, dtype, case.dims, kernel, inputs, moved, repeatable, rivals)


def _asked(contract: "Contract", given: Mapping[str, Any]) -> dict[str, Any]:
    """The kernel's arguments without the choices that it has defaults for, as users call it."""
    parameters = inspect.signature(contract.kernel).parameters
    chosen = {
        name
        for name, argument in contract.args.items()
        if isinstance(argument, Choice)
        and name in parameters
        and parameters[name].default is not inspect.Parameter.empty
    }
    return {name: value for name, value in given.items() if name not in chosen}


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _clone(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def rivals_of(name: str, device: Device) -> Iterator[tuple[str, Launch]]:
    """Yield what others use for a kernel: torch, torch under its compiler, public kernels."""
    family, _, kernel = name.partition(".")
    try:
        module = importlib.import_module(f"trivet.ci.timing.rivals.{family}")
    except ModuleNotFoundError:
        return
    eager = getattr(module, kernel, None)
    if eager is not None:
        yield "torch", eager
        yield "torch.compile", device.compiled(eager)
    yield from getattr(module, "PUBLIC", {}).get(kernel, {}).items()
