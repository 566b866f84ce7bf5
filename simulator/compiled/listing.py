"""Assembly as a list of instructions with source lines and loop depths."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

Place = tuple[str, int]
Row = tuple[str, Place | None, str]
_SASS_FILE = re.compile(r'//## File "([^"]*)", line (\d+)')
_SASS_LABEL = re.compile(r"^(\.L_x_\w+):")
_SASS_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*?);")
_SASS_TARGET = re.compile(r"`\((\.L_x_\w+)\)")
_GCN_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_GCN_LINE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)[^;]*(?:;\s*(.*))?$")
_GCN_CALL = re.compile(r"([^\s:@\[]+):(\d+):\d+")
_GCN_LABEL = re.compile(r"^(\.LBB\w+):")
_GCN_INSTRUCTION = re.compile(r"^\t([a-z][a-z0-9_]+)(.*)$")
_GCN_TARGET = re.compile(r"(\.LBB\w+)")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its opcode with modifiers, where it comes from, in how many loops it is.

    ``operands`` are as the assembly writes them, the result first.
    """

    opcode: str
    place: Place | None
    depth: int = 0
    operands: str = ""


class Listing:
    """The instructions of one kernel, in order."""

    def __init__(self, instructions: Sequence[Instruction], loops: int) -> None:
        self.instructions = tuple(instructions)
        self.loops = loops
        self.deepest = max((item.depth for item in self.instructions), default=0)

    @property
    def innermost(self) -> list[Instruction]:
        """The instructions of the deepest loops; none where there is no loop."""
        return [item for item in self.instructions if self.deepest and item.depth == self.deepest]

    def matching(self, pattern: str) -> list[Instruction]:
        """Return the instructions whose opcode begins as the regular expression says."""
        known = re.compile(pattern)
        return [item for item in self.instructions if known.match(item.opcode)]


def frequent_place(instructions: Iterable[Instruction]) -> Place | None:
    """Return the source line that most of the instructions come from, deep loops first."""
    counted = Counter((i.depth, i.place) for i in instructions if i.place is not None)
    return max(counted, key=lambda item: (item[0], counted[item]))[1] if counted else None


def sass_listing(text: str) -> Listing:
    """Read what `nvdisasm -c -g` prints."""
    rows: list[Row] = []
    labels: dict[str, int] = {}
    branches: list[tuple[int, str]] = []
    place: Place | None = None
    for line in text.splitlines():
        if file := _SASS_FILE.search(line):
            place = _own((file[1], int(file[2]))) or place
        elif label := _SASS_LABEL.match(line):
            labels[label[1]] = len(rows)
        elif found := _SASS_INSTRUCTION.match(line):
            if found[1].startswith("BRA") and (target := _SASS_TARGET.search(found[2])):
                branches.append((len(rows), target[1]))
            rows.append((found[1], place, found[2]))
    while rows and rows[-1][0] == "NOP":
        rows.pop()
    return _listing(rows, labels, branches)


def gcn_listing(text: str) -> Listing:
    """Read AMD's assembly up to the end of its first function."""
    rows: list[Row] = []
    labels: dict[str, int] = {}
    branches: list[tuple[int, str]] = []
    files: dict[str, str] = {}
    place: Place | None = None
    for line in text.partition(".Lfunc_end0")[0].splitlines():
        if file := _GCN_FILE.match(line):
            files[file[1]] = os.path.join(file[2], file[3]) if file[3] else file[2]
        elif located := _GCN_LINE.match(line):
            calls = _gcn_places(files, located)
            place = next(filter(None, map(_own, calls)), place)
        elif label := _GCN_LABEL.match(line):
            labels[label[1]] = len(rows)
        elif found := _GCN_INSTRUCTION.match(line):
            if found[1].startswith(("s_cbranch", "s_branch")) and (
                target := _GCN_TARGET.search(found[2])
            ):
                branches.append((len(rows), target[1]))
            rows.append((found[1], place, found[2].strip()))
    return _listing(rows, labels, branches)


def _gcn_places(files: dict[str, str], located: re.Match[str]) -> Iterator[Place]:
    """Yield the line of a directive, then those of the calls it is inlined at."""
    yield files.get(located[1], ""), int(located[2])
    by_name = {os.path.basename(path): path for path in files.values()}
    for name, number in _GCN_CALL.findall(located[3] or ""):
        yield by_name.get(name, ""), int(number)


def _own(place: Place) -> Place | None:
    """Return a place in the user's own code, None for one in Triton's library or nowhere."""
    path, number = place
    return place if path and number and not path.startswith(_library()) else None


@cache
def _library() -> str:
    spec = find_spec("triton")
    return os.path.dirname(spec.origin or "triton") if spec is not None else "triton"


def _listing(
    rows: Sequence[Row],
    labels: dict[str, int],
    branches: Sequence[tuple[int, str]],
) -> Listing:
    """Take each branch backwards for a loop; one to itself only pads the end."""
    ends: dict[int, int] = {}
    for position, name in branches:
        start = labels.get(name, position)
        if start < position:
            ends[start] = max(position, ends.get(start, position))
    kept = [
        Instruction(opcode, place, _depth(ends, index), operands)
        for index, (opcode, place, operands) in enumerate(rows)
    ]
    while kept and kept[-1].opcode.startswith("BRA") and kept[-1].depth == 0:
        kept.pop()
    return Listing(kept, len(ends))


def _depth(loops: dict[int, int], index: int) -> int:
    """In how many loops, from a first to a last instruction each, an instruction lies."""
    return sum(start <= index <= end for start, end in loops.items())
