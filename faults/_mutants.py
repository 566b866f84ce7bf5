"""The mutants of a contract's kernel: single text edits, shown as a diff, loaded from memory."""

import difflib
import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trivet.faults._load import edited_at
from trivet.faults._mutators import Operator, edits_of
from trivet.faults._mutators._source import Edit, Source, Text
from trivet.faults._reach import Reached, reached_from
from trivet.faults._rewrites import Rewrite
from trivet.properties._contract import Contract

# Workers change their folder; reports name files as seen from where the command was given.
_HERE = Path.cwd()
Edits = Callable[[Source], Iterable[tuple[Operator | Rewrite, Edit]]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One text edit of one function that a kernel reaches.

    ``id`` names it by content: operator, file, function, place within the function, replacement,
    so that edits elsewhere in the file leave it as it is. ``start`` and ``end`` are characters of
    the file.
    """

    id: str
    operator: str
    group: str
    module: str
    path: str
    function: str
    kind: str
    line: int
    start: int
    end: int
    replacement: str

    @property
    def edit(self) -> Edit:
        """The edit of the file."""
        return Edit(self.start, self.end, self.replacement)


def mutants_of(contract: Contract, edits: Edits = edits_of) -> list[Mutant]:
    """Return every mutant of the contract's kernel, in the order of their ids.

    Ids are digests, so that any first part of the list is a fair sample. ``edits`` yields what is
    done to one function, each with what did it.
    """
    texts: dict[str, Text] = {}
    found: dict[str, Mutant] = {}
    for item in reached_from(contract.kernel):
        path = os.path.abspath(inspect.getsourcefile(sys.modules[item.module]) or "")
        if not Path(path).is_file():
            continue
        text = texts.setdefault(path, Text(Path(path).read_text()))
        for mutant in _of_function(item, path, text, edits):
            found.setdefault(mutant.id, mutant)
    return sorted(found.values(), key=lambda mutant: mutant.id)


def _of_function(item: Reached, path: str, text: Text, edits: Edits) -> list[Mutant]:
    node = text.functions().get(item.qualified)
    if node is None:
        return []
    source = Source(text, node, item.kind)
    begin = source.span(node)[0]
    return [
        Mutant(
            id=_digest(each.name, Path(path).name, item.qualified, edit, begin, source.text(node)),
            operator=each.name,
            group=each.group,
            module=item.module,
            path=path,
            function=item.qualified,
            kind=item.kind,
            line=text.line_of(edit.start),
            start=edit.start,
            end=edit.end,
            replacement=edit.text,
        )
        for each, edit in edits(source)
    ]


def _digest(operator: str, file: str, function: str, edit: Edit, begin: int, text: str) -> str:
    place = f"{edit.start - begin}:{edit.end - begin}"
    content = "\0".join([operator, file, function, place, edit.text, text])
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def loaded(contract: Contract, mutant: Mutant, edit: Edit | None = None) -> Callable[..., Any]:
    """Return the kernel of a mutant; the user's files stay as they are.

    ``edit`` is made in place of the mutant's own. Raises whatever importing the edited module
    raises: then the mutant is invalid.
    """
    chosen = edit or mutant.edit
    return edited_at(
        contract.kernel,
        mutant.module,
        (chosen.start, chosen.end),
        chosen.text,
        label="mutant",
    )


def diff_of(mutant: Mutant) -> str:
    """Return the mutant as a unified diff of its file."""
    before = Path(mutant.path).read_text()
    after = before[: mutant.start] + mutant.replacement + before[mutant.end :]
    name = shown(mutant.path)
    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        name,
        f"{name} ({mutant.operator})",
        lineterm="",
        n=2,
    )
    return "\n".join(lines)


def shown(path: str) -> str:
    """Return a path as seen from where the audit began, where it lies below."""
    resolved = Path(path).resolve()
    return str(resolved.relative_to(_HERE)) if resolved.is_relative_to(_HERE) else path
