"""Bracket-aware text helpers of the parser."""

from __future__ import annotations

_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at ``start``; quotes and ``->`` are skipped.

    Raises ValueError when it is never closed.
    """
    opening, wanted = text[start], _CLOSING[text[start]]
    depth, quoted = 0, False
    for index in range(start, len(text)):
        character = text[index]
        if character == '"' and text[index - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif character == opening:
            depth += 1
        elif character == wanted and not (character == ">" and text[index - 1] == "-"):
            depth -= 1
            if depth == 0:
                return index
    raise ValueError(f"unbalanced {opening!r} in {text!r}")


def split(text: str, separator: str = ",") -> list[str]:
    """Parts of ``text`` between separators that stand outside every bracket and quote."""
    if not any(character in text for character in '<([{"'):
        return [part.strip() for part in text.split(separator) if part.strip()]
    parts: list[str] = []
    start = index = 0
    while index < len(text):
        character = text[index]
        if character == '"':
            index = text.index('"', index + 1)
            while text[index - 1] == "\\":
                index = text.index('"', index + 1)
        elif character in _CLOSING:
            index = closing(text, index)
        elif character == separator:
            parts.append(text[start:index].strip())
            start = index + 1
        index += 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def strip_location(line: str) -> tuple[str, str]:
    """``line`` without its ``loc(...)`` notes, and the last of them (that of the operation)."""
    location = ""
    while True:
        start = line.find("loc(")
        while start > 0 and line[start - 1] != " ":
            start = line.find("loc(", start + 1)
        if start < 0:
            return line, location
        end = closing(line, start + 3)
        location = line[start + 4 : end]
        line = line[:start].rstrip() + line[end + 1 :]
