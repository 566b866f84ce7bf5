"""Special functions of libdevice that NumPy lacks, by torch in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trivet.simulator._torch import torch

Function = Callable[..., Any]


def _of_torch(name: str) -> Function:
    function = getattr(torch.special, name)

    def applied(x: np.ndarray) -> np.ndarray:
        wide = torch.from_numpy(np.array(x, np.float64))
        return np.asarray(function(wide).numpy())

    return applied


_inverse_normal = _of_torch("ndtri")

SPECIAL_UNARY: dict[str, Function] = {
    "cyl_bessel_i0": _of_torch("i0"),
    "cyl_bessel_i1": _of_torch("i1"),
    "j0": _of_torch("bessel_j0"),
    "j1": _of_torch("bessel_j1"),
    "y0": _of_torch("bessel_y0"),
    "y1": _of_torch("bessel_y1"),
    "erfinv": _of_torch("erfinv"),
    "erfcinv": lambda x: -_inverse_normal(x / 2) / np.sqrt(2.0),
    "erfcx": _of_torch("erfcx"),
    "normcdf": _of_torch("ndtr"),
    "normcdfinv": _inverse_normal,
    "saturate": lambda x: np.clip(np.where(np.isnan(x), 0.0, x), 0.0, 1.0),
}
"""Functions computed in float64 and rounded once."""
