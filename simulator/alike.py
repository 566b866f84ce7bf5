"""Whether two functions are one to the compiler: the same IR in every specialisation used."""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Literal

from triton.compiler.errors import CompilationError

from trivet.simulator.dataflow import dataflow
from trivet.simulator.frontend import Asked, lower, specialisations
from trivet.simulator.rebuild import compiled

Likeness = Literal["alike", "unlike", "refused"]
_digests: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}


def likeness(
    first: Any, second: Any, *, ones: Collection[str] = (), same: Mapping[str, str] | None = None
) -> tuple[Likeness, str]:
    """Compare two kernels in every specialisation that ``first`` was launched with before.

    ``ones`` are arguments that are 1 in every launch (Triton makes constants of those), ``same``
    maps arguments to others that are equal in every launch. "unlike" where ``first`` was not
    launched in this process: nothing is known then. "refused" where ``second`` compiles in none;
    the compiler's own words come with it.
    """
    asked = specialisations(first)
    if not asked:
        return "unlike", ""
    if same_text(first, second):
        return "alike", ""
    refused = ""
    for number, each in enumerate(asked):
        try:
            second_digest = _digest_of(second, _with_ones(first, each, ones), same)
        except CompilationError as error:
            refused = refused or _first_line(error)
            continue
        if refused and number:
            return "unlike", refused
        if second_digest != _digest_of(first, _with_ones(first, each, ones), same):
            return "unlike", ""
    return ("refused", refused) if refused else ("alike", "")


def same_text(first: Any, second: Any) -> bool:
    """Whether two functions, and all that they call and read, have one text on the same lines."""
    one, other = compiled(first), compiled(second)
    specialisations(one)
    specialisations(other)
    return bool(one.hash == other.hash)


def _with_ones(function: Any, asked: Asked, ones: Collection[str]) -> Asked:
    signature, values, options = asked
    constant = {name for name in ones if str(signature.get(name)).startswith(("i", "u"))}
    left = {name: "constexpr" if name in constant else kind for name, kind in signature.items()}
    paths = {(function.arg_names.index(name),): 1 for name in constant}
    return left, {**values, **paths}, options


def _digest_of(function: Any, asked: Asked, same: Mapping[str, str] | None) -> str:
    lowered = lower(function, *asked)
    key = (lowered.key, tuple(sorted((same or {}).items())))
    if key not in _digests:
        _digests[key] = dataflow(lowered.module, same)
    return _digests[key]


def code_of(function: Any) -> str:
    """Return a digest of the IR of every specialisation that ``function`` was launched with.

    Empty where it was launched with none.
    """
    texts = sorted(_digest_of(function, each, None) for each in specialisations(function))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest() if texts else ""


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
