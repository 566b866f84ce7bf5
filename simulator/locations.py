"""Source locations of the IR: aliases, names, call sites and fused ones, down to file and line."""

from __future__ import annotations

import re

from trivet.simulator._text import closing, split
from trivet.simulator.ir import Frame

_LINE = re.compile(r'"([^"]*)":(\d+)(?::\d+)?')
_NAMED = re.compile(r'"[^"]*"\((.*)\)$')
_ALIAS_DEPTH = 200


class Locations:
    """Table of the ``#locN`` aliases of one module."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._resolved: dict[str, tuple[Frame, ...]] = {}

    def define(self, alias: str, text: str) -> None:
        """Remember that ``alias`` stands for ``text``."""
        self._aliases[alias] = text

    def frames(self, location: str) -> tuple[Frame, ...]:
        """Source lines of ``location``, innermost call first; empty when unknown."""
        found = self._resolved.get(location)
        if found is None:
            found = self._resolved[location] = self._resolve(location.strip(), 0)
        return found

    def _resolve(self, text: str, depth: int) -> tuple[Frame, ...]:
        if depth > _ALIAS_DEPTH:
            return ()
        if text.startswith("#"):
            return self._resolve(self._aliases.get(text, "").strip(), depth + 1)
        if text.startswith("callsite("):
            callee, caller = _call_site(text[9 : closing(text, 8)])
            return self._resolve(callee, depth + 1) + self._resolve(caller, depth + 1)
        if text.startswith("fused"):
            return self._first_known(split(text[text.index("[") + 1 : -1]), depth)
        line = _LINE.match(text)
        if line:
            return (Frame(line[1], int(line[2])),)
        named = _NAMED.match(text)
        return self._resolve(named[1].strip(), depth + 1) if named else ()

    def _first_known(self, parts: list[str], depth: int) -> tuple[Frame, ...]:
        return next(filter(None, (self._resolve(part, depth + 1) for part in parts)), ())


def _call_site(text: str) -> tuple[str, str]:
    """Split ``callee at caller`` at the outermost `` at ``."""
    depth, quoted = 0, False
    for index, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
        if depth == 0 and not quoted and text.startswith(" at ", index):
            return text[:index].strip(), text[index + 4 :].strip()
    return text, ""
