"""The proofs of waivers hold, and every waiver of ours has one."""

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pytest

from trivet.ci.waivers import PERFORMANCE, waivers
from trivet.faults import _proofs

MODULES = [f"{_proofs.__name__}.{module.name}" for module in pkgutil.iter_modules(_proofs.__path__)]
PROOFS = [
    f"{module}:{name}"
    for module in MODULES
    for name, value in vars(importlib.import_module(module)).items()
    if callable(value) and not name.startswith("_") and value.__module__ == module
]


@pytest.mark.parametrize("proof", PROOFS)
def test_a_proof_holds(proof: str) -> None:
    module, _, name = proof.partition(":")
    function: Callable[[], None] = getattr(importlib.import_module(module), name)
    function()


def test_every_proof_serves_a_waiver_and_every_waiver_has_one() -> None:
    named = {waiver.proof for waiver in waivers(Path("pyproject.toml")).values()}

    assert named - {PERFORMANCE} == set(PROOFS)
