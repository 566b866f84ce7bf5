"""Element types: a torch dtype, the IR's name for it, its NumPy form, and a poison of its own."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from trivet.simulator._torch import torch


@dataclass(frozen=True)
class ElementType:
    """One element type.

    ``element`` is the IR's name, ``array`` the NumPy dtype that memory is seen as (signed integers
    whatever torch says, booleans as bytes), ``poison`` the bit pattern of memory that nobody wrote:
    a NaN that no operation makes, a large odd number for integers.
    """

    element: str
    array: np.dtype[Any]
    poison: int

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.array.itemsize


def _integers(name: str, width: int) -> ElementType:
    return ElementType(name, np.dtype(f"i{width}"), int.from_bytes(b"\x5a" * width, "little"))


_TYPES: dict[torch.dtype, ElementType] = {
    torch.float64: ElementType("f64", np.dtype(np.float64), 0x7FF8DEAD5A5A5A5A),
    torch.float32: ElementType("f32", np.dtype(np.float32), 0x7FC5DEAD),
    torch.float16: ElementType("f16", np.dtype(np.float16), 0x7E5D),
    torch.bfloat16: ElementType("bf16", np.dtype(ml_dtypes.bfloat16), 0x7FDE),
    torch.float8_e4m3fn: ElementType("f8E4M3FN", np.dtype(ml_dtypes.float8_e4m3fn), 0x7F),
    torch.float8_e5m2: ElementType("f8E5M2", np.dtype(ml_dtypes.float8_e5m2), 0x7D),
    torch.float8_e4m3fnuz: ElementType("f8E4M3FNUZ", np.dtype(ml_dtypes.float8_e4m3fnuz), 0x80),
    torch.float8_e5m2fnuz: ElementType("f8E5M2FNUZ", np.dtype(ml_dtypes.float8_e5m2fnuz), 0x80),
    torch.bool: ElementType("i1", np.dtype(np.int8), 0x01),
    **{
        getattr(torch, f"{sign}int{8 * width}"): _integers(f"i{8 * width}", width)
        for sign in ("", "u")
        for width in (1, 2, 4, 8)
    },
}

# Triton's names, for tensors reinterpreted on the host as a type that torch does not have.
_BY_TRITON_NAME: dict[str, ElementType] = {
    "fp64": _TYPES[torch.float64],
    "fp32": _TYPES[torch.float32],
    "fp16": _TYPES[torch.float16],
    "bf16": _TYPES[torch.bfloat16],
    "fp8e4nv": _TYPES[torch.float8_e4m3fn],
    "fp8e5": _TYPES[torch.float8_e5m2],
    "fp8e4b8": _TYPES[torch.float8_e4m3fnuz],
    "fp8e5b16": _TYPES[torch.float8_e5m2fnuz],
    "i1": _TYPES[torch.bool],
    "u1": _TYPES[torch.bool],
    **{
        f"{sign}{8 * width}": _TYPES[getattr(torch, f"int{8 * width}")]
        for sign in "iu"
        for width in (1, 2, 4, 8)
    },
}


def element_type(dtype: torch.dtype) -> ElementType:
    """Return the element type of a torch dtype.

    Raises TypeError for the types that Triton has no pointers to (complex, quantised).
    """
    if dtype not in _TYPES:
        raise TypeError(f"Triton has no pointers to {dtype}")
    return _TYPES[dtype]


def has_element_type(dtype: torch.dtype) -> bool:
    """Return whether memory of this dtype can be seen by a kernel."""
    return dtype in _TYPES


def pointee(triton_type: str) -> ElementType:
    """Return the element type behind a Triton pointer type such as ``*fp32`` or ``*ki8``.

    Raises TypeError for an element that no tensor on the CPU can hold.
    """
    name = triton_type.removeprefix("*").removeprefix("k")
    if name not in _BY_TRITON_NAME:
        raise TypeError(f"no tensor on the CPU holds elements of {triton_type!r}")
    return _BY_TRITON_NAME[name]
