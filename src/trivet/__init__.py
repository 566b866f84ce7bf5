"""trivet proves a Triton kernel right, proves that the proof can fail, and keeps the kernel fast."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.oracles._precision import Precision
    from trivet.properties._contract import Contract, Scalar, Tensor
    from trivet.properties._domains import (
        counts,
        integers,
        log_uniform,
        offsets,
        partition,
        permutation,
        reals,
    )
    from trivet.properties._layouts import ANY, DENSE, UNIT_LAST
    from trivet.properties._sizes import Choice, divisors, sizes

__version__ = "0.1.0"

__all__ = [
    "ANY",
    "DENSE",
    "UNIT_LAST",
    "Choice",
    "Contract",
    "Precision",
    "Scalar",
    "Tensor",
    "counts",
    "divisors",
    "integers",
    "log_uniform",
    "offsets",
    "partition",
    "permutation",
    "reals",
    "sizes",
]

_HOMES = {
    "trivet.oracles._precision": ("Precision",),
    "trivet.properties._contract": ("Contract", "Scalar", "Tensor"),
    "trivet.properties._domains": (
        "counts",
        "integers",
        "log_uniform",
        "offsets",
        "partition",
        "permutation",
        "reals",
    ),
    "trivet.properties._layouts": ("ANY", "DENSE", "UNIT_LAST"),
    "trivet.properties._sizes": ("Choice", "divisors", "sizes"),
}


def __getattr__(name: str) -> object:
    """Import a public name from its home at first use, so that `import trivet` stays light."""
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(home), name)
            return value
    raise AttributeError(f"module 'trivet' has no attribute {name!r}")
