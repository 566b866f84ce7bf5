"""How many additions a term passes through in compiled PTX: the least that a plan must declare.

Counted along registers, from what feeds them to what they feed: additions of a reduction (those
on the line of an addition across lanes), products accumulated one on the other by matrix or fused
instructions. Whatever else adds (a formula, the polynomial of a function) hands on what it was
given, loops count as one round, and shared memory as the least it was given: never too many.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_STATEMENT = re.compile(r"(?:@!?%?\w+\s+)?([a-z][\w.:]*)\s+([^;]*)")
_PLACE = re.compile(r"\.loc\s+(\d+ \d+)")
_GROUP = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
_REGISTER = re.compile(r"%\w+")
_FLOATS = ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "f32x2")
# A float literal: what adds one is no term of a sum.
_LITERAL = re.compile(r"^0[fdFD][0-9a-fA-F]+$")


@dataclass
class _Line:
    """One instruction: its operation with modifiers, operands as lists of registers, its place."""

    name: str
    parts: list[str]
    operands: list[list[str]]
    literal: bool
    place: str

    @property
    def adds(self) -> bool:
        return self.name in ("add", "sub") and self.parts[-1] in _FLOATS

    @property
    def fuses(self) -> bool:
        return self.name == "fma" and self.parts[-1] in _FLOATS

    @property
    def multiplies_matrices(self) -> bool:
        return self.name in ("mma", "wgmma") and len(self.operands) > 2


def addition_depth(text: str) -> int:
    """Most additions of one sum on a path through the PTX `text`, at least; 0 where it sums none.

    >>> addition_depth("shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; add.f32 %r3, %r1, %r2;")
    1
    """
    lines = list(_lines(text))
    walk = _Walk(_reduction_places(lines), asynchronous="cp.async" in text)
    for line in lines:
        walk.step(line)
    return walk.deepest


def _lines(text: str) -> Iterator[_Line]:
    """Yield every instruction; one may stretch over rows, and rows may hold several."""
    place = rest = ""
    for row in text.splitlines():
        located = _PLACE.match(row.strip())
        place = located.group(1) if located else place
        if located or row.strip().endswith(":"):
            continue
        *whole, rest = f"{rest} {row.partition('//')[0]}".split(";")
        for statement in whole:
            match = _STATEMENT.match(statement.strip(" \t{}"))
            if match is not None:
                yield _line(match, place)


def _line(match: re.Match[str], place: str) -> _Line:
    name, *parts = match.group(1).split(".")
    groups = _GROUP.findall(match.group(2).replace("|", ", "))
    operands = [_REGISTER.findall(group) for group in groups]
    literal = any(_LITERAL.match(group) for group in groups)
    return _Line(name, parts, operands, literal, place)


def _reduction_places(lines: list[_Line]) -> set[str]:
    """The places of additions of a number from another lane."""
    moved: set[str] = set()
    places = set()
    for line in lines:
        if line.name == "shfl":
            moved.update(line.operands[0])
        elif line.adds and any(
            register in moved for each in line.operands[1:] for register in each
        ):
            places.add(line.place)
    return places


@dataclass
class _Walk:
    """Depths of registers, in the order of the text."""

    reductions: set[str]
    asynchronous: bool
    depths: dict[str, int] = field(default_factory=dict)
    fused: dict[str, str] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    shared: list[int] = field(default_factory=list)
    deepest: int = 0

    def step(self, line: _Line) -> None:
        """Note the depth of what one instruction makes."""
        if not line.operands:
            return
        target, *sources = line.operands
        if line.name == "st" and "shared" in line.parts:
            self.shared += [self.depths.get(each, 0) for part in sources for each in part]
        elif line.multiplies_matrices:
            self._accumulate(target, target if line.name == "wgmma" else sources[-1])
        else:
            self._assign(line, target, sources)

    def _assign(self, line: _Line, target: list[str], sources: list[list[str]]) -> None:
        depth = self._depth(line, sources)
        place = line.place if line.fuses and self._of_memory(sources[:2]) else ""
        fresh = line.name == "ld" or (line.name == "mov" and self._of_memory(sources))
        for register in target:
            self.depths[register] = depth
            self.fused[register] = place
            (self.loaded.add if fresh else self.loaded.discard)(register)
        self.deepest = max(self.deepest, depth)

    def _of_memory(self, sources: list[list[str]]) -> bool:
        """Whether all registers hold what was loaded: factors of a product of matrices."""
        return bool(sources) and all(part and self.loaded.issuperset(part) for part in sources)

    def _accumulate(self, target: list[str], accumulator: list[str]) -> None:
        for place, register in enumerate(target):
            before = accumulator[place] if place < len(accumulator) else ""
            self.depths[register] = self.depths.get(before, 0) + 1
            self.deepest = max(self.deepest, self.depths[register])

    def _depth(self, line: _Line, sources: list[list[str]]) -> int:
        if line.name == "ld":
            known = "shared" in line.parts and not self.asynchronous
            return min(self.shared, default=0) if known else 0
        if line.fuses:
            (accumulator, *_) = sources[-1] or [""]
            chained = self._of_memory(sources[:2]) and self.fused.get(accumulator) == line.place
            return self.depths.get(accumulator, 0) + chained
        if line.name in ("mov", "shfl", "selp") or line.adds:
            given = [self.depths.get(each, 0) for part in sources for each in part]
            counted = line.adds and not line.literal and line.place in self.reductions
            return max(given, default=0) + counted
        return 0
