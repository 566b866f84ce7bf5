"""Mutators: operators that plant one small bug in a kernel or its host function, by a text edit.

A module of this package defines operators with the decorator ``operator``; ``operators`` finds
them all by import, so that adding one edits no list. Each carries an example on which it fires
and one on which it must not; one test tries them all.
"""

import ast
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from trivet.faults._mutators._source import Edit, Source, Text

Edits = Callable[[Any, Source], Iterator[str | Edit]]
KERNEL = ("kernel",)
HOST = ("host",)
EVERYWHERE = ("kernel", "host")


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to plant a bug.

    ``edits`` yields, for a node of one of the types ``nodes``, texts that take its place or whole
    edits. ``fires`` are statements before and after its first edit, ``silent`` statements that it
    leaves alone. ``beyond``: it shows only outside a contract's domain, or between calls.
    ``elsewhere`` says why only a device can judge it.
    """

    name: str
    group: str
    summary: str
    nodes: tuple[type[ast.AST], ...]
    places: tuple[str, ...]
    fires: tuple[str, str]
    silent: str
    edits: Edits
    beyond: bool = False
    elsewhere: str = ""

    def apply(self, source: Source) -> Iterator[Edit]:
        """Yield every edit of this operator in a function."""
        if source.kind not in self.places:
            return
        for node in source.nodes:
            if isinstance(node, self.nodes):
                for found in self.edits(node, source):
                    yield found if isinstance(found, Edit) else source.replace(node, found)


def operator(
    *nodes: type[ast.AST],
    fires: tuple[str, str],
    silent: str,
    places: tuple[str, ...] = KERNEL,
    beyond: bool = False,
    elsewhere: str = "",
) -> Callable[[Edits], Operator]:
    """Make an operator of a function: its name, its module as the group, its docstring."""

    def register(edits: Edits) -> Operator:
        name: str = edits.__name__
        group = edits.__module__.rpartition(".")[2]
        summary = (edits.__doc__ or "").strip()
        return Operator(
            name, group, summary, nodes, places, fires, silent, edits, beyond, elsewhere
        )

    return register


@cache
def operators() -> dict[str, Operator]:
    """Return every operator by name, in the order of its module and definition."""
    found: dict[str, Operator] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        contents = vars(import_module(f"{__name__}.{module.name}"))
        found.update({v.name: v for v in contents.values() if isinstance(v, Operator)})
    return found


def edits_of(source: Source) -> Iterator[tuple[Operator, Edit]]:
    """Yield every edit of every operator in a function; the same edit comes once."""
    seen: set[Edit] = set()
    for each in operators().values():
        for edit in each.apply(source):
            unchanged = source.file.text[edit.start : edit.end] == edit.text
            if edit not in seen and not unchanged:
                seen.add(edit)
                yield each, edit


def source_of(text: str, function: str, kind: str) -> Source:
    """Return the function of a file's text; raises KeyError where there is none of that name."""
    parsed = Text(text)
    return Source(parsed, parsed.functions()[function], kind)
