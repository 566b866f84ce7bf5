"""One kernel for all swept functions of one number, as Triton and libdevice have them."""

# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from trivet.impl import _elementwise


@triton.jit
def unary(x: tl.tensor, y: tl.tensor, n: int, NAME: tl.constexpr, BLOCK: tl.constexpr) -> None:
    """Store NAME(x) in y, element by element."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    value = tl.load(x + place, mask=inside, other=1.0)
    tl.store(y + place, _apply(value, NAME), mask=inside)


@triton.jit
def _apply(value: tl.tensor, NAME: tl.constexpr) -> tl.tensor:
    if NAME == "exp":
        result = tl.exp(value)
    elif NAME == "exp2":
        result = tl.exp2(value)
    elif NAME == "log":
        result = tl.log(value)
    elif NAME == "log2":
        result = tl.log2(value)
    elif NAME == "sqrt":
        result = tl.sqrt(value)
    elif NAME == "rsqrt":
        result = tl.rsqrt(value)
    elif NAME == "sin":
        result = tl.sin(value)
    elif NAME == "cos":
        result = tl.cos(value)
    elif NAME == "erf":
        result = tl.erf(value)
    else:
        result = _from_library(value, NAME)
    return result


@triton.jit
def _from_library(value: tl.tensor, NAME: tl.constexpr) -> tl.tensor:
    if NAME == "expm1":
        result = libdevice.expm1(value)
    elif NAME == "log1p":
        result = libdevice.log1p(value)
    elif NAME == "log10":
        result = libdevice.log10(value)
    elif NAME == "tanh":
        result = libdevice.tanh(value)
    elif NAME == "sinh":
        result = libdevice.sinh(value)
    elif NAME == "cbrt":
        result = libdevice.cbrt(value)
    elif NAME == "arctan":
        result = libdevice.atan(value)
    elif NAME == "arcsin":
        result = libdevice.asin(value)
    elif NAME == "arccos":
        result = libdevice.acos(value)
    elif NAME == "arcsinh":
        result = libdevice.asinh(value)
    elif NAME == "arctanh":
        result = libdevice.atanh(value)
    else:
        result = _composed(value, NAME)
    return result


@triton.jit
def _composed(value: tl.tensor, NAME: tl.constexpr) -> tl.tensor:
    if NAME == "composed_tanh":
        result = _elementwise.tanh(value)
    elif NAME == "composed_expm1":
        result = _elementwise.expm1(value)
    else:
        tl.static_assert(NAME == "composed_log1p", "no such function")
        result = _elementwise.log1p(tl.maximum(value, 0.0, propagate_nan=tl.PropagateNan.ALL))
    return result
