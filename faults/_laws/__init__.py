"""The standard laws proved: for each a tiny kernel with one bug, at which exactly it turns red."""

import pkgutil
from importlib import import_module

from trivet.properties._contract import Contract


def tiny_contract() -> Contract:
    """Return the contract of the tiny kernel, with the fault of every law planted."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return import_module(f"{__name__}._tiny").row_sums_contract  # type: ignore[no-any-return]
