"""Whether two functions are one to the compiler: the same IR in every specialisation used."""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from trivet.simulator.dataflow import dataflow
from trivet.simulator.frontend import Asked, lower, specialisations


def lowers_alike(
    first: Any, second: Any, *, ones: Collection[str] = (), same: Mapping[str, str] | None = None
) -> bool:
    """Return whether two kernels have one dataflow wherever ``first`` was launched before.

    ``ones`` are arguments that are 1 in every launch (Triton makes constants of those), ``same``
    maps arguments to others that are equal in every launch. False where ``first`` was not
    launched in this process: nothing is known then. Errors of Triton's frontend come out.
    """
    asked = [_with_ones(first, each, ones) for each in specialisations(first)]
    return bool(asked) and all(
        dataflow(lower(first, *each).module, same) == dataflow(lower(second, *each).module, same)
        for each in asked
    )


def _with_ones(function: Any, asked: Asked, ones: Collection[str]) -> Asked:
    signature, values, options = asked
    constant = {name for name in ones if str(signature.get(name)).startswith(("i", "u"))}
    left = {name: "constexpr" if name in constant else kind for name, kind in signature.items()}
    paths = {(function.arg_names.index(name),): 1 for name in constant}
    return left, {**values, **paths}, options


def code_of(function: Any) -> str:
    """Return a digest of the IR of every specialisation that ``function`` was launched with."""
    texts = sorted(dataflow(lower(function, *each).module) for each in specialisations(function))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
