"""Triton's tensor IR as plain data: what the parser returns and the machine runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Type:
    """Shape and element of a value; scalars have the shape ``()``.

    ``element`` is ``f32``, ``i1``, ..., ``ptr<f32>`` or ``desc<f32>``; a descriptor's shape is
    that of its block.
    """

    shape: tuple[int, ...]
    element: str

    @property
    def is_pointer(self) -> bool:
        """Whether the element is a pointer."""
        return self.element.startswith("ptr<")

    @property
    def is_float(self) -> bool:
        """Whether the element is a floating-point number."""
        return is_float(self.element)

    @property
    def pointee(self) -> str:
        """Element behind a pointer or a descriptor."""
        return self.element[self.element.index("<") + 1 : -1]

    @property
    def size(self) -> int:
        """Number of elements of the tile."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


def is_float(element: str) -> bool:
    """Whether ``element`` names a floating-point number (bf16 and the float8 kinds included)."""
    return element[0] == "f" or element == "bf16"


@dataclass(frozen=True, slots=True)
class Frame:
    """One source line of a location's call stack."""

    file: str
    line: int


@dataclass(slots=True)
class Operation:
    """One operation; operands and results are SSA names such as ``%x_3`` or ``%acc#2``."""

    name: str
    results: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    result_types: list[Type] = field(default_factory=list)
    operand_types: list[Type] = field(default_factory=list)
    attributes: dict[str, object] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    regions: list[list[Block]] = field(default_factory=list)
    location: str = ""
    successors: list[tuple[str, list[str]]] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """A straight line of operations; the last one is its terminator."""

    label: str
    arguments: list[str] = field(default_factory=list)
    argument_types: list[Type] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass(slots=True)
class Function:
    """A kernel or a device function."""

    name: str
    arguments: list[str]
    argument_types: list[Type]
    blocks: list[Block]


@dataclass(slots=True)
class Module:
    """All functions of one compiled kernel; ``entry`` is the kernel itself."""

    functions: dict[str, Function]
    entry: Function
    resolve: Callable[[str], tuple[Frame, ...]]

    def frames(self, location: str) -> tuple[Frame, ...]:
        """Source lines of ``location``, innermost call first; empty when unknown."""
        return self.resolve(location)


def walk(blocks: list[Block]) -> Iterator[Operation]:
    """Every operation of ``blocks``, regions included, in textual order."""
    for block in blocks:
        for operation in block.operations:
            yield operation
            for region in operation.regions:
                yield from walk(region)
