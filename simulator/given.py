"""What a launch takes for its arguments: memory of the native run, of shadows, and of errors."""

from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.simulator._torch import torch
from trivet.simulator.binding import NUMBERS, Leaf, is_descriptor
from trivet.simulator.elements import ElementType, element_type, pointee
from trivet.simulator.guarded import in_elements
from trivet.simulator.held_errors import HeldErrors
from trivet.simulator.memory import Allocation, Argument
from trivet.simulator.storages import flat_array, written_map

if TYPE_CHECKING:
    from trivet.simulator.session import Session

Given = Argument | int | float | bool


class Memory:
    """The arguments of one launch: one allocation for each storage and element type."""

    def __init__(self, session: "Session") -> None:
        self.session = session
        self.storages = session.watch.storages
        self._made: dict[tuple[int, str], Allocation] = {}
        self._tensors: dict[int, torch.Tensor] = {}

    def given(self, leaf: Leaf) -> list[Given]:
        """Return what the machine takes for one argument; a descriptor brings its sizes along."""
        value = leaf.value
        if isinstance(value, NUMBERS):
            return [self.number(value, leaf.type)]
        if is_descriptor(value):
            base = plain_tensor(value.base)
            kind = pointee(leaf.type.removeprefix("tensordesc<").partition("[")[0])
            sizes = [*map(int, value.shape), *map(int, value.strides)]
            return [self.pointer(leaf.name, base, kind), *sizes]
        return [self.pointer(leaf.name, plain_tensor(value), pointee(leaf.type))]

    def number(self, value: bool | int | float, kind: str) -> Given:
        """Return a scalar as the kernel receives it: Triton passes floats in the type's width."""
        if kind == "fp32":
            with np.errstate(over="ignore"):
                return float(np.float32(value))
        return value

    def pointer(self, name: str, tensor: torch.Tensor, kind: ElementType) -> Argument:
        """Return the pointer argument for one tensor, seen as elements of ``kind``."""
        address = tensor.untyped_storage()._cdata
        key = (address, kind.element)
        if key not in self._made:
            self._made[key] = self.allocation(name, tensor, kind)
            self._made[key].base = tensor.untyped_storage().data_ptr()
            self._tensors[address] = tensor
        guard = self.session.read_only.get(address)
        return Argument(
            name=name,
            allocation=self._made[key],
            offset=int(tensor.storage_offset()),
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            read_only=address in self.session.read_only,
            guard=None if guard is None else in_elements(guard, kind.size),
            whole_storage=address in self.session.whole,
        )

    def reachable(self) -> list[Argument]:
        """Return the tensors to which a table in memory may hold pointers."""
        tensors = self.session.addressed.tensors()
        return [self.pointer("a table's tensor", t, element_type(t.dtype)) for t in tensors]

    def allocation(self, name: str, tensor: torch.Tensor, kind: ElementType) -> Allocation:
        """Return the storage behind ``tensor`` without copying it."""
        storage = self.storages.find(tensor)
        written = None
        if storage is not None and storage.written is not None:
            written = written_map(storage, tensor)
        return Allocation(flat_array(tensor, kind.array), kind.element, written, name)

    def settle(self) -> None:
        """Forget the maps of storages that are complete by now."""
        for tensor in self._tensors.values():
            storage = self.storages.find(tensor)
            if storage is not None:
                storage.settle()


class ShadowMemory(Memory):
    """The same arguments on float64: floats on their shadows, integers on copies."""

    def number(self, value: bool | int | float, kind: str) -> Given:
        """Return a scalar with the value it has in Python."""
        return value

    def allocation(self, name: str, tensor: torch.Tensor, kind: ElementType) -> Allocation:
        """Return the shadow of the storage behind ``tensor``; integers belong to the native run."""
        shadows = self.session.watch.shadows
        assert shadows is not None
        if tensor.is_floating_point() and kind.element[0] in "bf":
            return Allocation(shadows.array(tensor), kind.element, None, name)
        native = flat_array(tensor, kind.array)
        if kind.element[0] in "bf":
            return Allocation(native.astype(np.float64), kind.element, None, name)
        return Allocation(native.copy(), kind.element, None, name)


class ErrorMemory(ShadowMemory):
    """The same arguments on float64 numbers that carry their errors."""

    def __init__(self, session: "Session", errors: HeldErrors) -> None:
        super().__init__(session)
        self.errors = errors
        self._carried: list[tuple[torch.Tensor, Allocation]] = []

    def allocation(self, name: str, tensor: torch.Tensor, kind: ElementType) -> Allocation:
        """Return the shadow with its errors; what is no float as on any shadow."""
        shadows = self.session.watch.shadows
        assert shadows is not None
        if not tensor.is_floating_point() or kind.element[0] not in "bf":
            return super().allocation(name, tensor, kind)
        found = Allocation(self.errors.array(tensor, shadows), kind.element, None, name)
        self._carried.append((tensor, found))
        return found

    def settle(self) -> None:
        """Put what the launch wrote into the shadows, and hold its errors."""
        shadows = self.session.watch.shadows
        assert shadows is not None
        for tensor, allocation in self._carried:
            self.errors.settle(tensor, allocation.data, shadows)


def plain_tensor(value: Any) -> torch.Tensor:
    """Return the tensor behind an argument that was reinterpreted as another type."""
    tensor: torch.Tensor = value if isinstance(value, torch.Tensor) else value.base
    return tensor
