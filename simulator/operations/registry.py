"""Table of the operations the machine knows, filled by the modules beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trivet.simulator.ir import Operation
from trivet.simulator.values import Value

if TYPE_CHECKING:
    from trivet.simulator.compiler import Compiler

Handler = Callable[..., Value]
Builder = Callable[[Operation, "Compiler"], Handler]

PURE: dict[str, Builder] = {}
"""Builders of handlers that are called with the operands alone."""

EFFECTS: dict[str, Builder] = {}
"""Builders of handlers that are called with the chunk, then the operands."""


class Unsupported(Exception):
    """A form of an operation the machine has no rule for; raised while building or running."""


def pure(*names: str) -> Callable[[Builder], Builder]:
    """Register the builder of operations that only compute."""

    def register(builder: Builder) -> Builder:
        PURE.update(dict.fromkeys(names, builder))
        return builder

    return register


def effect(*names: str) -> Callable[[Builder], Builder]:
    """Register the builder of operations that look at the chunk: memory, control, identity."""

    def register(builder: Builder) -> Builder:
        EFFECTS.update(dict.fromkeys(names, builder))
        return builder

    return register


def unpacked(operation: Operation, values: list[Value]) -> Value:
    """What a handler returns for ``values``: the only one itself, else the list."""
    return values[0] if len(operation.results) == 1 else values
