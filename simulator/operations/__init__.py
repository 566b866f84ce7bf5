"""Rules of the operations, one module a group; importing this package registers them all."""

from trivet.simulator.operations import (
    addresses,
    atomics,
    control,
    conversions,
    descriptors,
    diagnostics,
    elementwise,
    folds,
    integers,
    libdevice,
    mapped,
    memory_access,
    products,
    structure,
)

__all__ = [
    "addresses",
    "atomics",
    "control",
    "conversions",
    "descriptors",
    "diagnostics",
    "elementwise",
    "folds",
    "integers",
    "libdevice",
    "mapped",
    "memory_access",
    "products",
    "structure",
]
