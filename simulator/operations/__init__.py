"""Rules of the operations, one module a group; importing this package registers them all."""

from trivet.simulator.operations import (
    atomics,
    control,
    conversions,
    descriptors,
    diagnostics,
    elementwise,
    folds,
    integers,
    libdevice,
    memory_access,
    products,
    structure,
)

__all__ = [
    "atomics",
    "control",
    "conversions",
    "descriptors",
    "diagnostics",
    "elementwise",
    "folds",
    "integers",
    "libdevice",
    "memory_access",
    "products",
    "structure",
]
