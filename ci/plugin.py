"""The pytest plugin: a Contract in a test module is a group of tests, one per law and dtype.

This module is loaded by every pytest run, so it imports nothing of trivet: contracts are told
apart only when a test module has imported them already.
"""

import sys
from typing import Any

import pytest

_CONTRACT_HOME = "trivet.properties._contract"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --trivet-profile and --trivet-seed."""
    group = parser.getgroup("trivet", "verification of Triton kernels")
    group.addoption(
        "--trivet-profile",
        choices=("quick", "ci", "deep"),
        default="quick",
        help="20, 100 or 1,000 examples a law and dtype (default: quick)",
    )
    group.addoption(
        "--trivet-seed", type=int, default=0, help="same seed, same examples (default: 0)"
    )


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> Any:
    """Collect a module's public variable that holds a Contract."""
    home = sys.modules.get(_CONTRACT_HOME)
    if home is None or name.startswith("_") or not isinstance(collector, pytest.Module):
        return None
    if not issubclass(type(obj), home.Contract):
        return None
    from trivet.ci.items import ContractGroup

    return ContractGroup.from_parent(collector, name=name, contract=obj)
