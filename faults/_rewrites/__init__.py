"""Rewrites: edits of a kernel or its host function that leave a right kernel right.

They are the audit's controls: a gate that turns red on one gives a false alarm. A module of this
package defines rewrites with the decorator ``rewrite``; ``rewrites`` finds them all by import.
Each carries an example on which it fires and one on which it must not; one test tries them all.
"""

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from trivet.faults._mutators._source import Edit, Source

Edits = Callable[[Source], Iterator[Edit]]
KERNEL = "kernel"
HOST = "host"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way to write a kernel differently.

    ``edits`` yields whole edits of a function, each a rewrite by itself. ``fires`` are statements
    before and after its first edit, ``silent`` statements that it leaves alone. ``rounds``: results
    may round otherwise, within every bound; laws that a contract has of its own may promise bits,
    so they are not asked.
    """

    name: str
    group: str
    summary: str
    place: str
    fires: tuple[str, str]
    silent: str
    edits: Edits
    rounds: bool = False

    def apply(self, source: Source) -> Iterator[Edit]:
        """Yield every edit of this rewrite in a function."""
        if source.kind == self.place:
            yield from self.edits(source)


def rewrite(
    place: str, *, fires: tuple[str, str], silent: str, rounds: bool = False
) -> Callable[[Edits], Rewrite]:
    """Make a rewrite of a function: its name, its module as the group, its docstring."""

    def register(edits: Edits) -> Rewrite:
        name: str = edits.__name__
        group = edits.__module__.rpartition(".")[2]
        summary = (edits.__doc__ or "").strip()
        return Rewrite(name, group, summary, place, fires, silent, edits, rounds)

    return register


@cache
def rewrites() -> dict[str, Rewrite]:
    """Return every rewrite by name, in the order of its module and definition."""
    found: dict[str, Rewrite] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        contents = vars(import_module(f"{__name__}.{module.name}"))
        found.update({v.name: v for v in contents.values() if isinstance(v, Rewrite)})
    return found


def together(source: Source, texts: Mapping[tuple[int, int], str]) -> Edit:
    """Return one edit that puts each text in the place of its characters."""
    spans = sorted(texts)
    start, end = spans[0][0], spans[-1][1]
    parts, at = [], start
    for span in spans:
        parts += [source.file.text[at : span[0]], texts[span]]
        at = span[1]
    return Edit(start, end, "".join(parts))
