"""Whether two functions are one to the compiler: the same IR in every specialisation used."""

import hashlib
import itertools
import re
from typing import Any

from trivet.simulator.frontend import lower, specialisations

# Where code stands in its file, and the module's own name, mean nothing to what it does.
_PLACES = re.compile(r"\s*loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\")*\))*\)|^#loc.*$", re.M)
_MODULES = re.compile(r"__fault\d+")
# A value, and whether it is defined here: `%x = `, `%x:2 = ` or, of blocks and functions, `%x: `.
_VALUE = re.compile(r"(%[\w$.-]+)(?=((?::\d+)? = |: )?)")


def lowers_alike(first: Any, second: Any) -> bool:
    """Return whether two kernels have the same TTIR wherever ``first`` was launched before.

    False where ``first`` was not launched in this process: nothing is known then. Errors of
    Triton's frontend on ``second`` come out.
    """
    asked = specialisations(first)
    return bool(asked) and all(
        _text(lower(first, *each).text) == _text(lower(second, *each).text) for each in asked
    )


def code_of(function: Any) -> str:
    """Return a digest of the IR of every specialisation that ``function`` was launched with."""
    texts = sorted(_text(lower(function, *each).text) for each in specialisations(function))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _text(text: str) -> str:
    """Return IR without places, its values numbered in order instead of named.

    A name is free again after its region, so that every definition takes a new number.
    """
    lines = _MODULES.sub("", _PLACES.sub("", text)).splitlines()
    numbers: dict[str, str] = {}
    count = itertools.count()

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if found[2] or name not in numbers:
            numbers[name] = f"%{next(count)}"
        return numbers[name]

    return _VALUE.sub(number, "\n".join(line.rstrip() for line in lines if line.strip()))
