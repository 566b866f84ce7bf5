"""Whether two functions are one to the compiler: the same IR in every specialisation used."""

import hashlib
from typing import Any

from trivet.simulator.dataflow import dataflow
from trivet.simulator.frontend import lower, specialisations


def lowers_alike(first: Any, second: Any) -> bool:
    """Return whether two kernels have one dataflow wherever ``first`` was launched before.

    False where ``first`` was not launched in this process: nothing is known then. Errors of
    Triton's frontend on ``second`` come out.
    """
    asked = specialisations(first)
    return bool(asked) and all(
        dataflow(lower(first, *each).module) == dataflow(lower(second, *each).module)
        for each in asked
    )


def code_of(function: Any) -> str:
    """Return a digest of the IR of every specialisation that ``function`` was launched with."""
    texts = sorted(dataflow(lower(function, *each).module) for each in specialisations(function))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
