"""Parser of printed Triton IR (``str(module)`` of Triton 3.6 to 3.9).

The pretty form is line based: one operation a line, regions in braces, a location at the end of
each line. Only the text is used, because the bindings hide most attributes.
"""

from __future__ import annotations

import re

from trivet.simulator._operation_text import parse_operation, parse_parameters
from trivet.simulator._text import closing, strip_location
from trivet.simulator.ir import Block, Function, Module, Operation
from trivet.simulator.locations import Locations

_ALIAS = re.compile(r"(#loc\d*) = loc\((.*)\)$")
_FUNCTION = re.compile(r'tt\.func (?:(?:public|private) )?@("[^"]+"|[\w.$<>,-]+)\(')
_LABEL = re.compile(r"(\^\w+)(?:\((.*)\))?:")
_TERMINATORS = frozenset(
    {
        "cf.br",
        "cf.cond_br",
        "llvm.unreachable",
        "scf.condition",
        "scf.yield",
        "tt.map_elementwise.return",
        "tt.reduce.return",
        "tt.return",
        "tt.scan.return",
        "ub.unreachable",
    }
)
_CONTINUES = ("} else {", "} do {", "}, {")


def parse(text: str) -> Module:
    """Module of one kernel; the first public function, else the first one, is its entry.

    Raises ValueError for text without a function or with a line that is not an operation.
    """
    return _Parser(text).module()


class _Parser:
    """Cursor over the stripped lines of one module."""

    def __init__(self, text: str) -> None:
        self._locations = Locations()
        self._lines: list[tuple[str, str]] = []
        self._next = 0
        for raw in text.splitlines():
            alias = _ALIAS.match(raw)
            if alias:
                self._locations.define(alias[1], alias[2])
                continue
            line, location = strip_location(raw.strip())
            if line and not line.startswith(("#", "//")):
                self._lines.append((line, location))

    def module(self) -> Module:
        functions: dict[str, Function] = {}
        entry: Function | None = None
        while self._next < len(self._lines):
            line, _ = self._take()
            if not line.startswith("tt.func"):
                continue
            function = self._function(line)
            functions[function.name] = function
            if entry is None and " private " not in line:
                entry = function
        if not functions:
            raise ValueError("the IR holds no function")
        return Module(functions, entry or next(iter(functions.values())), self._locations.frames)

    def _take(self) -> tuple[str, str]:
        item = self._lines[self._next]
        self._next += 1
        return item

    def _function(self, line: str) -> Function:
        head = _FUNCTION.match(line)
        if head is None:
            raise ValueError(f"not a function: {line!r}")
        names, types = parse_parameters(line[head.end() : closing(line, head.end() - 1)])
        blocks = self._region() if line.endswith("{") else []
        return Function(head[1].strip('"'), names, types, blocks)

    def _region(self) -> list[Block]:
        """Blocks up to the closing brace, which stays the next line."""
        blocks = [Block("")]
        while not self._lines[self._next][0].startswith("}"):
            line, location = self._take()
            label = _LABEL.match(line)
            if label is None:
                blocks[-1].operations.append(self._operation(line, location))
                continue
            if not blocks[-1].operations and not blocks[-1].label:
                blocks.pop()
            blocks.append(Block(label[1], *parse_parameters(label[2] or "")))
        _terminate(blocks[-1])
        return blocks

    def _operation(self, line: str, location: str) -> Operation:
        regions: list[list[Block]] = []
        tail = ""
        if line.endswith("{"):
            line = line[:-1].rstrip()
            while True:
                regions.append(self._region())
                end, end_location = self._take()
                location = end_location or location
                if end not in _CONTINUES:
                    break
            tail = end[1:].strip()
        operation = parse_operation(line, tail, regions)
        operation.location = location
        return operation


def _terminate(block: Block) -> None:
    """Add the ``scf.yield`` that is not printed when it yields nothing."""
    if not block.operations or block.operations[-1].name not in _TERMINATORS:
        block.operations.append(Operation("scf.yield"))
