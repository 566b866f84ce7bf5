"""Where the tensors of a launch lie in memory, for pointers that a kernel takes from there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivet.simulator.ir import Module, walk
from trivet.simulator.memory import Allocation, Argument, View
from trivet.simulator.values import Pointer

_BITS = {"i1": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32}


def width_of(element: str) -> int:
    """Bytes of an element in memory; pointers have eight."""
    return 1 if element.startswith("f8") else _BITS.get(element, 64) // 8


def takes_addresses(module: Module) -> bool:
    """Whether a kernel makes pointers of integers, or integers of pointers."""
    functions = module.functions.values()
    operations = (operation for function in functions for operation in walk(function.blocks))
    return any(operation.name in ("tt.int_to_ptr", "tt.ptr_to_int") for operation in operations)


def nowhere() -> View:
    """The view behind an address that no tensor holds: it has no element."""
    empty = Allocation(np.zeros(0, np.int8), "i8")
    return View(Argument("", empty, 0, (0,), (1,)))


class Addresses:
    """Addresses of the first elements of ``views``, of which the last one is `nowhere`."""

    def __init__(self, views: Sequence[View]) -> None:
        self._nowhere = len(views) - 1
        arguments = [view.argument for view in views[:-1]]
        self._widths = np.array([width_of(item.allocation.element) for item in arguments] + [0])
        bases = [item.allocation.address for item in arguments]
        begins = [
            base + item.offset * int(width)
            for base, item, width in zip(bases, arguments, self._widths, strict=False)
        ]
        ends = [
            base + item.allocation.data.size * int(width)
            for base, item, width in zip(bases, arguments, self._widths, strict=False)
        ]
        self._begins = np.array([*begins, 0], np.int64)
        self._ends = np.array(ends, np.int64)
        self._order = np.argsort(self._begins[:-1], kind="stable")
        self._sorted = self._begins[self._order]

    def of(self, pointer: Pointer) -> np.ndarray:
        """Addresses of the elements that ``pointer`` points to."""
        number = pointer.argument
        addresses: np.ndarray = self._begins[number] + pointer.offsets * np.maximum(
            self._widths[number], 1
        )
        return addresses

    def find(self, addresses: np.ndarray) -> tuple[int | np.ndarray, np.ndarray, np.ndarray]:
        """Views that hold ``addresses``, offsets from their first elements, widths of those.

        An address belongs to the view that begins last before it in the same storage; one within
        an element counts as no tensor's. Where it is no tensor's the width is 0.
        """
        rank = np.searchsorted(self._sorted, addresses, side="right") - 1
        first = np.searchsorted(self._sorted, self._sorted[rank], side="left")
        number = self._order[first]
        distance = addresses - self._begins[number]
        width = self._widths[number]
        held = (rank >= 0) & (addresses < self._ends[number]) & (distance % width == 0)
        number = np.where(held, number, self._nowhere)
        offsets = np.where(held, distance // width, addresses)
        widths = self._widths[number]
        same = bool((number == number.flat[0]).all())
        return (int(number.flat[0]) if same else number), offsets, widths
